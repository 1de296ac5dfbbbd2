"""Do blocks share work out among themselves? A counter in global memory tells them what to do next, or where to write.

Blocks that raise a counter and go by what it was take parts of the work from a queue, draw tickets, append to a list,
or find out which of them is the last. What such a block does depends on how far the others are, so a few blocks that
run alone show something else: they take what is everybody's. Compare-and-swap is no counter: lanes retry with it.

The analysis follows the counter's old value forward over registers without regard to order, shared, local and parameter
memory being one variable, to what decides where control goes or which addresses are accessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ppt_gpu.emulator.analysis.data_dependence import deciding
from ppt_gpu.emulator.analysis.per_kernel_cache import once_a_kernel
from ppt_gpu.emulator.analysis.spin_loops import loops, polls
from ppt_gpu.ptx.cfg import ControlFlow, control_flow
from ppt_gpu.ptx.instructions import access_kind, memory_space
from ppt_gpu.ptx.linking.mangling import short_name
from ppt_gpu.ptx.module import Instruction, Kernel

#: atomics that count
_COUNTING = frozenset(("add", "inc", "dec"))
_SCRATCH = -1  # stands for what shared, local and parameter memory hold, among the registers
_NOT_SCRATCH = frozenset(("global", "constant"))


@dataclass(frozen=True)
class Claim:
    """An atomic whose result tells a thread what to do."""

    instruction: Instruction
    repeated: bool  # a block comes back for more until it finds none: the loop around it ends by what it returns


@once_a_kernel
def claims_of(kernel: Kernel) -> tuple[Claim, ...]:
    """The atomics on global memory by which blocks of `kernel` share work out, in the order of the code."""
    counters = [i for i in kernel.instructions if _counts(i)]
    if not counters:
        return ()
    reached = _reached(kernel, counters)
    deciding_bits = _bits(reached, (register for i in kernel.instructions for register in deciding(i)))
    flow = control_flow(kernel)
    found = []
    for bit, counter in enumerate(counters):
        if deciding_bits >> bit & 1:
            leaving = _bits(reached, (r for i in _exits(kernel, flow, counter) for r in deciding(i)))
            found.append(Claim(counter, bool(leaving >> bit & 1)))
    return tuple(found)


def come_back(kernel: Kernel) -> bool:
    """Whether blocks of `kernel` come back for more of a work that they share."""
    return any(claim.repeated for claim in claims_of(kernel))


@once_a_kernel
def waits_for_blocks(kernel: Kernel) -> bool:
    """Is there a loop that only waits for what other blocks write: a flag, the sum of all before, the end of a round?

    Run in the order of their tickets, blocks find it there and wait for nobody; on a GPU they come at the same time.
    """
    flow = control_flow(kernel)
    todo = loops(range(len(flow.successors)), flow.successors)
    for loop in todo:
        if polls([i for b in sorted(loop) for i in kernel.instructions[flow.block_start[b] : flow.block_end[b]]]):
            return True
        todo += loops(sorted(loop - {min(loop)}), flow.successors)
    return False


def _bits(reached: dict[int, int], registers: Iterable[int]) -> int:
    """The counters from which the value of any of these registers may come."""
    found = 0
    for register in registers:
        found |= reached.get(register, 0)
    return found


def _counts(i: Instruction) -> bool:
    counting = i.base == "atom" and bool(_COUNTING & set(i.modifiers))
    return counting and bool(i.writes) and memory_space(i) in ("global", "generic")


def _reached(kernel: Kernel, counters: list[Instruction]) -> dict[int, int]:
    """By register, and for _SCRATCH: of which counters its value may come, as a bit set."""
    own = {i.index: 1 << bit for bit, i in enumerate(counters)}
    reached: dict[int, int] = {}
    grown = True
    while grown:
        grown = False
        for i in kernel.instructions:
            value = own.get(i.index, 0)
            for register in i.reads:
                value |= reached.get(register, 0)
            scratch = access_kind(i) is not None and memory_space(i) not in _NOT_SCRATCH
            if scratch:
                value |= reached.get(_SCRATCH, 0)
            targets = [*i.writes, _SCRATCH] if scratch and access_kind(i) != "load" else i.writes
            for target in targets:
                if value & ~reached.get(target, 0):
                    reached[target] = reached.get(target, 0) | value
                    grown = True
    return reached


def _exits(kernel: Kernel, flow: ControlFlow, counter: Instruction) -> list[Instruction]:
    """The branches by which control leaves the loops around `counter` for good; none where it is in no loop."""
    own = flow.block_of(counter.index)
    around = loops(range(len(flow.successors)), flow.successors)
    loop = next((blocks for blocks in around if own in blocks), frozenset[int]())
    leaving = [block for block in sorted(loop) if not loop.issuperset(flow.successors[block])]
    return [kernel.instructions[flow.block_end[block] - 1] for block in leaving]


def sharing_text(claims: Sequence[Claim], whole: bool) -> str:
    """What a prediction says of kernels with these claims, whose grid was run whole or not."""
    first = next((claim for claim in claims if claim.repeated), claims[0]).instruction
    where = f"({first.opcode}, line {first.line})"
    if whole:
        return f"blocks share work out among themselves {where}: the whole grid was run to learn what each does"
    return f"blocks go by what others did before {where}, but the grid is too large to run whole: they ran without"


def waiting_text(kernel: str) -> str:
    """What a prediction says of kernels such as those with a barrier over the grid."""
    return (
        f"blocks of kernel '{short_name(kernel)}' wait for others: the whole grid was run to learn what each does; the "
        "SM runs its blocks as if the others had always been there in time, and a GPU that cannot hold all of them at "
        "once may never end"
    )


def lock_text(kernel: str) -> str:
    """What a prediction says of kernels whose blocks wait for others, though each can run without them."""
    return (
        f"blocks of kernel '{short_name(kernel)}' wait for others, as for a lock: each was simulated as if it never "
        "had to, and a GPU may take much longer"
    )
