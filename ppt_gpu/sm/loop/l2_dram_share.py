"""Below the L1: interconnect, L2 slice and DRAM share. The same steps as `reference.memory`, on `mem`."""

from __future__ import annotations

from ppt_gpu.common.bits import int64, quotient
from ppt_gpu.common.compiled import called, merged, popcount
from ppt_gpu.common.records import Words
from ppt_gpu.sm.loop.memory import (
    ALL_SECTORS,
    C_DRAM_READ,
    C_DRAM_WRITE,
    C_L2,
    C_L2_HIT,
    C_L2_READ,
    C_L2_WRITE,
    COMING_AT,
    DIRTY,
    DIRTY_REST,
    DRAM,
    FILL,
    FILLING,
    FRESH,
    HOLDS,
    INWARD,
    KEPT_AT,
    L2_NODE,
    L2_SERVER,
    L2_SET,
    NEXT,
    OUTWARD,
    P_AHEAD,
    P_BYTES,
    P_DIRTY,
    P_DRAM,
    P_DRAM_GROUP,
    P_DRAM_LATENCY,
    P_ICNT,
    P_L2,
    P_L2_ALLOCATE,
    P_L2_BACK,
    P_L2_FAR,
    P_L2_FIFO,
    P_L2_LATENCY,
    P_L2_NEAR,
    P_L2_WRITE,
    P_LOADED,
    P_TURN,
    P_WORK,
    PLACE,
    SECTORS,
    VALID,
    VICTIM,
    WARM_AT,
)
from ppt_gpu.sm.loop.tags import claim, line_place, renew, request, whole
from ppt_gpu.sm.program.machine import DRAM_QUIET, FRACTION, ONE
from ppt_gpu.sm.program.program import FORCED_DRAM


@called
def _dram_busy(mem: Words, time: int, count: int, others: int) -> None:
    """DRAM serves `count` bursts in one direction; `others`: bytes that it has moved in the other one."""
    cost = count * mem[P_DRAM]
    if others != 0 and mem[P_TURN] != 0:
        cost += quotient(count * mem[P_TURN] * others, mem[C_DRAM_READ] + mem[C_DRAM_WRITE])
    mem[DRAM] = max(mem[DRAM], time - mem[P_AHEAD]) + cost


@called
def _dram_loaded(mem: Words, time: int) -> int:
    """Cycles by which a read is later because of what else DRAM does: with the square of its use, twice as many where
    half are writes. In 1/1024."""
    moved = mem[C_DRAM_READ] + mem[C_DRAM_WRITE]
    if mem[P_LOADED] == 0 or moved == 0:
        return int64(0)
    work = quotient(moved, mem[P_BYTES] * mem[P_DRAM_GROUP]) * mem[P_WORK]
    used = min(quotient(work * 1024, time + DRAM_QUIET * ONE), 1024)
    writes = quotient(mem[C_DRAM_WRITE] * 1024, moved)
    return mem[P_LOADED] * ((1 << 20) + 4 * writes * (1024 - writes)) * used * used >> 40


@merged
def _dram_write(mem: Words, time: int, count: int) -> None:
    """DRAM takes `count` sectors of a line."""
    group = mem[P_DRAM_GROUP]
    bursts = quotient(count + group - 1, group)
    _dram_busy(mem, time, bursts, mem[C_DRAM_READ])
    mem[C_DRAM_WRITE] += bursts * group * mem[P_BYTES]


@called
def _l2_keep(mem: Words, time: int, place: int, sectors: int) -> int:
    """The node of a line, allocated if need be, before `sectors` become valid. Replaced dirty sectors go to DRAM."""
    node = mem[place + L2_NODE] & PLACE
    if node == 0:
        at = mem[place + L2_SET] & PLACE
        node = mem[at + VICTIM] & PLACE
        fresh = mem[node + HOLDS] == 0
        if mem[node + DIRTY] != 0 and not fresh:
            _dram_write(mem, time, popcount(mem[node + DIRTY]))
        claim(mem, L2_NODE, at, node, place)
        mem[node + FRESH] = fresh
    if mem[P_DIRTY] != 0 and mem[node + FRESH] != 0:
        rest = mem[DIRTY_REST] + popcount(sectors & ~mem[node + VALID]) * mem[P_DIRTY]
        count = quotient(rest >> FRACTION, mem[P_DRAM_GROUP]) * mem[P_DRAM_GROUP]
        if count != 0:
            _dram_write(mem, time, count)
        mem[DIRTY_REST] = rest - (count << FRACTION)
    return node


@called
def _l2_is_far(mem: Words, node: int) -> bool:
    """Have as many lines of the set been used after this one as the part of the L2 next to the SM has ways?"""
    for _ in range(mem[P_L2_NEAR]):
        node = mem[node + NEXT] & PLACE
        if node == 0:
            return False
    return True


@merged
def _l2_comes_from_far(mem: Words, node: int, sectors: int) -> bool:
    """Does the L2 have some of `sectors`, but not the part next to the SM? What was pushed out of that is forgotten."""
    if _l2_is_far(mem, node):
        mem[node + VALID] &= ALL_SECTORS
    return sectors & mem[node + VALID] & ~(mem[node + VALID] >> SECTORS) != 0


