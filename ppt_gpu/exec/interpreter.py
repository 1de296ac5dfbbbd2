"""The plain reference of functional execution: one warp at a time, one instruction at a time, in numpy.

Slow and obviously right. `interpret` gives the same memory and the same trace as the compiled engine
(`ppt_gpu.exec.run`), except for the last places of approximate functions and the payloads of NaNs.

Lanes that part at a branch run one after another, the side that comes first in the text first, each up to the
branch's immediate post-dominator (Fung et al., "Dynamic Warp Formation and Scheduling for Efficient GPU Control
Flow", MICRO 2007, section 3). Warps of a block run in turn, each to its next barrier; when
every warp had its turn the barriers open. Lanes of one warp that wait for each other in a loop never finish here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ppt_gpu.errors import BudgetError, PptError
from ppt_gpu.exec.arguments import pack_arguments
from ppt_gpu.exec.assumed import assumed_warnings, pretend
from ppt_gpu.exec.budget import Budget
from ppt_gpu.exec.interp_address import ADDRESS
from ppt_gpu.exec.interp_arith import ARITHMETIC, Execute
from ppt_gpu.exec.interp_async import ASYNC
from ppt_gpu.exec.interp_atomics import ATOMICS
from ppt_gpu.exec.interp_barrier import Barriers
from ppt_gpu.exec.interp_collective import COLLECTIVE
from ppt_gpu.exec.interp_convert import CONVERT
from ppt_gpu.exec.interp_logic import LOGIC
from ppt_gpu.exec.interp_matrix import MATRIX
from ppt_gpu.exec.interp_matrix_move import MATRIX_MOVE
from ppt_gpu.exec.interp_memory import MEMORY
from ppt_gpu.exec.interp_texture import TEXTURES
from ppt_gpu.exec.interp_trace import Recorder, build_trace
from ppt_gpu.exec.interp_video import VIDEO
from ppt_gpu.exec.interp_warp import LANES, Block, Launched, Mask, Warp, unsupported
from ppt_gpu.exec.layout import layout
from ppt_gpu.exec.memory import DeviceMemory
from ppt_gpu.exec.trace import Trace
from ppt_gpu.exec.workload import Launch
from ppt_gpu.ptx.cfg import control_flow
from ppt_gpu.ptx.module import Instruction, Kernel, Module, Reg, Target
from ppt_gpu.ptx.table import ASSUMED

#: Instructions without an effect on values.
_NOTHING = ("membar", "fence", "nanosleep", "pmevent", "prefetch", "prefetchu", "griddepcontrol")
EXECUTE: dict[str, Execute] = {
    **ARITHMETIC, **LOGIC, **CONVERT, **MEMORY, **ATOMICS, **ADDRESS, **TEXTURES, **COLLECTIVE, **ASYNC,
    **MATRIX, **MATRIX_MOVE, **VIDEO,
}  # fmt: skip
EXECUTE[ASSUMED] = pretend
EXECUTE.update(dict.fromkeys(_NOTHING, lambda warp, ins: None))

EXIT = -1  # reconvergence at the kernel's end
TURN = 20_000  # instructions after which a warp lets the others run, so that spinning on a flag ends


@dataclass
class Path:
    """Lanes that run together from `pc` until `join`, where they meet those of the path below them on the stack."""

    pc: int
    join: int
    lanes: Mask


@dataclass
class Runner:
    """One warp and its divergence stack; the top path runs."""

    warp: Warp
    stack: list[Path]
    waiting: bool = False
    spent: int = 0  # instructions in this turn
    joins: dict[int, int] = field(default_factory=dict)  # branch -> reconvergence point

    @property
    def done(self) -> bool:
        return not self.stack

    def settle(self) -> None:
        """Drop paths that arrived at their join or lost all lanes."""
        while self.stack and (self.stack[-1].pc == self.stack[-1].join or not self.stack[-1].lanes.any()):
            self.stack.pop()

    def branch(self, ins: Instruction, targets: np.ndarray) -> None:
        """Send each lane of the top path to its target: [32] instruction indices."""
        top = self.stack[-1]
        places = sorted({int(t) for t in targets[top.lanes]})
        if len(places) == 1:
            top.pc = places[0]
            return
        join = self.joins[ins.index]
        split = [Path(place, join, top.lanes & (targets == place)) for place in places]
        top.pc = join
        if join == EXIT:
            self.stack.pop()
        self.stack.extend(path for path in reversed(split) if path.pc != join)

    def leave(self, lanes: Mask) -> None:
        """`lanes` exit."""
        self.warp.live &= ~lanes
        for path in self.stack:
            path.lanes = path.lanes & ~lanes


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
    a barrier that never opens, and BudgetError when `budget.instructions` warp instructions were not enough.
    """
    outside = [block for block in blocks if not 0 <= block < launch.blocks]
    if outside:
        raise PptError(f"block {outside[0]} is not in the grid", hint=f"its blocks are 0 to {launch.blocks - 1}")
    params = pack_arguments(module, kernel, launch, memory)
    places = layout(module, kernel, launch.dynamic_shared)
    launched = Launched(module, kernel, memory, places, params, launch.grid, launch.block, launch.dynamic_shared)
    joins = control_flow(kernel).reconvergence
    limit = (budget or Budget()).instructions
    recorders: list[Recorder] = []
    with np.errstate(all="ignore"):
        for linear in blocks:
            runners = _block_runners(launched, int(linear), joins)
            recorders += [runner.warp.recorder for runner in runners]
            limit = _run_block(runners, limit)
    warps = -(-launch.threads_per_block // LANES)
    count = len(kernel.instructions)
    return build_trace(
        list(blocks), recorders, count, warps, memory.ranges(), (*memory.warnings, *assumed_warnings(kernel, module))
    )


def _block_runners(launched: Launched, linear: int, joins: dict[int, int]) -> list[Runner]:
    x, y, z = launched.block
    threads = x * y * z
    block = Block(
        launched,
        linear,
        np.zeros(launched.layout.shared_bytes, np.uint8),
        np.zeros((threads, launched.layout.local_bytes), np.uint8),
    )
    runners = []
    for number in range(-(-threads // LANES)):
        live = number * LANES + np.arange(LANES) < threads
        warp = Warp(block, number, live, Recorder(len(launched.kernel.instructions)))
        runners.append(Runner(warp, [Path(0, EXIT, live.copy())], joins=joins))
    return runners


def _run_block(runners: list[Runner], limit: int) -> int:
    """Give the warps turns until all are done. Returns what is left of the instruction budget."""
    barriers = Barriers([runner.warp for runner in runners])
    while not all(runner.done for runner in runners):
        waiting = barriers.waiting()
        ready = [runner for runner in runners if not runner.done and runner.warp not in waiting]
        if not ready:
            raise barriers.deadlock()
        for runner in ready:
            limit = _turn(runner, barriers, limit)
        barriers.open()
    return limit


def _turn(runner: Runner, barriers: Barriers, limit: int) -> int:
    """Run a warp until it waits, ends, or its turn is over."""
    warp = runner.warp
    code = warp.kernel.instructions
    for _ in range(TURN):
        runner.settle()
        if runner.done:
            barriers.exited(warp)
            return limit
        limit -= 1
        if limit < 0:
            hint = "raise the budget: Budget(instructions=N), or run fewer blocks"
            raise BudgetError(f"kernel '{warp.kernel.name}' ran out of its budget of instructions", hint=hint)
        pc = runner.stack[-1].pc
        if pc >= len(code):  # running off the end is an exit
            runner.leave(runner.stack[-1].lanes)
            continue
        try:
            if _step(runner, barriers, code[pc]):
                return limit
            if warp.gives_way:
                warp.gives_way = False
                return limit
        except PptError as error:
            raise _placed(error, warp, code[pc]) from None
    return limit


def _step(runner: Runner, barriers: Barriers, ins: Instruction) -> bool:
    """Execute one instruction. Returns whether it ends the warp's turn (a barrier)."""
    warp, top = runner.warp, runner.stack[-1]
    warp.joined = top.lanes
    warp.active = top.lanes & _guard(warp, ins)
    warp.recorder.instruction(ins.index, int(warp.active.sum()))
    ends = False
    if ins.base in ("bra", "brx"):
        runner.branch(ins, _targets(warp, ins))
    else:
        top.pc += 1
        if ins.base in ("ret", "exit"):
            runner.leave(warp.active)
        elif ins.base in ("trap", "brkpt"):
            if warp.active.any():
                raise PptError(f"the kernel trapped in block {warp.block.linear}")
        elif ins.base in ("bar", "barrier"):
            ends = barriers.arrive(warp, ins)
        elif ins.base in EXECUTE:
            EXECUTE[ins.base](warp, ins)
        else:
            raise unsupported(ins)
    warp.executed += 1
    return ends


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


def _placed(error: PptError, warp: Warp, ins: Instruction) -> PptError:
    """`error` with the place of the instruction."""
    module = warp.launched.module
    return PptError(error.message, path=module.path, line=ins.line, column=ins.column, hint=error.hint)
