"""Recorded runs of lowered blocks, kept beside them: for GPUs that differ in the memory system only.

A run is used again where the lowered blocks are the same (their name, and the group of their traces), the schedulers
are, and the other memory system answers all that the run asked as the first one did (`ppt_gpu.sm.loop.memory_replay`).
One of a whole chip is where its SMs are, and the other L2 and DRAM answer as the first ones did
(`ppt_gpu.sm.chip.memory_replay`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ppt_gpu.emulator.trace.identity import digest
from ppt_gpu.scale.cache.launch_store import Codec, LaunchStore
from ppt_gpu.scale.cache.packed_values import made, named, pack, unpack
from ppt_gpu.sm.chip.memory_replay import RecordedChip
from ppt_gpu.sm.loop.memory_replay import RecordedRun
from ppt_gpu.sm.loop.raw import Asked, Requests
from ppt_gpu.sm.loop.record import Answers

R = TypeVar("R")


def run_codec(magic: bytes, time: str, soon: Sequence[str], made: Callable[[Mapping[str, Any]], R]) -> Codec[R]:
    """How runs of a kind are kept: all fields, named as by `packed_values.named`, of which `made` makes the run again.

    Those of `time` rise slowly; of the times `soon` after them, what lies between is kept.
    """

    def write(run: R) -> bytes:
        values = named(run)
        values |= {name: values[name] - values[time] for name in soon}
        return pack(magic, values, (time,))

    def read(data: bytes, path: str) -> R:
        values = unpack(magic, data, path)
        try:
            values |= {name: values[name] + values[time] for name in soon}
            return made(values)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from None

    return Codec(".run", write, read)


def _on_sm(values: Mapping[str, Any]) -> RecordedRun:
    return made(RecordedRun, values, answers=made(Answers, values, "answers."))


def _on_chip(values: Mapping[str, Any]) -> RecordedChip:
    requests = made(Requests, values, "asked.requests.")
    return made(RecordedChip, values, asked=made(Asked, values, "asked.", requests=requests))


ON_SM = run_codec(b"PPTRUNOF", "answers.when", ("answers.done", "answers.place"), _on_sm)
ON_CHIP = run_codec(b"PPTCHIPR", "asked.requests.time", ("asked.requests.answer",), _on_chip)


@dataclass(frozen=True)
class RecordedRuns(Generic[R]):
    """The runs of one kind of one program, which is kept under the name `program`."""

    kept: LaunchStore
    codec: Codec[R]
    program: str

    def get(self, name: str) -> R | None:
        """What is kept under this name."""
        return self.kept.get(self.codec, digest(self.program, name)[:32])

    def put(self, name: str, run: R) -> None:
        """Keep it, where the folder can be written."""
        self.kept.put(self.codec, digest(self.program, name)[:32], run)
