"""How long `nanosleep` holds up a warp: the time that it names, where that is a constant.

PTX promises a sleep "approximately close to" that time, between none of it and twice as much (PTX ISA, nanosleep).
Kernels with decoupled look-back sleep so long before they look for what their predecessors have published. Sleeps in a
loop that only waits run as long as others make it wait; such turns are not in a trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ppt_gpu.machine.code import MachineKernel
from ppt_gpu.ptx.module import Imm, Instruction, Kernel, Reg
from ppt_gpu.ptx.uses import writers_of
from ppt_gpu.sm.program.ops import OpTable
from ppt_gpu.sm.program.program import KIND_BRANCH
from ppt_gpu.spec.gpu import Gpu


def with_sleeps(ops: OpTable, kernel: Kernel, gpu: Gpu) -> OpTable:
    """The operations; those of `nanosleep` take as long as it says: nothing of the warp issues before that."""
    times = sleep_times(kernel)
    if not times:
        return ops
    latency, kind = ops.latency.copy(), ops.kind.copy()
    for pc, nanoseconds in times.items():
        mine = slice(ops.start[pc], ops.start[pc + 1])
        latency[mine] = np.maximum(latency[mine], round(nanoseconds * 1e-9 * gpu.sm.clock))
        kind[mine] = KIND_BRANCH
    return replace(ops, latency=latency, kind=kind)


def sleep_times(kernel: Kernel) -> dict[int, int]:
    """Nanoseconds of each `nanosleep` of the kernel whose time is a constant, by instruction."""
    sleeping = [pc for pc, instruction in enumerate(kernel.instructions) if instruction.base == "nanosleep"]
    if not sleeping:
        return {}
    ptx = kernel.ptx if isinstance(kernel, MachineKernel) else kernel  # there every register has its first writer
    origin = kernel.origin if isinstance(kernel, MachineKernel) else range(len(kernel.instructions))
    writers = writers_of(ptx.instructions)
    times = {pc: _constant(ptx.instructions[origin[pc]], writers) for pc in sleeping}
    return {pc: time for pc, time in times.items() if time is not None}


def _constant(instruction: Instruction, writers: Mapping[int, Sequence[Instruction]]) -> int | None:
    operand = instruction.operands[0]
    sources = [operand]
    if isinstance(operand, Reg):
        sources = [i.operands[1] for i in writers.get(operand.id, ()) if i.base == "mov" and i.guard is None]
        if len(sources) != len(writers.get(operand.id, ())):
            return None
    values = {source.value for source in sources if isinstance(source, Imm)}
    if len(values) != 1 or not all(isinstance(source, Imm) for source in sources):
        return None
    return int(values.pop())
