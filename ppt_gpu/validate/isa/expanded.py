"""The machine instructions that we take a kernel to have: each once, as the simulation of a GPU would run them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ppt_gpu.machine.code import MachineCode, machine_code
from ppt_gpu.ptx.module import Kernel
from ppt_gpu.spec.gpu import Isa
from ppt_gpu.tasklist.expand import machine_operations, operations_of

#: 32-bit registers of a thread: they decide about the order only, which does not count
_REGISTERS = 255


def expanded(kernel: Kernel, isa: Isa, *, unroll: bool = False) -> Counter[str]:
    """How often each machine operation is in the code of `kernel`, linked with its functions, on a GPU of this ISA.

    unroll: with the iterations that unrolled loops have side by side; else loops are those of the PTX.
    """
    if not isa.scheduled:
        return Counter(name for each in kernel.instructions for name in machine_operations(each, isa))
    if not unroll:
        kernel = replace(kernel, rolled=frozenset(range(len(kernel.instructions))))
    made = machine_code(kernel, _REGISTERS, isa)
    return Counter(name for place in _places(made) for name in operations_of(made.kernel, place, isa))


def _places(made: MachineCode) -> list[int]:
    """Instructions of `made`: of each block the longest straight-line code that it is in, unrolled or not."""
    places: list[int] = []
    chosen: set[frozenset[int]] = set()
    covered: set[int] = set()
    for template in sorted(made.templates, key=lambda template: -len(set(template.blocks))):
        blocks = frozenset(template.blocks)
        if blocks in chosen or not covered & blocks:
            chosen.add(blocks)
            covered |= blocks
            places += template.code.tolist()
    for block, (first, end) in enumerate(zip(made.flow.block_start, made.flow.block_end, strict=True)):
        if block not in covered:
            places += range(first, end)
    return places