@called
def _is_kept(mem: Words, place: int) -> bool:
    """Do others keep this line in the L2? Then it is not this SM that writes it back."""
    return mem[place + L2_SET] >> KEPT_AT & 1 != 0


@called
def _l2_missing(mem: Words, place: int, forced: int, sectors: int) -> int:
    """Sectors that the L2 lacks and, from bit SECTORS on, that others fetch right now; the line becomes the newest."""
    coming = int64(0)
    if place == 0:
        missing = sectors if forced == FORCED_DRAM else int64(0)
    else:
        node = mem[place + L2_NODE] & PLACE
        missing = sectors
        if node:
            missing &= ~mem[node + VALID]
            if mem[P_L2_FIFO] == 0:
                renew(mem, mem[place + L2_SET] & PLACE, node)
        warm = mem[place + L2_SET] >> WARM_AT
        if warm:
            used = int64(0) if _is_kept(mem, place) else sectors
            mem[place + L2_SET] &= ~(used << WARM_AT | sectors << COMING_AT)
            coming = warm >> (COMING_AT - WARM_AT) & missing
            missing &= ~warm
    mem[C_L2_HIT] += popcount(sectors & ~missing)
    return missing | coming << SECTORS


@merged
def l2_read(mem: Words, time: int, line: int, sectors: int, wait: int, atomic: int) -> int:
    """Cycle at which the data of a load or atomic is back at the SM."""
    place, count = line_place(mem, line), popcount(sectors)
    mem[C_L2] += count
    mem[C_L2_READ] += count * mem[P_BYTES]
    wait = max(wait, mem[L2_SERVER] - time, mem[INWARD] - time)
    mem[L2_SERVER] = max(mem[L2_SERVER], time) + count * mem[P_L2]
    mem[INWARD] = max(mem[INWARD], time) + count * mem[P_ICNT]
    present = place != 0 and mem[place + L2_NODE] != 0
    latency = mem[P_L2_LATENCY]
    if mem[P_L2_FAR] != 0 and present and _l2_comes_from_far(mem, mem[place + L2_NODE] & PLACE, sectors):
        latency += mem[P_L2_FAR]
    found = _l2_missing(mem, place, line, sectors)
    missing, late = found & ALL_SECTORS, (found | found >> SECTORS) & ALL_SECTORS
    if late:
        latency = mem[P_DRAM_LATENCY] + _dram_loaded(mem, time)
        wait = max(wait, mem[DRAM] - time)
    if missing:
        absent = popcount(missing)
        _dram_busy(mem, time, absent, mem[C_DRAM_WRITE])
        mem[C_DRAM_READ] += absent * mem[P_DRAM_GROUP] * mem[P_BYTES]
    done = whole(time + wait) + latency
    if place:
        now = time >> FRACTION
        node = _l2_keep(mem, time, place, sectors)
        if present and (sectors & mem[node + FILLING] & ~late) != 0 and mem[node + FILL] > now:
            done = max(done, mem[node + FILL])
        if late:
            request(mem, node, now, done, late)
        mem[node + VALID] |= sectors | sectors << SECTORS
        if atomic != 0 and not _is_kept(mem, place):
            mem[node + DIRTY] |= sectors
    return done


@called
def l2_write(mem: Words, time: int, place: int, forced: int, sectors: int) -> int:
    """Server time at which L2 (and DRAM, a latency's worth of writes ahead) has accepted the sectors."""
    count = popcount(sectors)
    mem[C_L2] += count
    mem[C_L2_WRITE] += count * mem[P_BYTES]
    mem[OUTWARD] = max(mem[OUTWARD], time) + count * mem[P_ICNT]
    mem[L2_SERVER] = max(mem[L2_SERVER], time) + count * mem[P_L2_WRITE]
    before = mem[C_DRAM_WRITE]
    if mem[P_L2_FAR] != 0 and place != 0 and mem[place + L2_NODE] != 0:
        _l2_comes_from_far(mem, mem[place + L2_NODE] & PLACE, sectors)
    missing = _l2_missing(mem, place, forced, sectors) & ALL_SECTORS
    keep = mem[P_L2_BACK] != 0 and (mem[P_L2_ALLOCATE] != 0 or missing == 0)
    if not keep or (place == 0 and missing != 0):
        _dram_write(mem, time, count)
    if place != 0 and (mem[P_L2_ALLOCATE] != 0 or mem[place + L2_NODE] != 0):
        node = _l2_keep(mem, time, place, sectors)
        mem[node + VALID] |= sectors | sectors << SECTORS
        if keep and not _is_kept(mem, place):
            mem[node + DIRTY] |= sectors
    accepted = max(mem[OUTWARD], mem[L2_SERVER])
    if mem[C_DRAM_WRITE] != before:
        accepted = max(accepted, mem[DRAM] - mem[P_DRAM_LATENCY] * ONE)
    return accepted
