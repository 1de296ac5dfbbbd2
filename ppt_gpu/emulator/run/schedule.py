"""Runs blocks one after another: their warps take turns between barriers. The compiled loop around compiled warps.

A block's warps run in order, each until it meets a barrier, exits, or has used up its turn. When every warp had its
turn, barriers that all expected warps have reached are released. Turns in which a loop that only waits came round are
not recorded: how many there are says nothing but in which order the warps had their turns. A warp whose lanes wait for
each other, a block whose warps all wait for something outside of it, and calls that the host has to do are left to the
caller.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry, intrinsic, merged
from ppt_gpu.emulator.analysis.divergence import Path, give_way
from ppt_gpu.emulator.analysis.spin_loops import Waiting
from ppt_gpu.emulator.forms.wgmma_form import GROUP
from ppt_gpu.emulator.memory.memory import LOCAL_WINDOW
from ppt_gpu.emulator.memory.warp_context import BARRIER_OF_CLUSTER, BARRIER_OF_GROUP, FULL_MASK, Exit, Slot
from ppt_gpu.emulator.trace.pattern_store import PatternWord
from ppt_gpu.emulator.trace.trace_buffers import END_GUARDED, END_PATH, END_RECORD


class State(IntEnum):
    """Words of the scheduler's state array, which survives between calls."""

    POSITION = 0  # in `blocks`
    STARTED = 1  # the block at POSITION has begun
    WARP = 2  # whose turn it is
    ENDED = 3  # blocks whose ends are noted
    BUDGET = 4  # warp instructions left
    LOCAL_BYTES = 7  # per thread
    TURN = 8  # warp instructions in a turn
    THREADS = 9  # per block
    SAME_TURN = 10  # the warp goes on with the fuel that it has
    YIELD = 11  # the block ends its turn when fewer warp instructions than this are left; 0: it has no turns
    MOVED = 13  # a warp did something else than wait since the caller cleared this word
    FIRST_BARRIER = 16  # arrivals without waiting at barriers 0 to 15; the others, up to BARRIERS, know none


class Reason(IntEnum):
    """Why `run_blocks` returned."""

    FINISHED = 0
    FULL = 1  # a trace buffer is full: take what ended, make room, call again
    FAULT = 2  # of warp State.WARP
    BUDGET = 3
    DEADLOCK = 4  # every warp waits at a barrier that the others never reach
    GIVE_WAY = 5  # the executing lanes of the warp before State.WARP wait for others of their warp
    SYNC = 6  # so do those of this one, at a barrier
    HOST = 7  # the warp State.WARP calls the host
    STUCK = 8  # every warp of the block waits for something that no warp of the block will do
    CLUSTER = 9  # so they do, some at the barrier of their cluster
    YIELDED = 10  # the block's turn is over


