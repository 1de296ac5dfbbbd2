"""A kernel cut into segments, the units that compiled code runs and records whole, and what lives across them.

A segment is a basic block, or a part of one: a barrier ends a segment, and so does reaching MAX_SEGMENT instructions,
because compile time grows faster than a segment's length. A last, empty segment stands for the end of the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.ptx.cfg import ControlFlow, control_flow
from ppt_gpu.ptx.instructions import form, is_branch, is_exit
from ppt_gpu.ptx.module import Instruction, Kernel, Target

MAX_SEGMENT = 128  # instructions
SPIN_ATOMIC, SPIN_READ = 1, 64  # turns in a loop with atomics, or one that only reads memory


@dataclass(frozen=True)
class Flow:
    """S segments in text order, the end of the kernel being the last.

    `start[s]` to `start[s + 1]` are the instructions of segment s.
    """

    start: tuple[int, ...]  # [S+1]
    successors: tuple[tuple[int, ...], ...]  # [S]; none for leaving the kernel
    join: tuple[int, ...]  # [S] segment where the branch at its end reconverges, -1: at the exit, or no branch
    live_out: tuple[int, ...]  # [S] bit set of registers that someone may read later
    crossing: int  # bit set of registers that live across segments: those need a place in memory
    entry: int  # bit set of registers that may be read before they are written
    spins: tuple[int, ...]  # [S] turns after which the lanes of a divergent warp are taken to wait for others; 0: never
    segment_of: dict[int, int]  # first instruction of a segment -> segment

    @property
    def segments(self) -> int:
        return len(self.start) - 1


def flow_of(kernel: Kernel) -> Flow:
    """Cut a kernel into segments and find which registers live across them."""
    graph = control_flow(kernel)
    starts = _cut(kernel, graph)
    end = len(kernel.instructions)
    starts.append(end)
    segment_of = {start: s for s, start in enumerate(starts)}
    bounds = (*starts, end)
    successors = tuple(_successors(kernel, bounds[s], bounds[s + 1], segment_of) for s in range(len(starts)))
    join = []
    for s in range(len(starts)):
        target = graph.reconvergence.get(bounds[s + 1] - 1, -1) if bounds[s] < bounds[s + 1] else -1
        join.append(segment_of[target] if target >= 0 else -1)
    live_in, live_out = _liveness(kernel, bounds, successors)
    crossing = 0
    for live in live_out:
        crossing |= live
    spins = _spinning(kernel, bounds, successors)
    return Flow(bounds, successors, tuple(join), live_out, crossing | live_in[0], live_in[0], spins, segment_of)


def _cut(kernel: Kernel, graph: ControlFlow) -> list[int]:
    starts = []
    for first, last in zip(graph.block_start, graph.block_end, strict=True):
        starts.append(first)
        for index in range(first, last - 1):
            instruction = kernel.instructions[index]
            if is_block_barrier(instruction) or waits(instruction) or index + 1 - starts[-1] == MAX_SEGMENT:
                starts.append(index + 1)
    return starts


def is_block_barrier(instruction: Instruction) -> bool:
    """bar and barrier of the block, arriving included."""
    return instruction.base in ("bar", "barrier") and not {"warp", "cluster"} & set(instruction.modifiers)


def waits(instruction: Instruction) -> bool:
    """mbarrier.test_wait and try_wait: a warp with lanes that must wait ends its turn there."""
    return instruction.base == "mbarrier" and instruction.modifiers[0] in ("test_wait", "try_wait")


def branch_targets(kernel: Kernel, instruction: Instruction) -> tuple[int, ...]:
    """The instruction indices that a bra or brx can go to, in the order of its list."""
    for operand in instruction.operands:
        if isinstance(operand, Target):
            return (operand.index,) if operand.index >= 0 else kernel.branch_tables[operand.name]
    return ()


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


def _bits(registers: tuple[int, ...]) -> int:
    result = 0
    for register in registers:
        result |= 1 << register
    return result


def _liveness(
    kernel: Kernel, bounds: tuple[int, ...], successors: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(live in, live out) of each segment as bit sets; a guarded write keeps the old value alive."""
    count = len(successors)
    used, defined = [0] * count, [0] * count
    for s in range(count):
        for instruction in kernel.instructions[bounds[s] : bounds[s + 1]]:
            used[s] |= _bits(instruction.reads) & ~defined[s]
            written = _bits(instruction.writes)
            if instruction.guard is None:
                defined[s] |= written
            else:
                used[s] |= written & ~defined[s]
    live_in, live_out = [0] * count, [0] * count
    changed = True
    while changed:
        changed = False
        for s in reversed(range(count)):
            out = 0
            for t in successors[s]:
                out |= live_in[t]
            into = used[s] | (out & ~defined[s])
            if into != live_in[s] or out != live_out[s]:
                live_in[s], live_out[s], changed = into, out, True
    return tuple(live_in), tuple(live_out)


def _spinning(kernel: Kernel, bounds: tuple[int, ...], successors: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """For segments in a loop (strongly connected component) that reads shared or global memory: Flow.spins."""
    component = _components(successors)
    size: dict[int, int] = {}
    turns: dict[int, int] = {}
    for s, c in enumerate(component):
        size[c] = size.get(c, 0) + 1 + (s in successors[s])
        for instruction in kernel.instructions[bounds[s] : bounds[s + 1]]:
            known = form(instruction.opcode)
            if waits(instruction):
                turns[c] = SPIN_ATOMIC
            if known.space in ("constant", "param") or known.access not in ("load", "atomic"):
                continue
            limit = SPIN_ATOMIC if known.access == "atomic" else SPIN_READ
            turns[c] = min(turns.get(c, limit), limit)
    return tuple(turns.get(c, 0) if size[c] > 1 else 0 for c in component)


def _components(successors: tuple[tuple[int, ...], ...]) -> list[int]:
    """A number for each node's strongly connected component (Tarjan 1972, without recursion)."""
    count = len(successors)
    number, low, component = [-1] * count, [0] * count, [-1] * count
    clock = 0
    path: list[int] = []
    for root in range(count):
        if number[root] >= 0:
            continue
        number[root] = low[root] = clock
        clock += 1
        path.append(root)
        work = [(root, iter(successors[root]))]
        while work:
            node, following = work[-1]
            for t in following:
                if number[t] < 0:
                    number[t] = low[t] = clock
                    clock += 1
                    path.append(t)
                    work.append((t, iter(successors[t])))
                    break
                if component[t] < 0:
                    low[node] = min(low[node], number[t])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    while component[node] < 0:
                        component[path.pop()] = node
    return component
