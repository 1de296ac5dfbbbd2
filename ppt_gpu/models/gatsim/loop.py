"""GATSim's Algorithm 1 for one SM, compiled; `tests/reference/gatsim.py` is the same in plain Python.

The occupancy vector holds the cycles at which warps are ready, not the cycles left: nothing need be decremented.
"""

from __future__ import annotations

import numpy as np

from ppt_gpu.common.compiled import entry, merged
from ppt_gpu.common.errors import PptError
from ppt_gpu.models.gatsim.work import (
    ACCESS,
    BARRIER,
    CONSTANT,
    L1_GLOBAL,
    LINE_HITS,
    MEMORY,
    PERFECT,
    POLICIES,
    REGULAR,
    SFU,
    UNCACHED,
    GatsimMachine,
    GatsimTime,
    GatsimWork,
)

_NEVER = 1 << 62
_RR, _GTO = 0, 1
#: in `totals`
_CYCLES, _ISSUED, _HITS, _MISSES, _TOTALS = range(5)
#: of a warp in `warp`
_READY, _ENTRY, _END, _ACCESS_AT, _SEEN, _WAITS, _ORDER, _KIND, _FIELDS = range(9)


def gatsim_time(work: GatsimWork, machine: GatsimMachine, log: np.ndarray | None = None) -> GatsimTime:
    """T_s of one SM that runs the blocks of `work` in order, `machine.resident` at once.

    log [instructions, 3]: filled with (cycle, warp, instruction of the warp) of every issue, in order.
    Raises PptError for an unknown policy or a machine without schedulers, units or block slots.
    """
    check_machine(machine)
    blocks = len(work.block_warp) - 1
    size = int(np.diff(work.block_warp).max(initial=0))
    slots = min(machine.resident, blocks)
    end = np.zeros(blocks, np.int64)
    idle, totals = np.zeros(ACCESS + 1, np.int64), np.zeros(_TOTALS, np.int64)
    if blocks:
        l1, constant = machine.l1, machine.constant
        _run(
            work.path_start, work.entry_kind, work.entry_delay, work.warp_path, work.warp_access, work.block_warp,
            work.access_start, work.access_fixed, work.access_store, work.access_write, work.access_line,
            np.zeros((slots * size, _FIELDS), np.int64), np.full(slots, -1, np.int64), size,
            np.zeros((machine.schedulers, 2), np.int64), POLICIES.index(machine.policy),
            np.zeros(machine.memory_units, np.int64), np.zeros(machine.sfus, np.int64),
            machine.hit, machine.miss,
            np.full((l1.sets, l1.ways), -1, np.int64), np.full((constant.sets, constant.ways), -1, np.int64),
            np.zeros((0, 3), np.int64) if log is None else log, end, idle, totals,
        )  # fmt: skip
    return GatsimTime(
        cycles=int(totals[_CYCLES]),
        issued=int(totals[_ISSUED]),
        idle=tuple(idle.tolist()),
        hits=int(totals[_HITS]),
        misses=int(totals[_MISSES]),
        block_end=end,
    )


def check_machine(machine: GatsimMachine) -> None:
    """PptError for a machine that cannot run anything."""
    if machine.policy not in POLICIES:
        raise PptError(f"GATSim knows no warp scheduler '{machine.policy}'", hint=f"it knows {', '.join(POLICIES)}")
    if min(machine.schedulers, machine.resident, machine.memory_units, machine.sfus) < 1:
        raise PptError("GATSim needs at least one scheduler, block slot, load/store unit and SFU")


@merged
def _look_up(tags: np.ndarray, line: int, allocate: bool, evict: bool) -> bool:
    """Is the line there? Then it becomes the most recent, or leaves (`evict`); otherwise it may be brought in."""
    if tags.shape[0] == 0:
        return False
    row = line % tags.shape[0]
    ways = tags.shape[1]
    at = 0
    while at < ways and tags[row, at] != line:
        at += 1
    hit = at < ways
    if hit and evict:
        while at + 1 < ways:
            tags[row, at] = tags[row, at + 1]
            at += 1
        tags[row, ways - 1] = -1
    elif hit or allocate:
        if not hit:
            at = ways - 1
        while at > 0:
            tags[row, at] = tags[row, at - 1]
            at -= 1
        tags[row, 0] = line
    return hit