# plain integers for compiled code, where enumerations take long to compile
_FINISHED, _FULL, _FAULT, _BUDGET, _DEADLOCK, _GIVE_WAY, _SYNC, _HOST, _STUCK, _CLUSTER, _YIELDED = (
    int(reason) for reason in Reason
)
_EXIT_DONE, _EXIT_BARRIER, _EXIT_FULL, _EXIT_TURN, _EXIT_FAULT, _EXIT_HOST, _EXIT_SYNC = (int(e) for e in Exit)
(
    S_POSITION, S_STARTED, S_WARP, S_ENDED, S_BUDGET, S_LOCAL_BYTES, S_TURN, S_THREADS, S_SAME_TURN, S_YIELD, S_MOVED,
    S_FIRST_BARRIER,
) = (int(word) for word in State)  # fmt: skip
_PATH_END, _RECORD_END = (int(Slot[name]) for name in ("PATH_END", "RECORD_END"))
_PATTERNS_USED, _PATTERNS_FULL = int(PatternWord.USED), int(PatternWord.FULL)
_RESUME, _MASK, _LIVE, _RPC, _DEPTH, _COUNT, _SPIN, _LOWEST, _STATUS = (
    int(Slot[name]) for name in ("RESUME", "MASK", "LIVE", "RPC", "DEPTH", "COUNT", "SPIN", "LOWEST", "STATUS")
)
_CTAID_X, _CTAID_Y, _CTAID_Z, _LOCAL_TRACE = (
    int(Slot[name]) for name in ("CTAID_X", "CTAID_Y", "CTAID_Z", "LOCAL_TRACE")
)
_PATH, _RECORD, _FUEL, _GUARDED_SUM, _FAULTED = (
    int(Slot[name]) for name in ("PATH", "RECORD", "FUEL", "GUARDED_SUM", "FAULT")
)
_CLUSTER_ARRIVED = int(Slot.CLUSTER_ARRIVED)
_FRAME_OFFSET, _ARRIVED, _WAITS = int(Slot.FRAME_OFFSET), int(Slot.ARRIVED), int(Slot.WAITS)
_BARRIER, _BARRIER_KIND, _BARRIER_WARPS, _BARRIER_VALUE, _BARRIER_THREADS = (
    int(Slot[name]) for name in ("BARRIER", "BARRIER_KIND", "BARRIER_WARPS", "BARRIER_VALUE", "BARRIER_THREADS")
)
_BARRIER_RESULT, _BARRIER_RESULT_THREADS = int(Slot.BARRIER_RESULT), int(Slot.BARRIER_RESULT_THREADS)
READY, WAITING, ENDED, HELD = 0, 1, 2, 3  # HELD: at the barrier of the cluster
#: turns in a row in loops that only wait, after which nothing in the warp can end them: all lanes together, or parted
#: (every pending path then had its turn)
WAITS_TOGETHER, WAITS_PARTED = 2, 400
#: bytes that must be free in the buffers of paths and accesses for a turn that may not be recorded, and lines of
#: patterns
WAIT_ROOM, WAIT_PATTERNS = 1 << 16, 1 << 10
#: turns without effect after which lanes at a join need not wait longer than pending paths
PATIENCE = 64


@intrinsic
def _call(typingctx: Any, address: Any, row: Any) -> Any:
    """Call the C function int32 f(void *) at `address`."""
    from llvmlite import ir
    from numba import types

    signature = types.int32(types.int64, types.int64)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        function = ir.FunctionType(ir.IntType(32), [ir.IntType(64)])
        return builder.call(builder.inttoptr(args[0], function.as_pointer()), [args[1]])

    return signature, generate


def run_blocks(
    code: int,
    rows: NDArray[np.int64],  # [warps, SLOTS]
    blocks: NDArray[np.int64],  # linear block ids
    grid: NDArray[np.int64],  # [3]
    state: NDArray[np.int64],
    ends: NDArray[np.int64],  # [capacity, warps, 3] where each warp's trace of a block ends (`trace_buffers`)
    shared: NDArray[np.uint8],
    local: NDArray[np.uint8],
    frames: NDArray[np.uint8],  # [warps, bytes]
    cleared: NDArray[np.int64],  # [n, 2] (offset, bytes) of registers to clear
    spins: NDArray[np.int64],  # [2 S, 2] by resume point: turns until lanes give way, in a loop that only waits
    guarded: NDArray[np.int64],  # [n] thread counts of guarded instructions, which the warps raise
    before: NDArray[np.int64],  # [n] room for these counts before a turn
    marks: NDArray[np.int64],  # [B or 0, n] these counts at the end of each block
    patterns: NDArray[np.int64],  # control block of the patterns (`pattern_store`)
) -> int:
    """Run until the blocks are finished or something needs attention. Returns a Reason; call again to go on."""
    address = rows.ctypes.data
    return int(
        _run(
            code, address, rows, blocks, grid, state, ends, shared, local, frames, cleared, spins, guarded, before,
            marks, patterns,
        )
    )  # fmt: skip


