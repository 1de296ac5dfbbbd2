"""The order in which the compiler of machine code issues the instructions of a basic block.

PTX is not what the hardware runs: ptxas schedules every basic block, above all by moving loads ahead of the arithmetic
between them, so that they are in flight together. Here that is list scheduling (Gibbons and Muchnick, "Efficient
Instruction Scheduling for a Pipelined Architecture", 1986): of the instructions whose operands are computed, the one
with the longest way to the end of the block is next, unless the registers are all taken.

What may not change places: readers and writers of a register; accesses to memory that may be the same, one of which
writes; anything and a barrier, fence, call or exit; the last instruction, where it ends the block.

The compiler does not know what the caches will hold, so it expects nominal latencies (`_EXPECTED`), the same for all
GPUs.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.exec.trace import Trace
from ppt_gpu.exec.trace_parts import spans
from ppt_gpu.ptx.cfg import ControlFlow, control_flow
from ppt_gpu.ptx.instructions import access_kind, is_branch, is_exit, is_traced, memory_space, operation
from ppt_gpu.ptx.liveness import EXTRA_REGISTERS, live_out, register_weights
from ppt_gpu.ptx.module import Instruction, Kernel

#: instructions that stay where they are, and the others on their side of them
_WALLS = frozenset(
    (
        "bar",
        "barrier",
        "membar",
        "fence",
        "call",
        "ret",
        "exit",
        "trap",
        "brkpt",
        "bra",
        "brx",
        "nanosleep",
        "setmaxnreg",
    )
)
#: cycles; of operations by the longest prefix of their name, else ARITHMETIC
_EXPECTED = {
    "load": 32,
    "load.shared": 24,
    "load.constant": 8,
    "load.param": 1,
    "atomic": 100,
    "sfu": 20,
    "fp64": 8,
    "tensor": 18,
}
ARITHMETIC = 5
#: what a block has at most to be ordered: compilers, too, give up on long ones
LONGEST = 4096


def machine_order(kernel: Kernel, registers: int) -> NDArray[np.int32]:
    """[I] the instruction that stands in each place: a permutation within each basic block.

    registers: 32-bit registers that a thread has; values that are alive at once take no more, where an order allows.
    """
    latency = [expected_latency(instruction) for instruction in kernel.instructions]
    flow = control_flow(kernel)
    weights, alive = register_weights(kernel), live_out(kernel, flow)
    order = np.arange(len(kernel.instructions), dtype=np.int32)
    for block, (first, end) in enumerate(zip(flow.block_start, flow.block_end, strict=True)):
        if 2 < end - first <= LONGEST:
            found = _Block(kernel.instructions[first:end], latency[first:end], weights, alive[block]).schedule(
                registers
            )
            order[first:end] = np.array(found, np.int32) + first
    return order


def expected_latency(instruction: Instruction) -> int:
    """Cycles until the result can be used, as the compiler expects them."""
    name = operation(instruction)
    while name and name not in _EXPECTED:
        name = name.rpartition(".")[0]
    return _EXPECTED.get(name, ARITHMETIC)


class _Block:
    """The instructions of one basic block, numbered from 0, and who must follow whom."""

    def __init__(self, code: Sequence[Instruction], latency: Sequence[int], weights: Sequence[int], alive: int) -> None:
        self.code, self.latency, self.weights, self.alive = code, latency, weights, alive
        self.followers: list[dict[int, int]] = [{} for _ in code]  # later instruction -> cycles between the two
        self.leaders = [0] * len(code)  # how many an instruction waits for
        self._link_registers()
        self._link_memory()
        for follower in self.followers:
            for number in follower:
                self.leaders[number] += 1
        self.height = [0] * len(code)  # cycles to the end of the block, along the longest chain
        for number in reversed(range(len(code))):
            self.height[number] = max((gap + self.height[n] for n, gap in self.followers[number].items()), default=0)

    def _after(self, earlier: int, later: int, gap: int) -> None:
        known = self.followers[earlier]
        known[later] = max(known.get(later, 0), gap)

    def _link_registers(self) -> None:
        writer: dict[int, int] = {}
        readers: dict[int, list[int]] = {}
        for number, instruction in enumerate(self.code):
            for register in instruction.reads:
                if register in writer:
                    self._after(writer[register], number, self.latency[writer[register]])
            for register in instruction.writes:
                if register in writer:
                    self._after(writer[register], number, 1)
                for reader in readers.get(register, ()):
                    if reader != number:
                        self._after(reader, number, 0)
            for register in instruction.reads:
                readers.setdefault(register, []).append(number)
            for register in instruction.writes:
                writer[register], readers[register] = number, []

    def _link_memory(self) -> None:
        wall = -1
        since: list[int] = []  # instructions since the last wall
        touched: list[tuple[int, str, bool]] = []  # accesses since then: number, space, writes
        for number, instruction in enumerate(self.code):
            if _is_wall(instruction):
                for other in since or ([wall] if wall >= 0 else []):
                    self._after(other, number, 0)
                wall, since, touched = number, [], []
                continue
            if wall >= 0:
                self._after(wall, number, 0)
            since.append(number)
            kind = access_kind(instruction)
            if kind is None:
                continue
            space, writes = memory_space(instruction), kind != "load"
            if not writes and (space in ("param", "constant") or "nc" in instruction.modifiers):
                continue
            for other, theirs, wrote in touched:
                if (writes or wrote) and (space == theirs or "generic" in (space, theirs)):
                    self._after(other, number, 0)
            touched.append((number, space or "generic", writes or "volatile" in instruction.modifiers))

    def schedule(self, registers: int) -> list[int]:
        """The numbers in the order of issue."""
        leaders = list(self.leaders)
        readers = self._readers()
        live = self._live_in(readers)
        room = registers - EXTRA_REGISTERS
        taken = sum(self.weights[r] for r in live)
        ready: list[tuple[int, int]] = []  # (-height, number)
        later: list[tuple[int, int]] = []  # (cycle, number)
        earliest = [0] * len(self.code)
        for number, count in enumerate(leaders):
            if count == 0:
                heapq.heappush(ready, (-self.height[number], number))
        found: list[int] = []
        while ready or later:
            now = len(found)
            while later and (later[0][0] <= now or not ready):
                _, number = heapq.heappop(later)
                heapq.heappush(ready, (-self.height[number], number))
            if taken + self._change(ready[0][1], readers, live) > room:  # rather wait for a result than for registers
                ready += [(-self.height[number], number) for _, number in later]
                later = []
                heapq.heapify(ready)
            number = self._next(ready, taken, room, readers, live)
            found.append(number)
            taken += self._change(number, readers, live)
            self._issue(number, readers, live)
            for follower, gap in self.followers[number].items():
                earliest[follower] = max(earliest[follower], now + gap)
                leaders[follower] -= 1
                if leaders[follower] == 0:
                    heapq.heappush(later, (earliest[follower], follower))
        return found

    def _next(
        self, ready: list[tuple[int, int]], taken: int, room: int, readers: dict[int, int], live: set[int]
    ) -> int:
        """The ready instruction of the longest way; when registers are short, of those that need the fewest more."""
        change = self._change(ready[0][1], readers, live)
        if change <= 0 or taken + change <= room:
            return heapq.heappop(ready)[1]
        least = min(range(len(ready)), key=lambda k: (self._change(ready[k][1], readers, live), ready[k][1]))
        number = ready[least][1]
        ready[least] = ready[-1]
        ready.pop()
        heapq.heapify(ready)
        return number

    def _readers(self) -> dict[int, int]:
        """How often each register is still read in the block."""
        count: dict[int, int] = {}
        for instruction in self.code:
            for register in set(instruction.reads):
                count[register] = count.get(register, 0) + 1
        return count

    def _live_in(self, readers: dict[int, int]) -> set[int]:
        written: set[int] = set()
        live = set()
        for instruction in self.code:
            live |= {r for r in instruction.reads if r not in written}
            if instruction.guard is None:
                written |= set(instruction.writes)
        passing = {r for r in range(self.alive.bit_length()) if self.alive >> r & 1 and r not in written}
        return live | passing

    def _change(self, number: int, readers: dict[int, int], live: set[int]) -> int:
        """Registers that are taken after the instruction beyond those before it."""
        instruction = self.code[number]
        reads, writes = set(instruction.reads), set(instruction.writes)
        freed = sum(
            self.weights[r]
            for r in reads
            if readers[r] == 1 and r in live and not self.alive >> r & 1 and r not in writes
        )
        return sum(self.weights[r] for r in writes if r not in live) - freed

    def _issue(self, number: int, readers: dict[int, int], live: set[int]) -> None:
        instruction = self.code[number]
        for register in set(instruction.reads):
            readers[register] -= 1
            if readers[register] == 0 and not self.alive >> register & 1:
                live.discard(register)
        live |= set(instruction.writes)


def _is_wall(instruction: Instruction) -> bool:
    if instruction.base in _WALLS or is_branch(instruction) or is_exit(instruction):
        return True
    # asynchronous copies, mbarriers, warp-wide matrix instructions of memory: what they touch is not said by operands
    return instruction.base in ("cp", "mbarrier", "wgmma", "tcgen05", "griddepcontrol", "discard", "prefetch")


def reordered(trace: Trace, kernel: Kernel, order: NDArray[np.int32]) -> Trace:
    """`trace` as if the instructions stood in `order`, wherever a warp runs a basic block from its start to its end."""
    if np.array_equal(order, np.arange(len(order))):
        return trace
    traced = np.array([is_traced(instruction) for instruction in kernel.instructions], np.bool_)
    place = _new_places(trace.path_pc, trace.path_start, control_flow(kernel), order)
    pcs = trace.path_pc[place]
    old = np.flatnonzero(traced[trace.path_pc])
    rank = np.full(len(pcs), -1, np.int64)
    rank[old] = np.arange(len(old))
    moved = rank[place]
    moved = moved[moved >= 0]  # [accesses of all paths] which of them comes now
    if np.array_equal(moved, np.arange(len(moved))):
        return replace(trace, path_pc=pcs)
    start = np.searchsorted(old, trace.path_start)
    count, first = np.diff(trace.access_start), start[trace.warp_path]
    index = moved[spans(first, count)] + np.repeat(trace.access_start[:-1] - first, count)
    return replace(
        trace,
        path_pc=pcs,
        access_base=trace.access_base[index],
        access_pattern=trace.access_pattern[index],
        access_space=trace.access_space[index],
    )


def _new_places(
    pcs: NDArray[np.int32], path_start: NDArray[np.int64], flow: ControlFlow, order: NDArray[np.int32]
) -> NDArray[np.int64]:
    """[E] the place of the old stream whose instruction comes to each place."""
    starts = np.array(flow.block_start, np.int64)
    length = np.diff(np.append(starts, flow.block_end[-1] if flow.block_end else 0))
    block = np.searchsorted(starts, pcs, side="right") - 1
    breaks = np.ones(len(pcs) + 1, np.int64)
    breaks[1:-1] = np.diff(pcs) != 1
    breaks[path_start] = 1
    passed = np.cumsum(breaks[:-1])
    place = np.arange(len(pcs))
    first = np.flatnonzero(pcs == starts[block])
    last = first + length[block[first]] - 1
    whole = last < len(pcs)
    first, last = first[whole], last[whole]
    whole = passed[last] == passed[first]
    first, count = first[whole], length[block[first[whole]]]
    if len(first):
        within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        begin = np.repeat(first, count)
        source = np.repeat(starts[block[first]], count)
        place[begin + within] = begin + order[source + within] - source
    return place
