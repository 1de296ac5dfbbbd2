"""Runs blocks one after another: their warps take turns between barriers. The compiled loop around compiled warps.

A block's warps run in order, each until it meets a barrier, exits, or has used up its turn. When every warp had its
turn, barriers that all expected warps have reached are released.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

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


_FINISHED, _FULL, _FAULT, _BUDGET, _DEADLOCK = (int(reason) for reason in Reason)
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


@njit(cache=True)
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
    entry: NDArray[np.int64],  # [n, 2] (offset, bytes) of registers to clear
    stacks: NDArray[np.int32],  # [warps, depth, 4]
    spins: NDArray[np.int64],  # [2 S] by resume point
) -> int:
    """Run until the blocks are finished or something needs attention. Returns a Reason; call again to go on."""
    while state[State.POSITION] < len(blocks):
        if state[State.STARTED] == 0:
            shared[:] = 0
            local[:] = 0
            _start_block(rows, blocks[state[State.POSITION]], grid, state, frames, entry)
        reason = _run_block(code, rows, state, turns, stacks, spins)
        if reason != _FINISHED:
            return reason
        state[State.POSITION] += 1
        state[State.STARTED] = 0
    return _FINISHED


@njit(cache=True)
def _start_block(
    rows: NDArray[np.int64],
    block: int,
    grid: NDArray[np.int64],
    state: NDArray[np.int64],
    frames: NDArray[np.uint8],
    entry: NDArray[np.int64],
) -> None:
    warps = len(rows)
    for w in range(warps):
        row = rows[w]
        lanes = min(32, state[State.THREADS] - 32 * w)
        mask = (1 << lanes) - 1
        row[Slot.RESUME] = 0
        row[Slot.MASK] = mask
        row[Slot.LIVE] = mask
        row[Slot.RPC] = FULL_MASK
        row[Slot.DEPTH] = 0
        row[Slot.COUNT] = 0
        row[Slot.SPIN] = 0
        row[Slot.STATUS] = READY
        row[Slot.CTAID_X] = block % grid[0]
        row[Slot.CTAID_Y] = block // grid[0] % grid[1]
        row[Slot.CTAID_Z] = block // (grid[0] * grid[1])
        row[Slot.LOCAL_TRACE] = LOCAL_WINDOW + (block * warps + w) * 32 * state[State.LOCAL_BYTES]
        for k in range(len(entry)):
            frames[w, entry[k, 0] : entry[k, 0] + entry[k, 1]] = 0
    for k in range(16):
        state[State.FIRST_BARRIER + k] = 0
    state[State.STARTED] = 1
    state[State.WARP] = 0


@njit(cache=True)
def _run_block(
    code: int,
    rows: NDArray[np.int64],
    state: NDArray[np.int64],
    turns: NDArray[np.int64],
    stacks: NDArray[np.int32],
    spins: NDArray[np.int64],
) -> int:
    warps = len(rows)
    while True:
        w = state[State.WARP]
        while w < warps:
            row = rows[w]
            if row[Slot.STATUS] == READY:
                state[State.WARP] = w
                if state[State.SEGMENTS] == len(turns):
                    return _FULL
                result = _turn(code, row, state, turns, state[State.POSITION] * warps + w)
                if result == Exit.FAULT:
                    return _FAULT
                if state[State.BUDGET] < 0:
                    return _BUDGET
                if result == Exit.FULL:
                    return _FULL
                _after_turn(row, result, state, stacks[w], spins)
            w += 1
        state[State.WARP] = 0
        ready, waiting = _release(rows, state)
        if ready == 0:
            return _DEADLOCK if waiting else _FINISHED


@njit(cache=True)
def _turn(code: int, row: NDArray[np.int64], state: NDArray[np.int64], turns: NDArray[np.int64], warp: int) -> int:
    """Let one warp run and note where its part of the trace buffers lies."""
    row[Slot.PATH] = state[State.PATH]
    row[Slot.RECORD] = state[State.RECORD]
    row[Slot.PATTERN] = state[State.PATTERN]
    row[Slot.NUMBER] = state[State.NUMBER]
    row[Slot.FUEL] = state[State.TURN]
    row[Slot.GUARDED_SUM] = 0
    result: int = _call(code, np.int64(row.ctypes.data))
    turn = turns[state[State.SEGMENTS]]
    turn[TURN_WARP] = warp
    turn[TURN_PATH], turn[TURN_PATH_END] = state[State.PATH], row[Slot.PATH]
    turn[TURN_RECORD], turn[TURN_RECORD_END] = state[State.RECORD], row[Slot.RECORD]
    turn[TURN_GUARDED] = row[Slot.GUARDED_SUM]
    state[State.SEGMENTS] += 1
    state[State.PATH] = row[Slot.PATH]
    state[State.RECORD] = row[Slot.RECORD]
    state[State.PATTERN] = row[Slot.PATTERN]
    state[State.NUMBER] = row[Slot.NUMBER]
    state[State.BUDGET] -= state[State.TURN] - row[Slot.FUEL]
    state[State.FLAGS] |= row[Slot.FLAGS]
    return result


@njit(cache=True)
def _after_turn(
    row: NDArray[np.int64], result: int, state: NDArray[np.int64], stack: NDArray[np.int32], spins: NDArray[np.int64]
) -> None:
    if result == Exit.TURN:
        limit = spins[row[Slot.RESUME]]
        row[Slot.SPIN] += 1
        if limit > 0 and row[Slot.DEPTH] > 0 and row[Slot.SPIN] >= limit:
            _give_way(row, stack)
        return
    row[Slot.SPIN] = 0
    if result == Exit.DONE:
        row[Slot.STATUS] = ENDED
    elif row[Slot.BARRIER_KIND] == 1:
        state[State.FIRST_BARRIER + (row[Slot.BARRIER] & 15)] += 1
        row[Slot.STATUS] = READY
    else:
        row[Slot.STATUS] = WAITING


@njit(cache=True)
def _give_way(row: NDArray[np.int64], stack: NDArray[np.int32]) -> None:
    """The executing lanes wait for other lanes of their warp: let those run, though they have not joined.

    Lanes that already stand at the join go on from there, and the waiting ones join them later, at the next outer
    join. Where no lane stands there, the next of the pending paths runs.
    """
    while row[Slot.DEPTH] > 0:
        depth = row[Slot.DEPTH]
        rpc = np.int32(row[Slot.RPC] & FULL_MASK)
        mask = row[Slot.MASK] & FULL_MASK
        join = depth - 1
        pending = mask
        while join >= 0 and stack[join, 2] == rpc and stack[join, 0] != rpc:
            pending |= stack[join, 1] & FULL_MASK
            join -= 1
        arrived = np.int64(0)
        if join >= 0 and stack[join, 0] == rpc:
            arrived = stack[join, 1] & row[Slot.LIVE] & ~pending & FULL_MASK
        if arrived:
            outer = stack[join, 2]
            for k in range(join, depth - 1):  # the join's entry goes, the paths before it meet at the outer join
                stack[k] = stack[k + 1]
                stack[k, 2] = outer
            _put(stack, depth - 1, row[Slot.RESUME], mask, outer)
            row[Slot.RESUME], row[Slot.MASK], row[Slot.RPC] = rpc, arrived, np.int64(outer) & FULL_MASK
            return
        if depth - 1 > join:  # another path to the same join: take the next, put this one last
            point, next_mask = stack[depth - 1, 0], stack[depth - 1, 1]
            for k in range(depth - 1, join + 1, -1):
                stack[k] = stack[k - 1]
            _put(stack, join + 1, row[Slot.RESUME], mask, stack[join + 2, 2])
            row[Slot.RESUME], row[Slot.MASK] = point, np.int64(next_mask) & FULL_MASK
            return
        if join < 0:
            return
        row[Slot.RPC] = np.int64(stack[join, 2]) & FULL_MASK  # nobody else comes to this join
        row[Slot.DEPTH] = join


@njit(cache=True)
def _put(stack: NDArray[np.int32], at: int, point: int, mask: int, rpc: int) -> None:
    stack[at, 0] = point
    stack[at, 1] = np.int32(np.uint32(mask & FULL_MASK))
    stack[at, 2] = rpc


@njit(cache=True)
def _release(rows: NDArray[np.int64], state: NDArray[np.int64]) -> tuple[int, int]:
    """Open every barrier that all its warps have reached. Returns (warps that can run, warps that wait)."""
    ready = waiting = 0
    for w in range(len(rows)):
        if rows[w, Slot.STATUS] == READY:
            ready += 1
        elif rows[w, Slot.STATUS] == WAITING:
            waiting += 1
    alive = ready + waiting
    for w in range(len(rows)):
        if rows[w, Slot.STATUS] != WAITING:
            continue
        number = rows[w, Slot.BARRIER] & 15
        wanted = rows[w, Slot.BARRIER_WARPS]
        if wanted == 0:
            wanted = alive
        here = state[State.FIRST_BARRIER + number]
        total = threads = 0
        for v in range(len(rows)):
            if rows[v, Slot.STATUS] == WAITING and (rows[v, Slot.BARRIER] & 15) == number:
                here += 1
                total += rows[v, Slot.BARRIER_VALUE]
                threads += rows[v, Slot.BARRIER_THREADS]
        if here < wanted:
            continue
        state[State.FIRST_BARRIER + number] = 0
        for v in range(len(rows)):
            if rows[v, Slot.STATUS] == WAITING and (rows[v, Slot.BARRIER] & 15) == number:
                rows[v, Slot.STATUS] = READY
                rows[v, Slot.BARRIER_RESULT] = total
                rows[v, Slot.BARRIER_RESULT_THREADS] = threads
                ready += 1
                waiting -= 1
    return ready, waiting
