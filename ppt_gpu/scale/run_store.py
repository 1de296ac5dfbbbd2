"""Recorded runs of lowered blocks, kept beside them: for GPUs that differ in the memory system only.

A run is used again where the lowered blocks are the same (their name, and the group of their traces), the schedulers
are, and the other memory system answers all that the run asked as the first one did (`ppt_gpu.sm.core_again`). One of a
whole chip is where its SMs are, and the other L2 and DRAM answer as the first ones did (`ppt_gpu.sm.chip_again`).
"""

from __future__ import annotations

from ppt_gpu.exec.identity import digest
from ppt_gpu.exec.store import Store
from ppt_gpu.scale.packed_values import made, named, pack, unpack
from ppt_gpu.sm.chip_again import RecordedChip
from ppt_gpu.sm.chip_record import Asked, Requests
from ppt_gpu.sm.core_again import RecordedRun
from ppt_gpu.sm.core_record import Answers

SUFFIX = ".run"
MAGIC, CHIP_MAGIC = b"PPTRUNOF", b"PPTCHIPR"
#: fields whose values rise slowly
_RISING = ("answers.when", "asked.requests.time")


class _Runs:
    """The runs of one program. `group`: as of its ProgramStore; `program`: its name there."""

    def __init__(self, store: Store, group: str, program: str) -> None:
        self.store, self.group, self.program = store, group, program

    def _file(self, name: str) -> str:
        return digest(self.program, name)[:32] + SUFFIX


class RunStore(_Runs):
    """The runs of one program on an SM."""

    def get(self, name: str) -> RecordedRun | None:
        """What is kept under this name."""
        return self.store.read(self.group, self._file(name), read_run)

    def put(self, name: str, run: RecordedRun) -> None:
        """Keep it, where the folder can be written."""
        self.store.write(self.group, self._file(name), write_run(run))


class ChipRunStore(_Runs):
    """The runs of one program on whole chips."""

    def get(self, name: str) -> RecordedChip | None:
        """What is kept under this name."""
        return self.store.read(self.group, self._file(name), read_chip_run)

    def put(self, name: str, run: RecordedChip) -> None:
        """Keep it, where the folder can be written."""
        self.store.write(self.group, self._file(name), write_chip_run(run))


def write_run(run: RecordedRun) -> bytes:
    """The bytes that `read_run` reads; the same for the same run."""
    values = named(run)
    for name in ("answers.done", "answers.place"):  # soon after they were asked for
        values[name] = values[name] - run.answers.when
    return pack(MAGIC, values, _RISING)


def read_run(data: bytes, path: str) -> RecordedRun:
    """ValueError, which names `path`, when the data are not those of `write_run`."""
    values = unpack(MAGIC, data, path)
    try:
        for name in ("answers.done", "answers.place"):
            values[name] = values[name] + values["answers.when"]
        return made(RecordedRun, values, answers=made(Answers, values, "answers."))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None


def write_chip_run(run: RecordedChip) -> bytes:
    """The bytes that `read_chip_run` reads; the same for the same run."""
    values = named(run)
    values["asked.requests.answer"] = run.asked.requests.answer - run.asked.requests.time
    return pack(CHIP_MAGIC, values, _RISING)


def read_chip_run(data: bytes, path: str) -> RecordedChip:
    """ValueError, which names `path`, when the data are not those of `write_chip_run`."""
    values = unpack(CHIP_MAGIC, data, path)
    try:
        values["asked.requests.answer"] = values["asked.requests.answer"] + values["asked.requests.time"]
        asked = made(Asked, values, "asked.", requests=made(Requests, values, "asked.requests."))
        return made(RecordedChip, values, asked=asked)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None