@merged
def _access(
    access: int, access_start: np.ndarray, access_fixed: np.ndarray, access_store: np.ndarray,
    access_write: np.ndarray, access_line: np.ndarray, hit: int, miss: int, l1: np.ndarray, constant: np.ndarray,
    totals: np.ndarray,
) -> int:  # fmt: skip
    """Latency of a memory instruction: that of its lines, one after another."""
    store, write = access_store[access], access_write[access]
    latency = access_fixed[access]
    for k in range(access_start[access], access_start[access + 1]):
        line = access_line[k]
        if line < 0:
            found = line == LINE_HITS
        elif store == PERFECT:
            found = True
        elif store == UNCACHED:
            found = False
        elif store == CONSTANT:
            found = _look_up(constant, line, True, False)
        else:
            found = _look_up(l1, line, not write, write and store == L1_GLOBAL)
        if found:
            totals[_HITS] += 1
            latency += hit
        else:
            totals[_MISSES] += 1
            latency += miss
    return latency if latency > 0 else 1


@merged
def _free_unit(units: np.ndarray, now: int) -> int:
    at = 0
    while at < len(units) and units[at] > now:
        at += 1
    return at


@merged
def _take_block(
    slot: int, block: int, size: int, now: int, warp: np.ndarray, path_start: np.ndarray, warp_path: np.ndarray,
    warp_access: np.ndarray, block_warp: np.ndarray,
) -> None:  # fmt: skip
    first = block_warp[block]
    count = block_warp[block + 1] - first
    for j in range(size):
        p = slot * size + j
        warp[p, _READY] = now
        warp[p, _SEEN] = now - 1
        warp[p, _WAITS] = 0
        warp[p, _KIND] = REGULAR
        warp[p, _ORDER] = first + j
        warp[p, _ENTRY] = 0
        warp[p, _END] = 0
        if j < count:
            path = warp_path[first + j]
            warp[p, _ENTRY] = path_start[path]
            warp[p, _END] = path_start[path + 1]
            warp[p, _ACCESS_AT] = warp_access[first + j]


@merged
def _finished(slot: int, size: int, warp: np.ndarray, now: int) -> bool:
    for p in range(slot * size, slot * size + size):
        if warp[p, _ENTRY] < warp[p, _END] or warp[p, _READY] > now:
            return False
    return True


@merged
def _open_barrier(slot: int, size: int, warp: np.ndarray) -> None:
    """The warps of a block go on when all that have not finished wait."""
    for p in range(slot * size, slot * size + size):
        if warp[p, _ENTRY] < warp[p, _END] and warp[p, _WAITS] == 0:
            return
    for p in range(slot * size, slot * size + size):
        warp[p, _WAITS] = 0


@merged
def _choose(
    warp: np.ndarray, entry_kind: np.ndarray, now: int, memory_free: bool, sfu_free: bool, policy: int, last: int,
    next_warp: int,
) -> int:  # fmt: skip
    """ScheduleWarp: the warp that issues; -1: no warp is ready.

    last: the warp that this scheduler issued from last; next_warp: where round robin goes on.
    """
    count = len(warp)
    best = -1
    for k in range(count):
        p = k
        if policy == _RR:
            p = next_warp + k
            if p >= count:
                p -= count
        if warp[p, _READY] > now or warp[p, _ENTRY] >= warp[p, _END] or warp[p, _WAITS]:
            continue
        kind = entry_kind[warp[p, _ENTRY]]
        if (kind >= MEMORY and not memory_free) or (kind == SFU and not sfu_free):
            continue
        if policy == _RR or warp[p, _ORDER] == last:
            return p
        field = _SEEN if policy == _GTO else _ORDER
        if best < 0 or warp[p, field] < warp[best, field]:
            best = p
    return best


