"""From a workload to the intermediate representations of its launches: some blocks of each are run functionally."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.cache.store import Store
from ppt_gpu.emulator.cache.traces import LaunchTraces, Traces
from ppt_gpu.emulator.launch.layout import layout
from ppt_gpu.emulator.launch.sequence import plan_sequence
from ppt_gpu.frontends.prepare import prepare
from ppt_gpu.machine.registers import compiled_registers
from ppt_gpu.multicore.representation.ir import Ir
from ppt_gpu.multicore.representation.ir_from_trace import ir_of_trace
from ppt_gpu.spec.isa import isa_of
from ppt_gpu.translation.blocks import sample_blocks
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Launch, Workload

#: blocks run where the user names no number
SAMPLE = 16

#: (registers of a thread, bytes of shared memory of a block)
Needs = tuple[int, int]


def representations(
    workload: Workload, only: int | None, blocks: str | int, assume: Sequence[str]
) -> list[tuple[Ir, Needs, int]]:
    """(representation, what a block needs, how often it runs) of every launch, or of launch `only`, counted from 1.

    `blocks`: how many of the grid's are run, "all", or "sample" for SAMPLE of them. Raises PptError for a task list,
    which has no PTX, and for a launch that is not there.
    """
    if workload.tasklist_path:
        raise PptError("a task list says nothing of data and registers", path=workload.tasklist_path)
    prepared = prepare(workload, assume=assume)
    sequence = plan_sequence(prepared.workload, prepared.module)
    if only is not None and only > len(sequence.launches):
        raise PptError(f"there is no launch {only}", path=workload.path, hint=f"1 to {len(sequence.launches)}")
    bound = replace(prepared.workload, launches=sequence.launches)
    traces = Traces(prepared.module, bound, {}, Budget(), Store())
    found: dict[int, tuple[Ir, Needs]] = {}
    runs: dict[int, int] = {}
    for step in sequence.steps:
        runs[step.number] = runs.get(step.number, 0) + step.count
        launch = traces.launch(step.number)
        if step.number not in found and only in (None, step.number + 1):
            found[step.number] = _representation(launch, blocks)
        if step.advance:
            launch.advance(range(launch.launch.blocks))
    return [(*found[number], runs[number] if only is None else 1) for number in sorted(found)]


def _representation(traces: LaunchTraces, blocks: str | int) -> tuple[Ir, Needs]:
    launch, kernel, module = traces.launch, traces.kernel, traces.module
    ir = ir_of_trace(kernel, module, traces.run(chosen_blocks(launch, blocks)), launch)
    shared = layout(module, kernel, launch.dynamic_shared).shared_bytes
    return ir, (compiled_registers(kernel, isa_of(module.target), launch.registers).count, shared)


def chosen_blocks(launch: Launch, blocks: str | int) -> list[int]:
    """The blocks to run: half of them neighbours, which show how addresses go on, half spread evenly over the grid."""
    count = SAMPLE if blocks == "sample" else launch.blocks if blocks == "all" else int(blocks)
    if count >= launch.blocks:
        return list(range(launch.blocks))
    near = sample_blocks(launch.grid, max(1, count // 2))
    rest = count - len(near)
    return sorted({*near, *(launch.blocks * (2 * at + 1) // (2 * rest) for at in range(rest))})
