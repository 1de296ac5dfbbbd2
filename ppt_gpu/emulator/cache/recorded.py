"""Traces from a trace file instead of running kernels: neither the inputs nor an execution is needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.outputs import write_whole
from ppt_gpu.emulator.cache.trace_cache import Kept
from ppt_gpu.emulator.cache.traces import LaunchTraces, Traces
from ppt_gpu.emulator.trace.trace import GlobalAccesses, Trace
from ppt_gpu.emulator.trace.trace_file import Record, read_traces, write_traces
from ppt_gpu.ptx.linking.mangling import short_name
from ppt_gpu.ptx.module import Module
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Workload


class RecordedTraces(Traces):
    """The traces that a file holds. Asking for any other block is an error."""

    def __init__(self, module: Module, workload: Workload, path: str | Path, budget: Budget) -> None:
        super().__init__(module, workload, {}, budget)
        self.path = str(path)
        self.file_records = load_trace(path, budget)

    def launch(self, number: int) -> LaunchTraces:
        return _RecordedLaunch(self, number)


class _RecordedLaunch(LaunchTraces):
    def __init__(self, traces: RecordedTraces, number: int) -> None:
        self.path = traces.path
        self.file_records = [record for record in traces.file_records if record.launch == number]
        super().__init__(traces, number)

    def _kept(self) -> Kept:
        kept = Kept("")
        for record in self.file_records:
            if record.identity != self.identity:
                raise PptError(self._difference(record), path=self.path, hint="record it again, for this workload")
            kept.add(record)
        return kept

    def _difference(self, record: Record) -> str:
        own = self.record(record.content, record.separable)
        for what, theirs, ours in (
            ("kernel", f"'{record.kernel}'", f"'{own.kernel}'"),
            ("grid", record.grid, own.grid),
            ("threads of a block", record.threads, own.threads),
            ("instructions of the kernel", record.instructions, own.instructions),
        ):
            if theirs != ours:
                return f"launch {self.number} in the file is another: {what} {theirs}, the workload's is {ours}"
        return f"launch {self.number} in the file is another: its PTX text, arguments or buffers are not the workload's"

    def _execute(self, blocks: Sequence[int]) -> NoReturn:
        name = f"launch {self.number} (kernel '{short_name(self.kernel.name)}')"
        if not self.file_records:
            raise PptError(f"the file holds no trace of {name}", path=self.path, hint="record it again")
        raise PptError(
            f"the file holds no trace of block {blocks[0]} of {name}, and {len(blocks) - 1} more that this GPU needs",
            path=self.path,
            hint="record it on a GPU with as many SMs and blocks on each, or give the inputs and no --trace-in",
        )

    def _affordable(self) -> bool:
        return False  # nothing can be run: the whole grid was, or was not

    def advance(self, blocks: Sequence[int]) -> None:
        """Later launches have traces of their own in the file."""


def load_trace(path: str | Path, budget: Budget | None = None) -> list[Record]:
    """The records of a trace file (docs/trace.md). PptError for whatever is wrong with it."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise PptError(f"cannot read the file: {error.strerror}", path=path) from None
    return read_traces(data, str(path), (budget or Budget()).trace)


def save_traces(path: str | Path, records: Sequence[Record]) -> None:
    """Write a trace file, whole or not at all. PptError when it cannot be written."""
    write_whole(path, write_traces(records))


def describe(records: Sequence[Record]) -> list[str]:
    """What a trace file holds, one line a record."""
    lines = []
    for record in records:
        content = record.content
        x, y, z = record.grid
        name = short_name(record.kernel)
        head = f"launch {record.launch}: kernel '{name}', grid {x}x{y}x{z}, {len(content.blocks)} blocks of "
        if isinstance(content, Trace):
            text = (
                f"{record.threads} threads, {content.warps} warps, {content.warp_instructions} warp instructions, "
                f"{len(content.access_base)} accesses"
            )
        elif isinstance(content, GlobalAccesses):
            text = f"{record.threads} threads, {len(content.base)} global accesses of other SMs"
        else:
            text = (
                f"{record.threads} threads, {int(content.warp_instructions.sum())} warp instructions counted by block"
            )
        lines.append(head + text)
    return lines
