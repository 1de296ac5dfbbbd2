"""Runs blocks one after another: their warps take turns between barriers. The compiled loop around compiled warps.

A block's warps run in order, each until it meets a barrier, exits, or has used up its turn. When every warp had its
turn, barriers that all expected warps have reached are released.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from ppt_gpu.compiled import entry, inlined
from ppt_gpu.exec.jit_context import Exit, Slot
from ppt_gpu.exec.memory import LOCAL_WINDOW


class State(IntEnum):
    """Words of the scheduler's state array, which survives between calls."""

    POSITION = 0  # in `blocks`
    STARTED = 1  # the block at POSITION has begun
    WARP = 2  # whose turn it is
    SEGMENTS = 3  # turns recorded
    BUDGET = 4  # warp instructions left
    PATH = 5  # next free byte of the path buffer (host address)
    RECORD = 6  # next free byte of the access buffer
    LOCAL_BYTES = 7  # per thread
    TURN = 8  # warp instructions in a turn
    THREADS = 9  # per block
    FLAGS = 10
    PATTERN = 11  # next free byte of the pattern buffer (host address)
    NUMBER = 12  # of the next listed pattern
    FIRST_BARRIER = 16  # arrivals without waiting at barriers 0 to 15


class Reason(IntEnum):
    """Why `run_blocks` returned."""

    FINISHED = 0
    FULL = 1  # a trace buffer is full: take its content, reset the cursors, call again
    FAULT = 2  # of warp State.WARP
    BUDGET = 3
    DEADLOCK = 4  # every warp waits at a barrier that the others never reach
    GIVE_WAY = 5  # the warp before State.WARP spins; `run_blocks` sees to it and goes on


# plain integers for compiled code, where enumerations take long to compile
_FINISHED, _FULL, _FAULT, _BUDGET, _DEADLOCK, _GIVE_WAY = (int(reason) for reason in Reason)
_EXIT_FAULT, _EXIT_FULL, _EXIT_TURN, _EXIT_DONE = (int(e) for e in (Exit.FAULT, Exit.FULL, Exit.TURN, Exit.DONE))
(
    S_POSITION, S_STARTED, S_WARP, S_SEGMENTS, S_BUDGET, S_PATH, S_RECORD, S_LOCAL_BYTES, S_TURN, S_THREADS, S_FLAGS,
    S_PATTERN, S_NUMBER, S_FIRST_BARRIER,
) = (int(word) for word in State)  # fmt: skip
_RESUME, _MASK, _LIVE, _RPC, _DEPTH, _COUNT, _SPIN, _STATUS = (
    int(Slot[name]) for name in ("RESUME", "MASK", "LIVE", "RPC", "DEPTH", "COUNT", "SPIN", "STATUS")
)
_CTAID_X, _CTAID_Y, _CTAID_Z, _LOCAL_TRACE = (
    int(Slot[name]) for name in ("CTAID_X", "CTAID_Y", "CTAID_Z", "LOCAL_TRACE")
)
_PATH, _RECORD, _PATTERN, _NUMBER, _FUEL, _GUARDED_SUM, _FLAGS = (
    int(Slot[name]) for name in ("PATH", "RECORD", "PATTERN", "NUMBER", "FUEL", "GUARDED_SUM", "FLAGS")
)
_BARRIER, _BARRIER_KIND, _BARRIER_WARPS, _BARRIER_VALUE, _BARRIER_THREADS = (
    int(Slot[name]) for name in ("BARRIER", "BARRIER_KIND", "BARRIER_WARPS", "BARRIER_VALUE", "BARRIER_THREADS")
)
_BARRIER_RESULT, _BARRIER_RESULT_THREADS = int(Slot.BARRIER_RESULT), int(Slot.BARRIER_RESULT_THREADS)
READY, WAITING, ENDED = 0, 1, 2
#: columns of a recorded turn: warp (position in blocks x warps + warp), path and access bytes, guarded threads
TURN_WARP, TURN_PATH, TURN_PATH_END, TURN_RECORD, TURN_RECORD_END, TURN_GUARDED = range(6)
FULL_MASK = 0xFFFFFFFF


