"""Recorded runs of lowered blocks, kept beside them: for GPUs that differ in the memory system only.

A run is used again where the lowered blocks are the same (their name, and the group of their traces), the schedulers
are, and the other memory system answers all that the run asked as the first one did (`ppt_gpu.sm.loop.memory_replay`).
One of a whole chip is where its SMs are, and the other L2 and DRAM answer as the first ones did
(`ppt_gpu.sm.chip.memory_replay`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ppt_gpu.emulator.cache.store import Store
from ppt_gpu.emulator.trace.identity import digest
from ppt_gpu.scale.cache.packed_values import made, named, pack, unpack
from ppt_gpu.sm.chip.memory_replay import RecordedChip
from ppt_gpu.sm.loop.memory_replay import RecordedRun
from ppt_gpu.sm.loop.raw import Asked, Requests
from ppt_gpu.sm.loop.record import Answers

SUFFIX = ".run"

R = TypeVar("R")


@dataclass(frozen=True)
class RunKind(Generic[R]):
    """How runs of a kind are kept: all fields, named as by `packed_values.named`, of which `made` makes the run again.

    Those of `time` rise slowly; of the times `soon` after them, what lies between is kept.
    """

    magic: bytes
    time: str
    soon: tuple[str, ...]
    made: Callable[[Mapping[str, Any]], R]

    def write(self, run: R) -> bytes:
        """The bytes that `read` reads; the same for the same run."""
        values = named(run)
        values |= {name: values[name] - values[self.time] for name in self.soon}
        return pack(self.magic, values, (self.time,))

    def read(self, data: bytes, path: str) -> R:
        """ValueError, which names `path`, when the data are not those of `write`."""
        values = unpack(self.magic, data, path)
        try:
            values |= {name: values[name] + values[self.time] for name in self.soon}
            return self.made(values)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from None


def _on_sm(values: Mapping[str, Any]) -> RecordedRun:
    return made(RecordedRun, values, answers=made(Answers, values, "answers."))


def _on_chip(values: Mapping[str, Any]) -> RecordedChip:
    requests = made(Requests, values, "asked.requests.")
    return made(RecordedChip, values, asked=made(Asked, values, "asked.", requests=requests))


ON_SM = RunKind(b"PPTRUNOF", "answers.when", ("answers.done", "answers.place"), _on_sm)
ON_CHIP = RunKind(b"PPTCHIPR", "asked.requests.time", ("asked.requests.answer",), _on_chip)


class RunStore(Generic[R]):
    """The runs of one kind of one program. `group`: as of its ProgramStore; `program`: its name there."""

    def __init__(self, kind: RunKind[R], store: Store, group: str, program: str) -> None:
        self.kind, self.store, self.group, self.program = kind, store, group, program

    def get(self, name: str) -> R | None:
        """What is kept under this name."""
        return self.store.read(self.group, self._file(name), self.kind.read)

    def put(self, name: str, run: R) -> None:
        """Keep it, where the folder can be written."""
        self.store.write(self.group, self._file(name), self.kind.write(run))

    def _file(self, name: str) -> str:
        return digest(self.program, name)[:32] + SUFFIX
