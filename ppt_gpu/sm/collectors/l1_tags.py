"""The L1 with pipelines before its banks in the compiled loop: what it does with a sector, requests for it, answers.

As `_look_up` and `_store` of `reference.l1`, on `mem`.
"""

from __future__ import annotations

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, merged, popcount
from ppt_gpu.common.records import Words
from ppt_gpu.sm.chip import staged_l1_state as s
from ppt_gpu.sm.loop import memory as c
from ppt_gpu.sm.loop.code import line_there
from ppt_gpu.sm.loop.tags import drop, find, forget, remember, renew
from ppt_gpu.sm.program.machine import WRITE_EVICT
from ppt_gpu.sm.program.program import FORCED_L1, KIND_LOAD, KIND_STORE

#: above the number of a line, in what is kept of the word of a transaction: its set
SET_OF_LINE = c.SET_AT - c.SECTORS


@merged
def sectors_of(bit: int, group: int) -> int:
    """Mask of the sectors of the L2 that one of the L1 has."""
    return ((int64(1) << group) - 1) << (bit * group)


@merged
def parts_of(mask: int, group: int) -> int:
    """How many sectors of the L1 a mask of sectors of the L2 is in."""
    if group == 1:
        return popcount(mask)
    count = int64(0)
    for bit in range(c.SECTORS // group):
        count += int64(mask & sectors_of(bit, group) != 0)
    return count


@merged
def part(mem: Words) -> int:
    """Where all this begins, 0: the L1 has no such pipelines."""
    return mem[c.L1_PIPE] & c.PLACE


@called
def put_answer(mem: Words, request: int, done: int) -> None:
    """A request that has left is answered at cycle `done`."""
    base = part(mem)
    heap, at = mem[base + s.HEAP], mem[base + s.HEAP_SIZE]
    mem[base + s.HEAP_SIZE] = at + 1
    mem[base + s.ORDER] += 1
    done = max(done, mem[request + s.R_LEFT] + 1)
    key = done << s.ORDER_BITS | (mem[base + s.ORDER] & ((1 << s.ORDER_BITS) - 1))
    while at > 0:
        above = (at - 1) >> 1
        if mem[heap + above * s.ANSWER_WORDS] <= key:
            break
        mem[heap + at * s.ANSWER_WORDS] = mem[heap + above * s.ANSWER_WORDS]
        mem[heap + at * s.ANSWER_WORDS + 1] = mem[heap + above * s.ANSWER_WORDS + 1]
        at = above
    mem[heap + at * s.ANSWER_WORDS] = key
    mem[heap + at * s.ANSWER_WORDS + 1] = request
    mem[base + s.DUE] = min(mem[base + s.DUE], done)


@called
def pop_answer(mem: Words, base: int) -> None:
    """The first answer has come in."""
    heap, size = mem[base + s.HEAP], mem[base + s.HEAP_SIZE] - 1
    mem[base + s.HEAP_SIZE] = size
    last, at = heap + size * s.ANSWER_WORDS, int64(0)
    key = mem[last]
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and mem[heap + (below + 1) * s.ANSWER_WORDS] < mem[heap + below * s.ANSWER_WORDS]:
            below += 1
        if key <= mem[heap + below * s.ANSWER_WORDS]:
            break
        mem[heap + at * s.ANSWER_WORDS] = mem[heap + below * s.ANSWER_WORDS]
        mem[heap + at * s.ANSWER_WORDS + 1] = mem[heap + below * s.ANSWER_WORDS + 1]
        at = below
    mem[heap + at * s.ANSWER_WORDS] = key
    mem[heap + at * s.ANSWER_WORDS + 1] = mem[last + 1]


@called
def free_request(mem: Words, base: int, request: int) -> None:
    mem[request + s.R_FREE] = mem[base + s.FREE_REQUEST]
    mem[base + s.FREE_REQUEST] = request
    mem[base + s.IN_USE] -= 1


@called
def fill(mem: Words, request: int) -> None:
    """Its sector is in the L1."""
    node = mem[request + s.R_NODE] & c.PLACE
    if node == 0:
        return
    bit, other = int64(1) << mem[request + s.R_BIT], mem[node + s.REQUESTED] & c.PLACE
    mem[node + c.VALID] |= bit
    mem[node + c.FILLING] &= ~bit
    if other == request:
        mem[node + s.REQUESTED] = mem[request + s.R_BESIDE]
        return
    while mem[other + s.R_BESIDE] != request:
        other = mem[other + s.R_BESIDE] & c.PLACE
    mem[other + s.R_BESIDE] = mem[request + s.R_BESIDE]


@called
def new_request(mem: Words, base: int, kind: int, line: int, bit: int, mask: int, op: int) -> int:
    """A new request for a sector, for which there is room."""
    request = mem[base + s.FREE_REQUEST] & c.PLACE
    if request:
        mem[base + s.FREE_REQUEST] = mem[request + s.R_FREE]
    else:
        request = mem[base + s.NEW_REQUEST] & c.PLACE
        mem[base + s.NEW_REQUEST] = request + mem[base + s.REQUEST_WORDS]
    mem[base + s.IN_USE] += 1
    mem[request + s.R_KIND], mem[request + s.R_LINE], mem[request + s.R_BIT] = kind, line, bit
    mem[request + s.R_MASK] = mask
    mem[request + s.R_NODE], mem[request + s.R_BESIDE] = 0, 0
    mem[request + s.R_COUNT], mem[request + s.R_DRAINED] = 1, 0
    mem[request + s.R_OPERATIONS] = op
    return request


@called
def code_there(mem: Words, operation: int, behind: int, cycle: int) -> int:
    """As `line_there`; under perfect memory the answer takes its turn among the others."""
    base = part(mem)
    if base == 0 or mem[c.P_PERFECT] == 0:
        return line_there(mem, operation, behind, int64(0), cycle)
    queued = mem[base + s.HEAP_SIZE]
    there = line_there(mem, operation, behind, queued, cycle)
    if there == cycle + 1 + queued:
        request = new_request(mem, base, int64(s.OF_CODE), int64(-1), int64(0), int64(0), int64(0))
        mem[request + s.R_LEFT] = cycle
        put_answer(mem, request, cycle + 1)
    return there


@merged
def _miss(mem: Words, base: int, request: int) -> None:
    mem[mem[base + s.MISSES] + (mem[base + s.MISS_IN] & mem[base + s.MISS_MASK])] = request
    mem[base + s.MISS_IN] += 1


@merged
def _renewed(mem: Words, base: int, line: int, node: int) -> None:
    """The line, of that node, is the newest of its set."""
    if mem[c.P_L1_FIFO] == 0:
        renew(mem, mem[base + s.SETS] + (line >> SET_OF_LINE) * c.SET_WORDS, node)


@called
def _allocate(mem: Words, base: int, line: int) -> int:
    """A node for a line that has none; 0 where each of its set has something on its way."""
    at = mem[base + s.SETS] + (line >> SET_OF_LINE) * c.SET_WORDS
    node = mem[at + c.VICTIM] & c.PLACE
    while mem[node + c.FILLING] != 0:
        node = mem[node + c.NEXT] & c.PLACE
        if node == 0:
            return int64(0)
    number = line & c.LINE_MASK
    if mem[node + c.HOLDS] != 0:
        forget(mem, mem[base + s.TAGS], mem[base + s.TAG_MASK], mem[node + c.HOLDS] - 1)
        if mem[node + c.DIRTY] != 0:
            mem[base + s.REPLACED], mem[base + s.REPLACED_MASK] = mem[node + c.HOLDS] - 1, mem[node + c.DIRTY]
    mem[node + c.HOLDS] = number + 1
    mem[node + c.VALID], mem[node + c.DIRTY], mem[node + s.REQUESTED] = 0, 0, 0
    remember(mem, mem[base + s.TAGS], mem[base + s.TAG_MASK], number, node)
    renew(mem, at, node)
    return node


@called
def look_up(mem: Words, base: int, op: int, line: int, bit: int, part: int) -> int:
    """What the L1 does with a sector: 1 it goes on, 2 it is there, 0 it has to wait."""
    mask, node, waiting = int64(1) << bit, int64(0), mem[base + s.MISS_IN] - mem[base + s.MISS_OUT]
    if line >= 0:
        node = find(mem, mem[base + s.TAGS], mem[base + s.TAG_MASK], line & c.LINE_MASK)
    if mem[op + s.O_KIND] == KIND_STORE:
        if mem[op + s.O_STAYS] != 0 and node != 0 and mem[node + c.VALID] & mask != 0:
            _renewed(mem, base, line, node)
            mem[node + c.DIRTY] |= part
            return int64(2)
        if waiting >= mem[base + s.MISS_PLACES] or mem[base + s.IN_USE] >= s.AT_ONCE:
            return int64(0)
        if mem[c.P_L1_WRITE] == WRITE_EVICT:
            if node != 0 and mem[node + c.VALID] & mask != 0:
                mem[node + c.VALID] &= ~mask
                if mem[node + c.VALID] == 0 and mem[node + c.FILLING] == 0:
                    forget(mem, mem[base + s.TAGS], mem[base + s.TAG_MASK], line & c.LINE_MASK)
                    drop(mem, mem[base + s.SETS] + (line >> SET_OF_LINE) * c.SET_WORDS, node)
        else:
            if node:
                _renewed(mem, base, line, node)
            elif line >= 0 and mem[c.P_L1_ALLOCATE] != 0:
                node = _allocate(mem, base, line)
                if node == 0:
                    return int64(0)
            if node:
                mem[node + c.VALID] |= mask
        _miss(mem, base, new_request(mem, base, int64(KIND_STORE), line, bit, part, op))
        return int64(1)
    if line == FORCED_L1 or (node != 0 and mem[node + c.VALID] & mask != 0):
        if node:
            _renewed(mem, base, line, node)
        mem[c.C_L1] += 1
        mem[c.C_L1_HIT] += 1
        return int64(2)
    if waiting + 1 >= mem[base + s.MISS_PLACES]:
        return int64(0)
    if node != 0 and mem[node + c.FILLING] & mask != 0:
        request = mem[node + s.REQUESTED] & c.PLACE
        while mem[request + s.R_BIT] != bit:
            request = mem[request + s.R_BESIDE] & c.PLACE
        if mem[request + s.R_COUNT] >= mem[c.P_MERGES]:
            return int64(0)
        _renewed(mem, base, line, node)
        mem[request + s.R_OPERATIONS + mem[request + s.R_COUNT]] = op
        mem[request + s.R_COUNT] += 1
        mem[c.C_L1] += 1
        mem[c.C_L1_HIT] += 1
        return int64(1)
    if mem[base + s.MSHRS_USED] >= mem[c.P_MSHRS] or mem[base + s.IN_USE] >= s.AT_ONCE:
        return int64(0)
    if node:
        _renewed(mem, base, line, node)
    elif line >= 0:
        node = _allocate(mem, base, line)
        if node == 0:
            return int64(0)
    mem[c.C_L1] += 1
    mem[base + s.MSHRS_USED] += 1
    request = new_request(mem, base, int64(KIND_LOAD), line, bit, sectors_of(bit, mem[base + s.GROUP]), op)
    if node:
        mem[request + s.R_NODE], mem[request + s.R_BESIDE] = node, mem[node + s.REQUESTED]
        mem[node + s.REQUESTED] = request
        mem[node + c.FILLING] |= mask
    _miss(mem, base, request)
    if mem[base + s.REPLACED_MASK] != 0:
        back = new_request(
            mem, base, int64(KIND_STORE), mem[base + s.REPLACED], int64(0), mem[base + s.REPLACED_MASK], int64(0)
        )  # fmt: skip
        mem[base + s.REPLACED_MASK] = 0
        _miss(mem, base, back)
    return int64(1)