@intrinsic
def _call(typingctx: Any, address: Any, row: Any) -> Any:
    """Call the C function int32 f(void *) at `address`."""
    from llvmlite import ir

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
    turns: NDArray[np.int64],  # [capacity, 6]
    shared: NDArray[np.uint8],
    local: NDArray[np.uint8],
    frames: NDArray[np.uint8],  # [warps, bytes]
    cleared: NDArray[np.int64],  # [n, 2] (offset, bytes) of registers to clear
    stacks: NDArray[np.int32],  # [warps, depth, 4]
    spins: NDArray[np.int64],  # [2 S] by resume point
    guarded: NDArray[np.int64],  # [n] thread counts of guarded instructions, which the warps raise
    marks: NDArray[np.int64],  # [B or 0, n] these counts at the end of each block
) -> int:
    """Run until the blocks are finished or something needs attention. Returns a Reason; call again to go on."""
    reason = _GIVE_WAY
    while reason == _GIVE_WAY:
        reason = _run(
            code, rows.ctypes.data, rows, blocks, grid, state, turns, shared, local, frames, cleared, spins, guarded,
            marks,
        )  # fmt: skip
        if reason == _GIVE_WAY:
            spinning = int(state[S_WARP]) - 1
            _give_way(rows[spinning], stacks[spinning])
    return reason


@entry
def _run(
    code: int, address: int, rows: np.ndarray, blocks: np.ndarray, grid: np.ndarray, state: np.ndarray,
    turns: np.ndarray, shared: np.ndarray, local: np.ndarray, frames: np.ndarray, cleared: np.ndarray,
    spins: np.ndarray, guarded: np.ndarray, marks: np.ndarray,
) -> int:  # fmt: skip
    """As `run_blocks`, also until a warp has to give way. address: of `rows`."""
    warps, slots = rows.shape
    while state[S_POSITION] < len(blocks):
        if state[S_STARTED] == 0:
            _clear(shared, local, frames, cleared)
            _start_block(rows, blocks[state[S_POSITION]], grid, state)
        w = state[S_WARP]
        while w < warps:
            if rows[w, _STATUS] == READY:
                state[S_WARP] = w
                if state[S_SEGMENTS] == len(turns):
                    return _FULL
                result = _turn(code, address + 8 * slots * w, rows[w], state, turns, state[S_POSITION] * warps + w)
                if result == _EXIT_FAULT:
                    return _FAULT
                if state[S_BUDGET] < 0:
                    return _BUDGET
                if result == _EXIT_FULL:
                    return _FULL
                if _spins_too_long(rows[w], result, state, spins):
                    state[S_WARP] = w + 1
                    return _GIVE_WAY
            w += 1
        state[S_WARP] = 0
        left = _release(rows, state)
        if left < 0:
            return _DEADLOCK
        if left == 0:
            if state[S_POSITION] < len(marks):
                for k in range(len(guarded)):
                    marks[state[S_POSITION], k] = guarded[k]
            state[S_POSITION] += 1
            state[S_STARTED] = 0
    return _FINISHED


@inlined
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


@inlined
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
        row[_STATUS] = READY
        row[_CTAID_X] = block % grid[0]
        row[_CTAID_Y] = block // grid[0] % grid[1]
        row[_CTAID_Z] = block // (grid[0] * grid[1])
        row[_LOCAL_TRACE] = LOCAL_WINDOW + (block * warps + w) * 32 * state[S_LOCAL_BYTES]
    for k in range(16):
        state[S_FIRST_BARRIER + k] = 0
    state[S_STARTED] = 1
    state[S_WARP] = 0


@inlined
def _turn(code: int, address: int, row: np.ndarray, state: np.ndarray, turns: np.ndarray, warp: int) -> int:
    """Let one warp run and note where its part of the trace buffers lies."""
    row[_PATH] = state[S_PATH]
    row[_RECORD] = state[S_RECORD]
    row[_PATTERN] = state[S_PATTERN]
    row[_NUMBER] = state[S_NUMBER]
    row[_FUEL] = state[S_TURN]
    row[_GUARDED_SUM] = 0
    before = row[_COUNT]
    result = _call(code, address)
    turn = turns[state[S_SEGMENTS]]
    turn[TURN_WARP] = warp
    turn[TURN_PATH] = state[S_PATH]
    turn[TURN_PATH_END] = row[_PATH]
    turn[TURN_RECORD] = state[S_RECORD]
    turn[TURN_RECORD_END] = row[_RECORD]
    turn[TURN_GUARDED] = row[_GUARDED_SUM]
    state[S_SEGMENTS] += 1
    state[S_PATH] = row[_PATH]
    state[S_RECORD] = row[_RECORD]
    state[S_PATTERN] = row[_PATTERN]
    state[S_NUMBER] = row[_NUMBER]
    state[S_BUDGET] -= row[_COUNT] - before
    state[S_FLAGS] |= row[_FLAGS]
    return result