@entry
def _run(
    code: int, address: int, rows: np.ndarray, blocks: np.ndarray, grid: np.ndarray, state: np.ndarray,
    ends: np.ndarray, shared: np.ndarray, local: np.ndarray, frames: np.ndarray, cleared: np.ndarray,
    spins: np.ndarray, guarded: np.ndarray, before: np.ndarray, marks: np.ndarray, patterns: np.ndarray,
) -> int:  # fmt: skip
    """As `run_blocks`. address: of `rows`."""
    warps, slots = rows.shape
    while state[S_POSITION] < len(blocks):
        if state[S_STARTED] == 0:
            if state[S_ENDED] == len(ends) or _scarce(rows, ends, state[S_ENDED]):
                return _FULL
            _clear(shared, local, frames, cleared)
            _start_block(rows, blocks[state[S_POSITION]], grid, state)
        w = state[S_WARP]
        while w < warps:
            if rows[w, _STATUS] == READY:
                state[S_WARP] = w
                waits = spins[rows[w, _RESUME], 1] != 0 and state[S_SAME_TURN] == 0
                if _tight(rows[w], patterns, waits):
                    return _FULL
                if waits:
                    _copy(guarded, before)
                point, mask, depth = rows[w, _RESUME], rows[w, _MASK], rows[w, _DEPTH]
                path, record, threads = rows[w, _PATH], rows[w, _RECORD], rows[w, _GUARDED_SUM]
                result = _turn(code, address + 8 * slots * w, rows[w], state)
                same = point == rows[w, _RESUME] and mask == rows[w, _MASK] and depth == rows[w, _DEPTH]
                if waits and same and result == _EXIT_TURN and rows[w, _WAITS] != 0:
                    # Nothing but another round of the loop (WAITS would be 0 behind it): the turn was not. Its
                    # patterns stay: what no access refers to, the trace does not have.
                    rows[w, _PATH], rows[w, _RECORD], rows[w, _GUARDED_SUM] = path, record, threads
                    _copy(before, guarded)
                reason = _after_turn(rows[w], result, state, spins)
                if reason in (_GIVE_WAY, _SYNC):
                    state[S_WARP] = w + 1
                if reason >= 0:
                    return reason
            w += 1
        state[S_WARP] = 0
        left = _release(rows, state)
        if left == -2:
            return _CLUSTER
        if left < 0:
            return _DEADLOCK
        if left == 0:
            if state[S_POSITION] < len(marks):
                for k in range(len(guarded)):
                    marks[state[S_POSITION], k] = guarded[k]
            for v in range(warps):
                ends[state[S_ENDED], v, END_PATH] = rows[v, _PATH]
                ends[state[S_ENDED], v, END_RECORD] = rows[v, _RECORD]
                ends[state[S_ENDED], v, END_GUARDED] = rows[v, _GUARDED_SUM]
            state[S_ENDED] += 1
            state[S_POSITION] += 1
            state[S_STARTED] = 0
        elif _all_wait(rows):
            return _STUCK
        elif state[S_BUDGET] < state[S_YIELD]:
            return _YIELDED
    return _FINISHED


@merged
def _clear(shared: np.ndarray, local: np.ndarray, frames: np.ndarray, cleared: np.ndarray) -> None:
    for i in range(len(shared)):
        shared[i] = 0
    for i in range(len(local)):
        local[i] = 0
    for w in range(len(frames)):
        for k in range(len(cleared)):
            first = cleared[k, 0]
            for i in range(first, first + cleared[k, 1]):
                frames[w, i] = 0


@merged
def _start_block(rows: np.ndarray, block: int, grid: np.ndarray, state: np.ndarray) -> None:
    warps = len(rows)
    for w in range(warps):
        row = rows[w]
        lanes = state[S_THREADS] - 32 * w
        mask = FULL_MASK if lanes >= 32 else (1 << lanes) - 1
        row[_RESUME] = 0
        row[_MASK] = mask
        row[_LIVE] = mask
        row[_RPC] = FULL_MASK
        row[_DEPTH] = 0
        row[_COUNT] = 0
        row[_SPIN] = 0
        row[_WAITS] = 0
        row[_ARRIVED] = 0
        row[_FRAME_OFFSET] = 0
        row[_BARRIER_VALUE] = 0
        row[_BARRIER_THREADS] = 0
        row[_CLUSTER_ARRIVED] = 0
        row[_GUARDED_SUM] = 0
        row[_STATUS] = READY
        row[_CTAID_X] = block % grid[0]
        row[_CTAID_Y] = block // grid[0] % grid[1]
        row[_CTAID_Z] = block // (grid[0] * grid[1])
        row[_LOCAL_TRACE] = LOCAL_WINDOW + (block * warps + w) * 32 * state[S_LOCAL_BYTES]
    for k in range(16):
        state[S_FIRST_BARRIER + k] = 0
    state[S_STARTED] = 1
    state[S_WARP] = 0