@merged
def _next_event(
    warp: np.ndarray, entry_kind: np.ndarray, now: int, memory: np.ndarray, sfu: np.ndarray, idle: np.ndarray
) -> int:
    """When no warp is ready: the next cycle in which one may be, or has finished. Charges the wait. _NEVER: none."""
    soonest, kind = _NEVER, REGULAR
    for p in range(len(warp)):
        at = warp[p, _READY]
        if at > now:
            if at < soonest:
                soonest = at
                kind = warp[p, _KIND]
        elif warp[p, _ENTRY] < warp[p, _END] and not warp[p, _WAITS]:
            wanted = entry_kind[warp[p, _ENTRY]]
            if wanted == SFU:
                for u in range(len(sfu)):
                    if now < sfu[u] < soonest:
                        soonest = sfu[u]
                        kind = SFU
            else:
                for u in range(len(memory)):
                    if now < memory[u] < soonest:
                        soonest = memory[u]
                        kind = MEMORY
    if soonest < _NEVER:
        idle[kind] += soonest - now
    return soonest


@entry
def _run(
    path_start: np.ndarray, entry_kind: np.ndarray, entry_delay: np.ndarray, warp_path: np.ndarray,
    warp_access: np.ndarray, block_warp: np.ndarray, access_start: np.ndarray, access_fixed: np.ndarray,
    access_store: np.ndarray, access_write: np.ndarray, access_line: np.ndarray,
    warp: np.ndarray, slot_block: np.ndarray, size: int, turn: np.ndarray, policy: int, memory: np.ndarray,
    sfu: np.ndarray, hit: int, miss: int, l1: np.ndarray, constant: np.ndarray, log: np.ndarray, end: np.ndarray,
    idle: np.ndarray, totals: np.ndarray,
) -> None:  # fmt: skip
    """warp [slots x size, fields]; slot_block [slots]: the block in each, -1 none; turn [schedulers, 2]: the warp that
    each issued from last, -1 none, and in the first row where round robin goes on."""
    blocks = len(end)
    now, next_block, issued = 0, 0, 0
    for j in range(len(turn)):
        turn[j, 0] = -1
    while True:
        left = 0
        for slot in range(len(slot_block)):
            while True:
                if slot_block[slot] < 0:
                    if next_block == blocks:
                        break
                    _take_block(slot, next_block, size, now, warp, path_start, warp_path, warp_access, block_warp)
                    slot_block[slot] = next_block
                    next_block += 1
                if not _finished(slot, size, warp, now):
                    left += 1
                    break
                end[slot_block[slot]] = now
                slot_block[slot] = -1
        if left == 0:
            break
        before = issued
        for j in range(len(turn)):
            memory_unit, sfu_unit = _free_unit(memory, now), _free_unit(sfu, now)
            p = _choose(
                warp, entry_kind, now, memory_unit < len(memory), sfu_unit < len(sfu), policy, turn[j, 0], turn[0, 1]
            )
            if p < 0:
                break
            at = warp[p, _ENTRY]
            kind = entry_kind[at]
            delay = entry_delay[at]
            if kind == ACCESS:
                delay = _access(
                    warp[p, _ACCESS_AT], access_start, access_fixed, access_store, access_write, access_line, hit, miss,
                    l1, constant, totals,
                )  # fmt: skip
                warp[p, _ACCESS_AT] += 1
            if kind >= MEMORY:
                memory[memory_unit] = now + delay
            elif kind == SFU:
                sfu[sfu_unit] = now + delay
            if issued < len(log):
                log[issued, 0] = now
                log[issued, 1] = warp[p, _ORDER]
                log[issued, 2] = at - path_start[warp_path[warp[p, _ORDER]]]
            issued += 1
            turn[j, 0] = warp[p, _ORDER]
            turn[0, 1] = p + 1 if p + 1 < len(warp) else 0
            warp[p, _READY] = now + delay
            warp[p, _SEEN] = now
            warp[p, _KIND] = kind
            warp[p, _ENTRY] = at + 1
            if kind == BARRIER:
                warp[p, _WAITS] = 1
            if kind == BARRIER or at + 1 == warp[p, _END]:
                _open_barrier(p // size, size, warp)
        now = now + 1 if issued > before else _next_event(warp, entry_kind, now, memory, sfu, idle)
    totals[_CYCLES] = now
    totals[_ISSUED] = issued
