"""Traces of machine code as a prediction asks for them: one file a launch, read when it is that launch's turn."""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.cache.traces import LaunchTraces, Traces
from ppt_gpu.emulator.launch.sequence import Sequence as LaunchSequence
from ppt_gpu.emulator.launch.sequence import Step
from ppt_gpu.emulator.trace.block_features import BlockFeatures, features_of
from ppt_gpu.emulator.trace.global_accesses import global_accesses
from ppt_gpu.emulator.trace.trace import GlobalAccesses, Trace
from ppt_gpu.emulator.trace.trace_file import Record
from ppt_gpu.emulator.trace.trace_parts import only_blocks
from ppt_gpu.sass.kernelslist import read_run
from ppt_gpu.sass.machine import machine_gpu
from ppt_gpu.sass.trace_body import read_machine_trace
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Workload

NOTE = "machine code from a trace: predicates and uniform registers are not in it, so nothing waits for them"


class MachineTraces(Traces):
    """The traces that a workload with `machine_path` names."""

    def __init__(self, workload: Workload, budget: Budget) -> None:
        self.workload, self.budget, self.store = workload, budget, None
        self.run = read_run(workload.machine_path)
        self.notes = (NOTE,)

    def launch(self, number: int) -> MachineLaunch:
        return MachineLaunch(self, number)

    def records(self) -> list[Record]:
        raise PptError("a machine-code trace is a trace file already", path=self.workload.machine_path)

    def sequence(self) -> LaunchSequence:
        """Every launch is predicted by itself, in the order of the list."""
        launches = self.workload.launches
        return LaunchSequence(launches, tuple(Step(number, 1, advance=False) for number in range(len(launches))))


class MachineLaunch(LaunchTraces):
    """The traces of one launch: nothing is run, and memory holds nothing."""

    def __init__(self, traces: MachineTraces, number: int) -> None:
        traced = traces.run.launches[number]
        self.path = traced.header.path
        found = read_machine_trace(self.path, traced.ranges, traces.budget.trace)
        self.traces, self.number, self.budget, self.store = traces, number, traces.budget, None
        self.module, self.whole = found.module, found.trace
        self.launch = traces.workload.launches[number]
        self.kernel, self.local_frame = found.kernel, found.local_frame
        self.separable = True

    def run(self, blocks: Sequence[int]) -> Trace:
        """The trace of these blocks. PptError for one that is not in the file."""
        missing = sorted(set(blocks) - set(self.whole.blocks.tolist()))
        if missing:
            message = (
                f"the trace has {len(self.whole.blocks)} of {self.launch.blocks} blocks; block {missing[0]} is needed"
            )
            raise PptError(message, path=self.path, hint="trace the whole grid")
        return only_blocks(self.whole, blocks)

    def touched(self, blocks: Sequence[int]) -> GlobalAccesses:
        return global_accesses(self.kernel, self.run(blocks))

    def whole_grid(self, features: BlockFeatures) -> GlobalAccesses | None:
        if len(self.whole.blocks) < self.launch.blocks:
            return None
        return self.touched(range(self.launch.blocks))

    def last_blocks(self, features: BlockFeatures, sectors: int) -> GlobalAccesses | None:
        """Not of a trace that lacks blocks."""
        return self.whole_grid(features)

    def features(self, blocks: Sequence[int]) -> BlockFeatures:
        return features_of(self.run(blocks))

    def advance(self, blocks: Sequence[int]) -> None:
        """Later launches have traces of their own."""

    def release(self) -> None:
        """Nothing is held for runs."""


def gpu_of_run(workload: Workload, gpu: Gpu) -> Gpu:
    """`gpu` as it runs the machine code of `workload`. PptError when it does not."""
    return machine_gpu(gpu, read_run(workload.machine_path).launches[0].header.arch, workload.machine_path)