@inlined
def _spins_too_long(row: np.ndarray, result: int, state: np.ndarray, spins: np.ndarray) -> bool:
    """What the end of a turn means for the warp. Returns whether its executing lanes should give way."""
    if result == _EXIT_TURN:
        limit = spins[row[_RESUME]]
        row[_SPIN] += 1
        return limit > 0 and row[_DEPTH] > 0 and row[_SPIN] >= limit
    row[_SPIN] = 0
    if result == _EXIT_DONE:
        row[_STATUS] = ENDED
    elif row[_BARRIER_KIND] == 1:
        state[S_FIRST_BARRIER + (row[_BARRIER] & 15)] += 1
        row[_STATUS] = READY
    else:
        row[_STATUS] = WAITING
    return False


@inlined
def _release(rows: np.ndarray, state: np.ndarray) -> int:
    """Open every barrier that all its warps have reached.

    Returns how many warps can run; if none can, 0 when all have ended, -1 when some wait.
    """
    ready = waiting = 0
    for w in range(len(rows)):
        if rows[w, _STATUS] == READY:
            ready += 1
        elif rows[w, _STATUS] == WAITING:
            waiting += 1
    alive = ready + waiting
    for w in range(len(rows)):
        if rows[w, _STATUS] != WAITING:
            continue
        number = rows[w, _BARRIER] & 15
        wanted = rows[w, _BARRIER_WARPS]
        if wanted == 0:
            wanted = alive
        here = state[S_FIRST_BARRIER + number]
        total = threads = 0
        for v in range(len(rows)):
            if rows[v, _STATUS] == WAITING and (rows[v, _BARRIER] & 15) == number:
                here += 1
                total += rows[v, _BARRIER_VALUE]
                threads += rows[v, _BARRIER_THREADS]
        if here < wanted:
            continue
        state[S_FIRST_BARRIER + number] = 0
        for v in range(len(rows)):
            if rows[v, _STATUS] == WAITING and (rows[v, _BARRIER] & 15) == number:
                rows[v, _STATUS] = READY
                rows[v, _BARRIER_RESULT] = total
                rows[v, _BARRIER_RESULT_THREADS] = threads
                ready += 1
    return ready if ready > 0 or waiting == 0 else -1


def _give_way(row: NDArray[np.int64], stack: NDArray[np.int32]) -> None:
    """The executing lanes wait for other lanes of their warp: let those run, though they have not joined.

    Lanes that already stand at the join go on from there, and the waiting ones join them later, at the next outer
    join. Where no lane stands there, the next of the pending paths runs. `stack` rows: resume point, mask, join.
    """
    while row[Slot.DEPTH] > 0:
        depth = int(row[Slot.DEPTH])
        rpc = _signed(int(row[Slot.RPC]))
        mask = int(row[Slot.MASK]) & FULL_MASK
        join = depth - 1
        pending = mask
        while join >= 0 and stack[join, 2] == rpc and stack[join, 0] != rpc:
            pending |= int(stack[join, 1]) & FULL_MASK
            join -= 1
        arrived = 0
        if join >= 0 and stack[join, 0] == rpc:
            arrived = int(stack[join, 1]) & int(row[Slot.LIVE]) & ~pending & FULL_MASK
        waiting = [int(row[Slot.RESUME]), _signed(mask)]
        if arrived:
            outer = int(stack[join, 2])
            stack[join : depth - 1] = stack[join + 1 : depth].copy()  # the join's entry goes
            stack[join : depth - 1, 2] = outer  # the paths before it meet at the outer join
            stack[depth - 1, :3] = [*waiting, outer]
            row[Slot.RESUME], row[Slot.MASK], row[Slot.RPC] = rpc, arrived, outer & FULL_MASK
            return
        if depth - 1 > join:  # another path to the same join: take the next, put this one last
            point, next_mask = (int(word) for word in stack[depth - 1, :2])
            stack[join + 2 : depth] = stack[join + 1 : depth - 1].copy()
            stack[join + 1, :3] = [*waiting, rpc]
            row[Slot.RESUME], row[Slot.MASK] = point, next_mask & FULL_MASK
            return
        if join < 0:
            return
        row[Slot.RPC] = int(stack[join, 2]) & FULL_MASK  # nobody else comes to this join
        row[Slot.DEPTH] = join


def _signed(word: int) -> int:
    """The low 32 bits as a signed number."""
    return ((word & FULL_MASK) ^ (1 << 31)) - (1 << 31)
