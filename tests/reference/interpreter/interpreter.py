"""The plain reference of functional execution: one warp at a time, one instruction at a time, in numpy.

Slow and obviously right. `interpret` gives the same memory and the same trace as the compiled engine
(`ppt_gpu.emulator.run.run`), except for the last places of approximate functions and the payloads of NaNs.

Warps of a block run in turn, each to its next barrier; when every warp had its turn the barriers open. When every warp
of a block only waits, the next block begins, and blocks take turns until none waits. Blocks that come back for more of
a work that they share (`ppt_gpu.emulator.analysis.dynamic_work`) take short turns all the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.analysis.assumed import assumed_warnings
from ppt_gpu.emulator.analysis.dynamic_work import come_back
from ppt_gpu.emulator.analysis.flow import Flow, flow_of
from ppt_gpu.emulator.analysis.notes import warnings_of
from ppt_gpu.emulator.forms.computes import Unsupported
from ppt_gpu.emulator.forms.described import Described, described
from ppt_gpu.emulator.launch.layout import layout
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.memory.warp_context import barrier_text
from ppt_gpu.emulator.run.faults import cluster_error, stuck_error
from ppt_gpu.emulator.run.launch_state import AT_ONCE, SHORTEST_TURN, shared_turn
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.emulator.trace.trace_parts import only_blocks
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.ptx.module import Instruction, Kernel, Module, Reg
from ppt_gpu.ptx.table import ASSUMED
from ppt_gpu.workload.arguments import pack_arguments
from ppt_gpu.workload.block_cluster import IDLE_ROUNDS, blocks_of, cluster_of, whole_clusters
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Launch
from reference.interpreter.address import ADDRESS
from reference.interpreter.asynchronous import ASYNC
from reference.interpreter.atomics import ATOMICS
from reference.interpreter.barrier import Barriers
from reference.interpreter.block import LANES, Block, Launched
from reference.interpreter.call import CALLS
from reference.interpreter.collective import COLLECTIVE
from reference.interpreter.described import execute as execute_described
from reference.interpreter.matrix import MATRIX
from reference.interpreter.matrix_move import MATRIX_MOVE
from reference.interpreter.memory import MEMORY
from reference.interpreter.move import MOVES
from reference.interpreter.runner import Runner
from reference.interpreter.texture import TEXTURES
from reference.interpreter.trace import Recorder, build_trace
from reference.interpreter.warp import Execute, Warp, unsupported
from reference.interpreter.wgmma import WGMMA

#: Instructions without an effect on values.
_NOTHING = ("membar", "fence", "nanosleep", "pmevent", "prefetch", "prefetchu", "griddepcontrol")
EXECUTE: dict[str, Execute] = {
    **MOVES, **MEMORY, **ATOMICS, **ADDRESS, **TEXTURES, **COLLECTIVE, **ASYNC,
    **MATRIX, **MATRIX_MOVE, **CALLS, **WGMMA,
}  # fmt: skip


def _pretend(warp: Warp, instruction: Instruction) -> None:
    """An assumed instruction: registers that it would write become 0, predicates true: those mostly say that something
    has succeeded."""
    for register in instruction.writes:
        value = warp.kernel.registers[register].type == "pred"
        warp.write(Reg(register), np.full(32, value, np.uint64))


EXECUTE[ASSUMED] = _pretend
EXECUTE.update(dict.fromkeys(_NOTHING, lambda warp, ins: None))


def interpret(
    kernel: Kernel,
    module: Module,
    launch: Launch,
    memory: DeviceMemory,
    blocks: Sequence[int],
    *,
    budget: Budget | None = None,
) -> Trace:
    """Run `blocks` (linear ids) of a launch one after another; `memory` changes, the trace is returned.

    Raises PptError with the PTX line for an instruction that is not supported, an access out of bounds or misaligned,
    a barrier that never opens, a block that waits for what no block does, and BudgetError when `budget.instructions`
    warp instructions were not enough.
    """
    outside = [block for block in blocks if not 0 <= block < launch.blocks]
    if outside:
        raise PptError(f"block {outside[0]} is not in the grid", hint=f"its blocks are 0 to {launch.blocks - 1}")
    limits = budget or Budget()
    linked = link(kernel, module)
    params = pack_arguments(module, kernel, launch, memory)
    places = layout(module, linked, launch.dynamic_shared, limits.stack)
    launched = Launched(module, linked, memory, places, params, launch)
    left = [limits.instructions]
    flow = flow_of(linked)
    cluster = cluster_of(kernel, launch)
    together = whole_clusters(blocks, launch.grid, cluster)
    flying = [_Flying(launched, linear, flow, left) for linear in together]
    size = blocks_of(cluster)
    clusters = [flying[first : first + size] for first in range(0, len(flying), size)]
    with np.errstate(all="ignore"):
        if len(clusters) > 1 and come_back(linked):
            _share_out(clusters, launched)
        elif size == 1:
            _run_all(flying, launched)
        else:
            for blocks_together in clusters:
                _run_cluster(blocks_together, launched, len(together))
    recorders: list[Recorder] = [runner.warp.recorder for block in flying for runner in block.runners]
    warps = -(-launch.threads_per_block // LANES)
    count = len(linked.instructions)
    noted = warnings_of(linked, module.named, launched.notes.items())
    warnings = (*memory.warnings, *assumed_warnings(linked, module), *noted)
    whole = build_trace(together, recorders, count, warps, memory.ranges(), warnings, launched.printed.text)
    return only_blocks(whole, list(blocks))


@lru_cache(maxsize=65536)
def _described(ins: Instruction) -> Described | None:
    try:
        return described(ins)
    except Unsupported as error:
        raise unsupported(ins, str(error)) from None


def _execute(warp: Warp, ins: Instruction) -> None:
    found = _described(ins)
    if found is not None:
        execute_described(warp, found)
        return
    if ins.base not in EXECUTE:
        raise unsupported(ins)
    EXECUTE[ins.base](warp, ins)


class _Flying:
    """A block and its warps."""

    def __init__(self, launched: Launched, linear: int, flow: Flow, budget: list[int]) -> None:
        threads = launched.launch.threads_per_block
        block = Block(
            launched,
            linear,
            np.zeros(launched.layout.shared_room, np.uint8),
            np.zeros((threads, launched.layout.local_bytes), np.uint8),
        )
        self.linear, self.block = linear, block
        self.runners = []
        for number in range(-(-threads // LANES)):
            live = number * LANES + np.arange(LANES) < threads
            warp = Warp(block, number, live, Recorder(len(launched.kernel.instructions)))
            self.runners.append(Runner(warp, flow, _execute, budget))
        self.barriers = Barriers()
        self.budget = budget
        self.moved = False

    @property
    def done(self) -> bool:
        return all(runner.done for runner in self.runners)

    def run(self, turn: int = 0) -> bool:
        """Give the warps turns. Returns True when all are done, False when all of them only wait, or when `turn` warp
        instructions are used up, if it is not 0."""
        begun = self.budget[0]
        while not self.done:
            ready = [r for r in self.runners if not r.done and r.warp not in self.barriers.waiting]
            for runner in ready:
                if runner.turn():
                    arrival, runner.arrival = runner.arrival, type(runner.arrival)()
                    self.barriers.arrive(runner.warp, arrival)
                self.moved = self.moved or runner.moved
            left = [r for r in self.runners if not r.done]
            self.barriers.open([r.warp for r in left])
            ready = [r for r in left if r.warp not in self.barriers.waiting]
            if left and not ready and self.barriers.at_cluster():
                if not open_barrier([self]):
                    return False
                continue
            if left and not ready:
                raise self._deadlock()
            if ready and all(r.stuck for r in ready):
                return False
            if turn and left and begun - self.budget[0] > turn:
                return False
        return True

    def part(self) -> bool:
        """Nothing ends the waiting: lanes at a join go on alone. Returns whether there are any."""
        free = [r for r in self.runners if not r.done and r.warp not in self.barriers.waiting]
        return any(runner.part() for runner in free)

    def _deadlock(self) -> PptError:
        """The error for warps that wait for ever."""
        warp, arrival = next(iter(self.barriers.waiting.items()))
        runner = next(r for r in self.runners if r.warp is warp)
        assert runner.running is not None
        ins = warp.kernel.instructions[runner.running.point - 1]
        here = sum(a.number == arrival.number for a in self.barriers.waiting.values())
        needed = arrival.expected or sum(not r.done for r in self.runners)
        arrived = here + self.barriers.arrived[arrival.number]
        message = f"{barrier_text(arrival.number)} never opens: {arrived} of {needed} warps arrived"
        return PptError(message, path=warp.launched.module.path, line=ins.line, column=ins.column)

    def line(self) -> int:
        """Where the first warp that can run stands."""
        free = [r for r in self.runners if not r.done and r.warp not in self.barriers.waiting]
        runner = next(iter(free or [r for r in self.runners if not r.done]))
        assert runner.running is not None
        return runner.warp.kernel.instructions[runner.running.point].line


def open_barrier(blocks: list[_Flying]) -> bool:
    """Open the barrier of a cluster if every live lane of its blocks has arrived. Returns whether it did."""
    if len(blocks) != len(blocks[0].block.cluster):
        return False
    runners = [runner for block in blocks for runner in block.runners]
    if not any(r.cluster_arrived for r in runners) or any(r.live & ~r.cluster_arrived for r in runners):
        return False
    for runner in runners:
        runner.cluster_arrived = 0
    for block in blocks:
        block.barriers.open_cluster()
    return True


def _round(flying: list[_Flying], turn: int = 0) -> bool:
    """A turn for each block; those that end leave the list. Returns whether any of them got on."""
    moved = False
    for block in list(flying):
        block.moved = False
        if block.run(turn):
            flying.remove(block)
            moved = True
        moved = moved or block.moved
    return moved


def _run_cluster(blocks: list[_Flying], launched: Launched, count: int) -> None:
    """The blocks of one cluster take turns until all have ended."""
    _join(blocks)
    flying, idle = list(blocks), 0
    while flying:
        moved = _round(flying)
        idle = 0 if open_barrier(blocks) or moved else idle + 1
        if idle == IDLE_ROUNDS:
            if not any(block.part() for block in flying):
                raise _stuck(flying[0], launched, count)
            idle = 0


def _join(blocks: list[_Flying]) -> None:
    """The blocks are a cluster."""
    together = [member.block for member in blocks]
    for rank, member in enumerate(together):
        member.rank, member.cluster = rank, together


def _stuck(first: _Flying, launched: Launched, count: int) -> PptError:
    name, path = launched.kernel.name, launched.module.path
    if first.barriers.at_cluster():
        return cluster_error(name, path, launched.launch, first.linear, first.line())
    return stuck_error(name, path, launched.launch, first.linear, first.line(), count)


def _share_out(clusters: list[list[_Flying]], launched: Launched) -> None:
    """Blocks that share work out take short turns, up to AT_ONCE of them; the next begin as others end."""
    size, left = len(clusters[0]), clusters[0][0].budget
    count, instructions = size * len(clusters), left[0]
    begun, idle, most = 0, 0, AT_ONCE
    going: list[tuple[list[_Flying], list[_Flying]]] = []  # of each cluster: who has not ended, everybody
    while going or begun < len(clusters):
        while begun < len(clusters) and size * len(going) < most:
            blocks = clusters[begun]
            if size > 1:
                _join(blocks)
            for block in blocks:
                for runner in block.runners:
                    runner.fuel = SHORTEST_TURN
            going.append((list(blocks), blocks))
            begun += 1
        turn = shared_turn(instructions - left[0], size * begun, len(clusters[0][0].runners))
        moved = False
        for flying, blocks in going:
            moved |= _round(flying, turn)
            moved |= size > 1 and open_barrier(blocks)
        going = [(flying, blocks) for flying, blocks in going if flying]
        idle = 0 if moved else idle + 1
        if idle == IDLE_ROUNDS:
            if any(block.part() for flying, _ in going for block in flying):
                idle = 0
                continue
            if begun == len(clusters):
                raise _stuck(going[0][0][0], launched, count)
            most, idle = min(2 * most, count), 0


def _run_all(blocks: list[_Flying], launched: Launched) -> None:
    """One block after another; where one waits, those behind it begin, and they take turns until none waits."""
    position = 0
    while position < len(blocks):
        flying, more, idle = [blocks[position]], 1, 0
        position += 1
        while flying:
            idle = 0 if _round(flying) else idle + 1
            if idle < IDLE_ROUNDS:
                continue
            idle = 0
            if any(block.part() for block in flying):
                continue
            if position == len(blocks):
                raise _stuck(flying[0], launched, len(blocks))
            flying += blocks[position : position + more]
            position, more = min(position + more, len(blocks)), 2 * more
