"""What is kept of a launch between predictions, of any kind: beside its traces on disk, some kinds in memory too."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar, cast

from ppt_gpu.emulator.cache.store import Store

IN_MEMORY = 256 << 20  # B of all values that stay in memory
ON_DISK = 64 << 20  # B of one value that is worth a file

T = TypeVar("T")


@dataclass(frozen=True)
class Codec(Generic[T]):
    """How values of a kind are kept."""

    suffix: str  # of their files
    write: Callable[[T], bytes]  # the same bytes for the same value
    read: Callable[[bytes, str], T]  # of bytes and a path; ValueError, which names the path, for other bytes
    size: Callable[[T], int] | None = None  # B of a value in memory, of a kind that stays there


class LaunchStore:
    """What is kept of one launch. `group`: the digest of all that its traces depend on."""

    def __init__(self, store: Store, group: str) -> None:
        self.store, self.group = store, group

    def get(self, codec: Codec[T], name: str) -> T | None:
        """What is kept under this name."""
        place = self._place(codec, name)
        found = cast("T | None", _recent.get(place, (None, 0))[0])
        if found is None:
            found = self.store.read(self.group, name + codec.suffix, codec.read)
        if found is not None and codec.size is not None:
            _remember(place, found, codec.size(found))
        return found

    def put(self, codec: Codec[T], name: str, value: T) -> None:
        """Keep it: in memory, where its kind stays there, and on disk, where it is not too large for that."""
        size = 0 if codec.size is None else codec.size(value)
        if codec.size is not None:
            _remember(self._place(codec, name), value, size)
        if size <= ON_DISK:
            self.store.write(self.group, name + codec.suffix, codec.write(value))

    def _place(self, codec: Codec[T], name: str) -> tuple[Path | None, str, str]:
        return self.store.folder, self.group, name + codec.suffix


def kept_or_made(kept: LaunchStore | None, codec: Codec[T], name: Callable[[], str], make: Callable[[], T]) -> T:
    """What is kept under `name`, or what `make` makes, which is kept from then on."""
    if kept is None:
        return make()
    key = name()
    found = kept.get(codec, key)
    if found is None:
        found = make()
        kept.put(codec, key, found)
    return found


#: by folder of the store, group and file: values and their bytes
_recent: OrderedDict[tuple[Path | None, str, str], tuple[object, int]] = OrderedDict()
_changing = Lock()


def _remember(place: tuple[Path | None, str, str], value: object, size: int) -> None:
    """The values used longest ago leave memory when it is full."""
    with _changing:
        _recent[place] = value, size
        _recent.move_to_end(place)
        total = sum(held for _, held in _recent.values())
        while total > IN_MEMORY and _recent:
            total -= _recent.popitem(last=False)[1][1]


def forget() -> None:
    """Let go of what this process keeps in memory."""
    _recent.clear()
