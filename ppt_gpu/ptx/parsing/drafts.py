"""Frozen dataclasses made quickly, for the kinds of object that a module has most of.

The generated `__init__` of a frozen dataclass goes through `object.__setattr__` for every field. A draft is a mutable
class with the same slots, which plain assignments fill; giving it the frozen class afterwards makes it the real thing:

>>> address = MemDraft(None, 16, ())
>>> address.__class__ = Mem
>>> address
Mem(base=None, offset=16, indices=())
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import fields, make_dataclass
from functools import lru_cache
from itertools import repeat
from typing import Any, TypeVar

from ppt_gpu.ptx.module import Instruction, Mem

_T = TypeVar("_T")


def _draft_of(frozen: type) -> Any:
    """A mutable class with the slots of the dataclass `frozen`. Every field has to be given, in order."""
    return make_dataclass(f"{frozen.__name__}Draft", [(field.name, Any) for field in fields(frozen)], slots=True)


@lru_cache
def _setters(frozen: type) -> tuple[Callable[[Any, Any], None], ...]:
    """Of each slot, in order."""
    return tuple(getattr(frozen, field.name).__set__ for field in fields(frozen))


def from_columns(frozen: type[_T], count: int, *columns: Iterable[Any]) -> list[_T]:
    """`count` objects of the slotted dataclass `frozen`, given one column of values a field, in order.

    The slots are filled column by column, without a Python call for each object.
    """
    made = [*map(object.__new__, repeat(frozen, count))]
    for fill, column in zip(_setters(frozen), columns, strict=True):  # type: ignore[arg-type]
        deque(map(fill, made, column), maxlen=0)
    return made


InstructionDraft = _draft_of(Instruction)
MemDraft = _draft_of(Mem)
