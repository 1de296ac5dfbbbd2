"""How one warp of the interpreter runs: its paths, turns, branches, calls and barriers, as compiled code does it.

Lanes that part at a branch run one after another, the side that comes first in the text first, each up to the
branch's immediate post-dominator (Fung et al., "Dynamic Warp Formation and Scheduling for Efficient GPU Control
Flow", MICRO 2007, section 3). A turn ends where a segment begins (`ppt_gpu.emulator.analysis.flow`), so that turns are
the same.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import lru_cache

import numpy as np

from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.emulator.analysis.divergence import Path, give_way
from ppt_gpu.emulator.analysis.flow import Flow, is_group_meeting, is_warp_barrier
from ppt_gpu.emulator.forms.wgmma_form import GROUP
from ppt_gpu.emulator.memory.mbarrier_word import word
from ppt_gpu.emulator.memory.warp_context import BARRIER_OF_CLUSTER, BARRIER_OF_GROUP, Flag
from ppt_gpu.emulator.run.launch_state import TURN
from ppt_gpu.emulator.run.schedule import PATIENCE, WAITS_PARTED, WAITS_TOGETHER
from ppt_gpu.ptx.instructions import barrier_operands, is_traced
from ppt_gpu.ptx.linking.mangling import short_name
from ppt_gpu.ptx.module import Instruction, Reg, Target
from reference.interpreter.barrier import Arrival
from reference.interpreter.block import LANES, Mask, lane_bits
from reference.interpreter.call import Record, call_outside, enter, functions_of, leave
from reference.interpreter.warp import Warp

EXIT = -1  # reconvergence at the kernel's end


class End(Enum):
    """Why a turn ended."""

    DONE = 0
    BARRIER = 1
    TURN = 2
    SYNC = 3  # some lanes wait at a barrier for others of their warp


class Runner:
    """One warp: the path that runs and the stack of those that do not."""

    def __init__(self, warp: Warp, flow: Flow, execute: Callable[[Warp, Instruction], None], budget: list[int]) -> None:
        self.warp, self.flow, self.execute = warp, flow, execute
        self.budget = budget  # instructions left, of all warps
        self.live = lane_bits(warp.live)
        self.running: Path | None = Path(0, self.live, EXIT, 0)
        self.stack: list[Path] = []
        self.calls: list[list[Record]] = [[] for _ in range(LANES)]
        self.arrived = 0  # lanes that wait at a barrier apart from others
        self.arrival = Arrival()
        self.cluster_arrived = 0  # lanes that have arrived at the cluster's barrier in this phase
        self.fuel = TURN  # of a turn
        self.spin = self.waits = 0
        self.lowest = 0  # the least entries on the stack since `spin` began
        self.moved = False  # did something else than wait in its last turn

    @property
    def done(self) -> bool:
        return self.running is None

    @property
    def stuck(self) -> bool:
        """Nothing in the warp ends its waiting."""
        return self.waits >= (WAITS_PARTED if self.stack else WAITS_TOGETHER)

    def turn(self) -> bool:
        """Run until the warp waits, ends, or its turn is over. Returns whether it has arrived at a barrier."""
        if self.spin == 0:
            self.lowest = len(self.stack)
        before = self._place()
        record = self.warp.recorder.mark() if before[0] else None
        end = self._run()
        self.moved = True
        if end == End.TURN:
            assert self.running is not None
            segment = self.flow.segment_of[self.running.point]
            if record is not None and before == self._place() and self.waits:
                self.warp.recorder.undo(record)
            self.waits = self.waits + 1 if self.flow.waiting.only[segment] else 0
            self.spin = self.spin + 1 if self.lowest or self.waits else 0
            self.moved = self.waits < WAITS_TOGETHER
            limit = self.flow.waiting.spins[segment]
            if limit and self.stack and self.spin >= limit:
                self._give_way(split=True)
            return False
        self.spin = self.waits = 0
        if end != End.SYNC or self._give_way(split=False):
            return end == End.BARRIER
        assert self.running is not None
        self.arrived &= ~self.running.lanes
        if self.arrival.of_warp:
            self.warp.note(self.warp.kernel.instructions[self.running.point - 1], Flag.DIVERGENT_SYNC)
        return not self.arrival.of_warp

    def part(self) -> bool:
        """Lanes at a join go on without those that wait for an mbarrier. Returns whether there are any."""
        return self.running is not None and self._give_way(split=True, at_last=True)

    def _place(self) -> tuple[bool, int, int, int]:
        """(in a loop that only waits, point, lanes, paths that wait their turn)"""
        path = self._settled()
        if path is None:
            return False, 0, 0, 0
        segment = self.flow.segment_of.get(path.point)
        waits = segment is not None and self.flow.waiting.only[segment]
        return waits, path.point, path.lanes, len(self.stack)

    def _give_way(self, *, split: bool, at_last: bool = False) -> bool:
        assert self.running is not None
        eager = self.spin > 2 * len(self.stack) + PATIENCE
        segments, waiting = self.flow.segment_of, self.flow.waiting
        meet = [entry.point in segments and waiting.meets[segments[entry.point]] for entry in self.stack]
        here = segments.get(self.running.point, -1)
        settled = self.lowest if split and not self.waits else None
        apart = split and (at_last or here < 0 or not waiting.tests[here])
        chosen = give_way(
            self.running, self.stack, self.live, self.arrived, split=apart, eager=eager, meet=meet, settled=settled
        )
        if chosen is None and split and self.waits >= WAITS_TOGETHER:
            self.waits = WAITS_PARTED
        if chosen is not None:
            self.running, self.lowest = chosen, len(self.stack)
        return chosen is not None

    def _run(self) -> End:
        code, waiting = self.warp.kernel.instructions, self.flow.waiting
        fuel = self.fuel
        while True:
            path = self._settled()
            if path is None:
                return End.DONE
            if path.lanes & self.arrived:
                return End.SYNC
            if path.point == path.join:
                self._pop()
                continue
            segment = self.flow.segment_of.get(path.point)
            if segment is not None:
                if fuel < 0:
                    return End.TURN
                if waiting.behind[segment]:
                    self.waits = 0
                fuel = -1 if waiting.heads[segment] else fuel - self.flow.start[segment + 1] + path.point
            if path.point >= len(code):  # running off the end is an exit
                self.live &= ~path.lanes
                self._pop()
                continue
            end = self._placed_step(code[path.point], path)
            if self.warp.gives_way:
                self.warp.gives_way, fuel = False, -1
            if end is not None:
                return end

    def _settled(self) -> Path | None:
        """The running path with the lanes that it still has."""
        while self.running is not None:
            self.running.lanes &= self.live
            if self.running.lanes:
                break
            self._pop()
        return self.running

    def _pop(self) -> None:
        self.running = self.stack.pop() if self.stack else None
        self.lowest = min(self.lowest, len(self.stack))

    def _placed_step(self, ins: Instruction, path: Path) -> End | None:
        """Execute one instruction; errors get its place."""
        warp = self.warp
        self.budget[0] -= 1
        if self.budget[0] < 0:
            hint = "raise the budget: Budget(instructions=N), or run fewer blocks"
            raise BudgetError(
                f"kernel '{short_name(warp.kernel.name)}' ran out of its budget of instructions", hint=hint
            )
        try:
            return self._step(ins, path)
        except PptError as error:
            path_name = warp.launched.module.path
            raise PptError(error.message, path=path_name, line=ins.line, column=ins.column, hint=error.hint) from None

    def _step(self, ins: Instruction, path: Path) -> End | None:
        """Returns how the turn ends, if it does."""
        warp, base = self.warp, ins.base
        warp.joined = lanes_of(path.lanes)
        warp.active = warp.joined & _guard(warp, ins)
        warp.frame = path.frame
        warp.recorder.instruction(ins.index, int(warp.active.sum()))
        warp.executed += 1
        end = None
        if base in ("bra", "brx"):
            self._branch(path, ins)
            return None
        path.point += 1
        if base in ("ret", "exit"):
            self._leave(path, ins)
        elif base in ("trap", "brkpt"):
            if warp.active.any():
                raise PptError(f"the kernel trapped in block {warp.block.linear}")
        elif base == "call":
            self._call(path, ins)
        elif base in ("bar", "barrier"):
            end = self._barrier(path, ins)
        elif is_group_meeting(ins):
            end = self._group_meeting(path, ins)
        else:
            self.execute(warp, ins)
        return end

    def _branch(self, path: Path, ins: Instruction) -> None:
        """Send each lane of the path to its target."""
        warp = self.warp
        targets = _targets(warp, ins)
        places = sorted({int(t) for t in targets[warp.joined]})
        if len(places) == 1:
            path.point = places[0]
            return
        target = self.flow.join[self.flow.segment_of_last(ins.index)]
        inner = path.join if target < 0 else self.flow.start[target]
        if inner != path.join:
            self.stack.append(Path(inner, path.lanes, path.join, path.frame))
        sides = [Path(p, lane_bits(warp.joined & (targets == p)), inner, path.frame) for p in places if p != inner]
        self.stack += reversed(sides)
        self._pop()

    def _leave(self, path: Path, ins: Instruction) -> None:
        """ret and exit of the active lanes."""
        gone = lane_bits(self.warp.active)
        if ins.base == "exit" or ins.index < self.warp.kernel.own_end:
            self.live &= ~gone
            self.warp.live &= ~self.warp.active
        else:
            leave(self.warp, np.flatnonzero(self.warp.active).tolist(), self.calls)
        path.lanes &= ~gone

    def _call(self, path: Path, ins: Instruction) -> None:
        warp = self.warp
        if not warp.active.any():
            return
        functions = functions_of(warp, ins)
        callers = lane_bits(warp.active)
        join = path.join
        if callers != path.lanes and join != path.point:
            self.stack.append(Path(path.point, path.lanes, join, path.frame))
            join = path.point
        first = next(iter(functions))
        if not first.has_body:
            call_outside(warp, ins, first, functions[first])
            self.running = Path(path.point, callers, join, path.frame)
            return
        for function, lanes in functions.items():
            enter(warp, ins, function, lanes, self.calls)
        self.stack.append(Path(path.point, callers, join, path.frame))
        frame = path.frame + warp.kernel.calls[ins.index].frame_bytes
        for function, lanes in reversed(functions.items()):
            self.stack.append(Path(function.entry, sum(1 << lane for lane in lanes), -2 - ins.index, frame))
        self._pop()

    def _barrier(self, path: Path, ins: Instruction) -> End | None:
        warp = self.warp
        if is_traced(ins):
            lane = int(warp.active.argmax())
            number, threads = (int(warp.read(o, 32)[lane]) if o else 0 for o in barrier_operands(ins))
            warp.recorder.words(np.full(LANES, word(number, -(-threads // LANES)), np.uint64), warp.active)
        if not warp.active.any():
            return None
        if is_warp_barrier(ins):
            return self._warp_barrier(path, ins)
        if "cluster" in ins.modifiers and "arrive" in ins.modifiers:
            self.cluster_arrived |= lane_bits(warp.active)
            return None
        if "cluster" in ins.modifiers:
            if not self.cluster_arrived & lane_bits(warp.active):
                return None
            self.arrival.number, self.arrival.waits = BARRIER_OF_CLUSTER, True
        else:
            self.arrival.add(warp, ins)
        return self._meet(path, ins)

    def _group_meeting(self, path: Path, ins: Instruction) -> End | None:
        """The warps of a warpgroup wait for each other."""
        if not self.warp.active.any():
            return None
        self.arrival.number = BARRIER_OF_GROUP + self.warp.number // GROUP
        self.arrival.expected, self.arrival.waits, self.arrival.of_warp = 0, True, False
        return self._meet(path, ins)

    def _meet(self, path: Path, ins: Instruction) -> End:
        """The warp has arrived when all its lanes have."""
        here = self.arrived | path.lanes
        if self.live & ~lane_bits(self.warp.active):
            self.warp.note(ins, Flag.DIVERGENT_BARRIER)
        self.arrived = here if self.live & ~here else 0
        return End.SYNC if self.live & ~here else End.BARRIER

    def _warp_barrier(self, path: Path, ins: Instruction) -> End | None:
        """Each lane waits for the live ones of its mask; lanes that came together go on together."""
        warp = self.warp
        masks = warp.read(ins.operands[0], 32)
        here, opened, lack, complete = self.arrived | path.lanes, 0, 0, 0
        for lane in np.flatnonzero(warp.active).tolist():
            if int(masks[lane]) & self.live & ~here:
                lack |= 1 << lane
            else:
                opened |= int(masks[lane])
                complete |= 1 << lane
        if not lack:
            self.arrived &= ~opened
            return None
        self.arrived = (self.arrived | path.lanes & ~complete) & ~opened
        self.arrival.of_warp = True
        return End.SYNC


@lru_cache(maxsize=4096)
def _flags(mask: int) -> Mask:
    return (mask >> np.arange(LANES)) & 1 == 1


def lanes_of(mask: int) -> Mask:
    """The opposite of `lane_bits`."""
    return _flags(mask).copy()


def _guard(warp: Warp, ins: Instruction) -> Mask:
    if ins.guard is None:
        return np.ones(LANES, bool)
    holds = warp.read(Reg(ins.guard.reg), 1) == 1
    return ~holds if ins.guard.negated else holds


def _targets(warp: Warp, ins: Instruction) -> np.ndarray:
    """Where each lane goes: the target in active lanes, else the next instruction."""
    target = next(operand for operand in ins.operands if isinstance(operand, Target))
    if ins.base == "bra":
        return np.where(warp.active, target.index, ins.index + 1)
    table = warp.kernel.branch_tables[target.name]
    index = warp.read(ins.operands[0], 32)
    if (index[warp.active] >= len(table)).any():
        raise PptError(f"an index of brx.idx is outside its list of {len(table)} targets")
    return np.where(warp.active, np.array(table)[np.minimum(index, len(table) - 1).astype(int)], ins.index + 1)