@merged
def _turn(code: int, address: int, row: np.ndarray, state: np.ndarray) -> int:
    """Let one warp run."""
    if state[S_SAME_TURN] == 0:
        row[_FUEL] = state[S_TURN]
        if row[_SPIN] == 0:
            row[_LOWEST] = row[_DEPTH]
    before = row[_COUNT]
    result = _call(code, address)
    state[S_BUDGET] -= row[_COUNT] - before
    return result


@merged
def _scarce(rows: np.ndarray, ends: np.ndarray, ended: int) -> bool:
    """Would a block like the last one fill a buffer? What blocks leave is best taken when none is half done."""
    scarce = False
    for v in range(len(rows) if ended > 1 else 0):
        path = ends[ended - 1, v, END_PATH] - ends[ended - 2, v, END_PATH]
        record = ends[ended - 1, v, END_RECORD] - ends[ended - 2, v, END_RECORD]
        scarce |= rows[v, _PATH_END] - rows[v, _PATH] < path or rows[v, _RECORD_END] - rows[v, _RECORD] < record
    return scarce


@merged
def _copy(source: np.ndarray, target: np.ndarray) -> None:
    for k in range(len(source)):
        target[k] = source[k]


@merged
def _tight(row: np.ndarray, patterns: np.ndarray, waits: bool) -> bool:
    """Are the patterns full, or may they or a buffer become so within one time round a loop that waits?"""
    left = patterns[_PATTERNS_FULL] - patterns[_PATTERNS_USED]
    if not waits:
        return left <= 0
    return left < WAIT_PATTERNS or min(row[_PATH_END] - row[_PATH], row[_RECORD_END] - row[_RECORD]) < WAIT_ROOM


@merged
def _after_turn(row: np.ndarray, result: int, state: np.ndarray, spins: np.ndarray) -> int:
    """What the end of a turn means for the warp. Returns a Reason that needs attention, or -1."""
    state[S_SAME_TURN] = 0
    if result == _EXIT_FAULT or row[_FAULTED] != 0:
        return _FAULT
    if state[S_BUDGET] < 0:
        return _BUDGET
    if result == _EXIT_FULL:
        state[S_SAME_TURN] = 1
        return _FULL
    if result == _EXIT_HOST:
        state[S_SAME_TURN] = 1
        state[S_MOVED] = 1
        return _HOST
    if result == _EXIT_TURN:
        limit = spins[row[_RESUME], 0]
        row[_WAITS] = row[_WAITS] + 1 if spins[row[_RESUME], 1] != 0 else 0
        row[_SPIN] = row[_SPIN] + 1 if row[_LOWEST] > 0 or row[_WAITS] > 0 else 0
        if row[_WAITS] < WAITS_TOGETHER:
            state[S_MOVED] = 1
        if limit > 0 and row[_DEPTH] > 0 and row[_SPIN] >= limit:
            return _GIVE_WAY
        return -1
    row[_SPIN] = 0
    row[_WAITS] = 0
    state[S_MOVED] = 1
    if result == _EXIT_SYNC:
        return _SYNC
    if result == _EXIT_DONE:
        row[_STATUS] = ENDED
    else:
        _arrive(row, state)
    return -1


@merged
def _arrive(row: np.ndarray, state: np.ndarray) -> None:
    """The warp has come to its barrier."""
    if row[_BARRIER_KIND] == 1:
        state[S_FIRST_BARRIER + row[_BARRIER]] += 1
        row[_STATUS] = READY
    else:
        row[_STATUS] = HELD if row[_BARRIER] == BARRIER_OF_CLUSTER else WAITING


@merged
def _all_wait(rows: np.ndarray) -> bool:
    """Does every warp that may run only wait? Then nothing in the block ends that."""
    for w in range(len(rows)):
        if rows[w, _STATUS] == READY:
            needed = WAITS_TOGETHER if rows[w, _DEPTH] == 0 else WAITS_PARTED
            if rows[w, _WAITS] < needed:
                return False
    return True


