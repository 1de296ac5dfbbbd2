"""A kernel cut into segments, the units that compiled code runs and records whole, and what lives across them.

A segment is a basic block, or a part of one: a call or a barrier ends a segment, and so does reaching MAX_SEGMENT
instructions, because compile time grows faster than a segment's length. A last, empty segment stands for the end of
the kernel. A call is followed by the segment behind it; the functions' segments stand behind the kernel's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ppt_gpu.emulator.analysis.spin_loops import Waiting, tests_mbarrier, waiting_loops
from ppt_gpu.ptx.cfg import ControlFlow, control_flow
from ppt_gpu.ptx.instructions import is_branch, is_call, is_exit
from ppt_gpu.ptx.linking.linked import LinkedKernel
from ppt_gpu.ptx.linking.liveness import members
from ppt_gpu.ptx.module import Instruction, Kernel, Target

MAX_SEGMENT = 128  # instructions


@dataclass(frozen=True)
class Flow:
    """S segments in text order, the end of the kernel being the last.

    `start[s]` to `start[s + 1]` are the instructions of segment s.
    """

    start: tuple[int, ...]  # [S+1]
    successors: tuple[tuple[int, ...], ...]  # [S]; none for leaving the kernel or function
    join: tuple[int, ...]  # [S] segment where the branch at its end reconverges, -1: at the exit, or no branch
    live_in: tuple[int, ...]  # [S] bit set of registers that may be read before they are written
    live_out: tuple[int, ...]  # [S] bit set of registers that someone may read later
    crossing: int  # bit set of registers that live across segments: those need a place in memory
    entry: int  # bit set of registers that may be read before they are written
    waiting: Waiting
    segment_of: dict[int, int]  # first instruction of a segment -> segment

    def only(self, registers: Iterable[int]) -> Flow:
        """The same segments, of code that computes only these registers."""
        bits = _bits(registers)
        live_in, live_out = (tuple(live & bits for live in each) for each in (self.live_in, self.live_out))
        return replace(self, live_in=live_in, live_out=live_out, crossing=self.crossing & bits, entry=self.entry & bits)

    @property
    def segments(self) -> int:
        return len(self.start) - 1

    def segment_of_last(self, index: int) -> int:
        """The segment that the instruction `index` ends."""
        return self.segment_of[index + 1] - 1

    def entry_registers(self, entry: int) -> Iterable[int]:
        """Registers that a function may read before it writes them; `entry` is its first instruction."""
        return members(self.live_in[self.segment_of[entry]])


def flow_of(kernel: LinkedKernel) -> Flow:
    """Cut a kernel into segments and find which registers live across them."""
    graph = control_flow(kernel)
    starts = _cut(kernel, graph)
    end = len(kernel.instructions)
    starts.append(end)
    segment_of = {start: s for s, start in enumerate(starts)}
    bounds = (*starts, end)
    successors = tuple(_successors(kernel, bounds[s], bounds[s + 1], segment_of) for s in range(len(starts)))
    join = tuple(_join(kernel, graph, bounds[s], bounds[s + 1], segment_of) for s in range(len(starts)))
    live_in, live_out = _liveness(kernel, bounds, successors)
    crossing = 0
    for live in (*live_out, *(live_in[segment_of[entry]] for entry in kernel.entries if entry in segment_of)):
        crossing |= live
    waiting = waiting_loops(kernel, bounds, successors, live_in)
    return Flow(bounds, successors, join, live_in, live_out, crossing, live_in[0], waiting, segment_of)


def _cut(kernel: Kernel, graph: ControlFlow) -> list[int]:
    starts = []
    for first, last in zip(graph.block_start, graph.block_end, strict=True):
        starts.append(first)
        for index in range(first, last - 1):
            instruction = kernel.instructions[index]
            if is_interruption(instruction) or tests_mbarrier(instruction) or index + 1 - starts[-1] == MAX_SEGMENT:
                starts.append(index + 1)
    return starts


def is_block_barrier(instruction: Instruction) -> bool:
    """bar and barrier of the block, arriving included."""
    return instruction.base in ("bar", "barrier") and not {"warp", "cluster"} & set(instruction.modifiers)


def is_warp_barrier(instruction: Instruction) -> bool:
    return instruction.base in ("bar", "barrier") and "warp" in instruction.modifiers


def is_cluster_wait(instruction: Instruction) -> bool:
    """barrier.cluster.wait"""
    return instruction.base == "barrier" and {"cluster", "wait"} <= set(instruction.modifiers)


def is_group_meeting(instruction: Instruction) -> bool:
    """wgmma.fence and wgmma.wait_group: four warps multiply together, so they come to it, and leave it, together.

    What each wrote to shared memory before the fence is there for all, and is read before one of them goes on.
    """
    return instruction.base == "wgmma" and instruction.modifiers[0] in ("fence", "wait_group")


def is_interruption(instruction: Instruction) -> bool:
    """Does the warp come back behind it from outside of the segment?"""
    return is_call(instruction) or any(
        kind(instruction) for kind in (is_block_barrier, is_warp_barrier, is_cluster_wait, is_group_meeting)
    )


def branch_targets(kernel: Kernel, instruction: Instruction) -> tuple[int, ...]:
    """The instruction indices that a bra or brx can go to, in the order of its list."""
    for operand in instruction.operands:
        if isinstance(operand, Target):
            return (operand.index,) if operand.index >= 0 else kernel.branch_tables[operand.name]
    return ()


def _join(kernel: Kernel, graph: ControlFlow, first: int, end: int, segment_of: dict[int, int]) -> int:
    if first == end:
        return -1
    last = kernel.instructions[end - 1]
    if is_call(last) and last.guard is not None:
        return segment_of[end]
    target = graph.reconvergence.get(end - 1, -1)
    return segment_of[target] if target >= 0 else -1


def _successors(kernel: Kernel, first: int, end: int, segment_of: dict[int, int]) -> tuple[int, ...]:
    if first == end:
        return ()
    last = kernel.instructions[end - 1]
    found: set[int] = set()
    if is_branch(last):
        found.update(segment_of[target] for target in branch_targets(kernel, last))
    if last.guard is not None or not (is_branch(last) or is_exit(last)):
        found.add(segment_of[end])
    return tuple(sorted(found))


def _bits(registers: Iterable[int]) -> int:
    result = 0
    for register in registers:
        result |= 1 << register
    return result


def _liveness(
    kernel: LinkedKernel, bounds: tuple[int, ...], successors: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(live in, live out) of each segment as bit sets; a guarded write keeps the old value alive."""
    count = len(successors)
    used, defined, at_exit = [0] * count, [0] * count, [0] * count
    for function in kernel.functions.values():
        results = _bits(r.register for r in function.returns if r.register >= 0)
        for s in range(count) if results else ():
            if function.entry <= bounds[s] < function.end and not successors[s]:
                at_exit[s] = results
    for s in range(count):
        for instruction in kernel.instructions[bounds[s] : bounds[s + 1]]:
            used[s] |= _bits(instruction.reads) & ~defined[s]
            written = _bits(instruction.writes)
            if instruction.guard is None:
                defined[s] |= written
            else:
                used[s] |= written & ~defined[s]
    predecessors: list[list[int]] = [[] for _ in range(count)]
    for s, following in enumerate(successors):
        for t in following:
            predecessors[t].append(s)
    live_in, live_out = [0] * count, [0] * count
    waiting, queued = list(range(count)), [True] * count
    while waiting:
        s = waiting.pop()
        queued[s] = False
        out = at_exit[s]
        for t in successors[s]:
            out |= live_in[t]
        into = used[s] | (out & ~defined[s])
        live_out[s] = out
        if into != live_in[s]:
            live_in[s] = into
            for p in predecessors[s]:
                if not queued[p]:
                    queued[p] = True
                    waiting.append(p)
    return tuple(live_in), tuple(live_out)
