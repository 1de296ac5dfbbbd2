"""translate(): a kernel as the text of a task list, from a run of it or from a trace of its machine code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.launch.layout import layout
from ppt_gpu.emulator.memory.initial_memory import device_memory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.frontends.prepare import prepare
from ppt_gpu.inputs import open_workload
from ppt_gpu.machine.code import machine_code
from ppt_gpu.machine.registers import compiled_registers
from ppt_gpu.machine.trace import as_machine_code
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.sass.machine_traces import MachineTraces
from ppt_gpu.spec.isa import isa_of
from ppt_gpu.tasklist.model import TaskList
from ppt_gpu.tasklist.text import write_tasklist
from ppt_gpu.translation.blocks import sample_blocks
from ppt_gpu.translation.translate import translate as translate_trace
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Workload


def translate(workload: Workload | str | Path, *, blocks: int = 8, assume: Sequence[str] = ()) -> str:
    """The first launch of `workload` as the text of a task list, from running up to `blocks` of its blocks.

    They are neighbours along each axis of the grid, near its middle, so that the steps from block to block are seen.
    The tasks are those of the machine code for the architecture that the PTX names as its target.

    Raises PptError for bad input, or when `workload` is a task list already.
    """
    opened = workload if isinstance(workload, Workload) else open_workload(workload)
    if opened.tasklist_path:
        raise PptError("this is a task list already", path=opened.tasklist_path)
    if opened.machine_path:
        return write_tasklist(_translated_machine_code(opened, blocks))
    prepared = prepare(opened, assume=assume)
    module, opened = prepared.module, prepared.workload
    launch = opened.launches[0]
    kernel = link(module.kernels[launch.kernel], module)
    memory = device_memory(module, opened, {}, Budget())
    trace = run(kernel, module, launch, memory, sample_blocks(launch.grid, blocks))
    isa = isa_of(module.target)
    needs = compiled_registers(kernel, isa, launch.registers)
    machine = machine_code(kernel, needs.room, isa)
    launch = replace(launch, registers=needs.count)  # of the kernel: its machine code has more names for them
    shared = layout(module, kernel, launch.dynamic_shared).shared_bytes  # before: machine code has no prototypes
    traced = as_machine_code(trace, machine)
    return write_tasklist(translate_trace(machine.kernel, module, traced, launch, shared=shared))


def _translated_machine_code(workload: Workload, blocks: int) -> TaskList:
    """The first launch of a traced run, from those of the blocks wanted that are in the trace."""
    first = MachineTraces(workload, Budget()).launch(0)
    wanted = set(sample_blocks(first.launch.grid, blocks))
    present = [block for block in first.whole.blocks.tolist() if block in wanted]
    trace = first.run(present or first.whole.blocks.tolist()[:blocks])
    return translate_trace(first.kernel, first.module, trace, first.launch)