@merged
def _release(rows: np.ndarray, state: np.ndarray) -> int:
    """Open every barrier that all its warps have reached.

    Returns how many warps can run; if none can, 0 when all have ended, -1 when some wait, -2 when some of them do so
    for other blocks of the cluster.
    """
    ready = waiting = held = 0
    for w in range(len(rows)):
        if rows[w, _STATUS] == READY:
            ready += 1
        elif rows[w, _STATUS] == WAITING:
            waiting += 1
        elif rows[w, _STATUS] == HELD:
            held += 1
    alive = ready + waiting + held
    for w in range(len(rows)):
        if rows[w, _STATUS] != WAITING:
            continue
        number = rows[w, _BARRIER]
        wanted = rows[w, _BARRIER_WARPS]
        if number >= BARRIER_OF_GROUP:
            first = (number - BARRIER_OF_GROUP) * GROUP
            for v in range(first, min(first + GROUP, len(rows))):
                wanted += rows[v, _STATUS] != ENDED
        elif wanted == 0:
            wanted = alive
        here = state[S_FIRST_BARRIER + number]
        total = threads = 0
        for v in range(len(rows)):
            if rows[v, _STATUS] == WAITING and rows[v, _BARRIER] == number:
                here += 1
                total += rows[v, _BARRIER_VALUE]
                threads += rows[v, _BARRIER_THREADS]
        if here < wanted:
            continue
        state[S_FIRST_BARRIER + number] = 0
        for v in range(len(rows)):
            if rows[v, _STATUS] == WAITING and rows[v, _BARRIER] == number:
                rows[v, _STATUS] = READY
                rows[v, _BARRIER_RESULT] = total
                rows[v, _BARRIER_RESULT_THREADS] = threads
                rows[v, _BARRIER_VALUE] = 0
                rows[v, _BARRIER_THREADS] = 0
                ready += 1
    if held > 0 and ready == 0:
        return -2
    return ready if ready > 0 or waiting == 0 else -1


def let_others_run(
    row: NDArray[np.int64], stack: NDArray[np.int32], waiting: Waiting, *, at_barrier: bool, at_last: bool = False
) -> bool:
    """The executing lanes wait for others of their warp: another path runs. Returns whether there is one.

    Without one, lanes that wait at a barrier are taken to be all that come, and lanes that only wait to wait for other
    warps. `stack` [depth, 4]: the warp's entries. Lanes at a join stay there while others test an mbarrier, as other
    warps complete its phases; they go on where nothing else can (`at_last`).
    """
    blocked = int(row[Slot.ARRIVED]) & FULL_MASK
    running = Path(int(row[Slot.RESUME]), int(row[Slot.MASK]) & FULL_MASK, int(row[Slot.RPC]), 0)
    running.join, running.frame = _signed(running.join), int(row[Slot.FRAME_OFFSET])
    entries = [Path(p, m & FULL_MASK, j, f) for p, m, j, f in stack[: int(row[Slot.DEPTH])].tolist()]
    eager = int(row[Slot.SPIN]) > 2 * len(entries) + PATIENCE
    segments = len(waiting.meets)
    meet = [entry.point < segments and waiting.meets[entry.point] for entry in entries]
    split = not at_barrier and (at_last or not waiting.tests[running.point % segments])
    live = int(row[Slot.LIVE])
    settled = None if at_barrier or row[Slot.WAITS] else int(row[Slot.LOWEST])
    chosen = give_way(running, entries, live, blocked, split=split, eager=eager, meet=meet, settled=settled)
    if chosen is None and not at_barrier and row[Slot.WAITS] >= WAITS_TOGETHER:
        row[Slot.WAITS] = WAITS_PARTED
    if chosen is None:
        row[Slot.ARRIVED] = blocked & ~running.lanes
        return False
    row[Slot.DEPTH] = row[Slot.LOWEST] = len(entries)
    for at, path in enumerate(entries):
        stack[at] = path.point, _signed(path.lanes), path.join, path.frame
    row[Slot.RESUME], row[Slot.MASK] = chosen.point, chosen.lanes
    row[Slot.RPC], row[Slot.FRAME_OFFSET] = chosen.join & FULL_MASK, chosen.frame
    return True


def _signed(word: int) -> int:
    """The low 32 bits as a signed number."""
    return ((word & FULL_MASK) ^ (1 << 31)) - (1 << 31)
