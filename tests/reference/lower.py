"""Plain, slow, obviously right versions of the compiled passes of the lowering; tests hold them equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ppt_gpu.sm.accesses.banks import BankRule
from ppt_gpu.sm.accesses.scoreboard import (
    GROUP_COMMIT,
    GROUP_COPY,
    GROUP_EXPECT,
    GROUP_NONE,
    GROUP_USE,
    GROUP_WAIT,
    GROUP_WAIT_ALL,
    GROUP_WAIT_OLDEST,
    Schedule,
    StaticCode,
)
from ppt_gpu.workload.box import Box

Lanes = Sequence[tuple[int, int]]  # (lane, address) of the active lanes


def reference_transactions(
    rule: str, lanes: Lanes, size: int, line: int, sector: int, whole: bool, word: int = 0
) -> list[tuple[int, int]]:
    """As `coalesce.transactions`, for absolute addresses: (line number, sector mask)."""
    if rule == "segment":
        segment, every = {1: 32, 2: 64}.get(word or size, line), (1 << line // sector) - 1
        found = []
        for number, mask in _cover([(a, size) for _, a in lanes], line, sector):
            for part in _parts(every, max(1, min(segment, line) // sector)):
                found += [(number, every if whole else mask & part)] if mask & part else []
        return found
    if rule in ("line", "sector"):
        group = 32 if rule == "sector" or size <= 4 else 128 // size
        found = []
        for first in range(0, 32, group):
            members = [a for lane, a in lanes if first <= lane < first + group]
            found += _cover([(a, size) for a in members], line, sector)
        return [(number, (1 << line // sector) - 1) for number, _ in found] if whole and rule == "line" else found
    found = []
    for first in (0, 16):
        half = [(lane - first, a) for lane, a in lanes if first <= lane < first + 16]
        if half:
            areas = _areas_1_0(half, size) if rule == "half_warp_1.0" else _areas_1_2(half, size)
            for area in areas:
                found += _cover([area], line, sector)
    return found


def _parts(every: int, width: int) -> list[int]:
    """The bits of `every`, so many at a time."""
    return [every & (1 << width) - 1 << first for first in range(0, every.bit_length(), width)]


def reference_apart(moved: Sequence[tuple[int, int]], lanes: Lanes, line: int, sector: int) -> list[tuple[int, int]]:
    """The transactions of an atomic with `memory.atomics_apart`, where it would otherwise make those `moved`."""
    same = Counter(address for _, address in lanes)
    found = []
    for number in dict.fromkeys(number for number, _ in moved):
        for bit in range(line // sector):
            here = [count for address, count in same.items() if address // sector == number * (line // sector) + bit]
            found += [(number, 1 << bit)] * max(here, default=0)
    return found


def reference_box(box: Box, line: int, sector: int) -> list[tuple[int, int]]:
    """(line number, sector mask) of a box, at its address; rows one after another in one line are one transaction."""
    starts = [box.start]
    for count, distance in box.axes:
        starts = [start + k * distance for k in range(count) for start in starts]
    found: list[tuple[int, int]] = []
    for number, mask in (each for start in starts for each in _cover([(start, box.row)], line, sector)):
        before = found.pop() if found and found[-1][0] == number else (number, 0)
        found.append((number, before[1] | mask))
    return found


def _cover(areas: list[tuple[int, int]], line: int, sector: int) -> list[tuple[int, int]]:
    masks: dict[int, int] = {}
    for start, size in areas:
        for byte in range(start, start + size):
            masks[byte // line] = masks.get(byte // line, 0) | 1 << (byte % line) // sector
    return list(masks.items())


def _areas_1_0(half: Lanes, size: int) -> list[tuple[int, int]]:
    segment = {4: 64, 8: 128, 16: 128}.get(size, 0)
    start = half[0][1] - half[0][0] * size
    if segment and start % segment == 0 and all(a == start + lane * size for lane, a in half):
        return [(s, segment) for s in sorted({a // segment * segment for _, a in half})]
    return [(a, size) for _, a in half]


def _areas_1_2(half: Lanes, size: int) -> list[tuple[int, int]]:
    segment = {1: 32, 2: 64}.get(size, 128)
    areas, left = [], list(half)
    while left:
        start = left[0][1] // segment * segment
        served = [a for _, a in left if start <= a < start + segment]
        left = [(lane, a) for lane, a in left if not start <= a < start + segment]
        bytes_used = [b for a in served for b in range(a, a + size)]
        part, length = start, segment
        while length > 32:
            if max(bytes_used) < part + length // 2:
                length //= 2
            elif min(bytes_used) >= part + length // 2:
                length //= 2
                part += length
            else:
                break
        areas.append((part, length))
    return areas


def reference_look_ups(lines: set[int], tag_sets: int) -> int:
    """The most `lines`, by number, that one of the sets of the tags has; 0 without sets."""
    if tag_sets == 0:
        return 0
    found: Counter[int] = Counter()
    for line in lines:
        at, left = 0, line
        while left:
            left, part = divmod(left, tag_sets)
            at ^= part
        found[at] += 1
    return max(found.values(), default=0)


def reference_bank_cycles(moved: list[tuple[int, int]], per_line: int, banks: int) -> int:
    """Cycles in which `banks` look up the sectors of transactions (line, mask), the highest first, in order."""
    sectors = sorted({line * per_line + bit for line, mask in moved for bit in range(per_line) if mask >> bit & 1})
    cycles: list[set[int]] = [set()]
    for sector in reversed(sectors):
        if sector % banks in cycles[-1]:
            cycles.append(set())
        cycles[-1].add(sector % banks)
    return len(cycles)


def reference_passes(rule: BankRule, lanes: Lanes, size: int, atomic: bool) -> int:
    """As `banks.bank_passes`, for absolute addresses."""
    atomic = atomic and not rule.shares_atomics
    size = min(size, rule.width) if rule.first_word else size
    if rule.half_warp:
        words = range(0, max(size, rule.width), rule.width)
        halves = [[a for lane, a in lanes if first <= lane < first + 16] for first in (0, 16)]
        return sum(_half_warp_passes(rule, [a + w for a in half], atomic) for w in words for half in halves)
    per_pass = min(32, 32 * (rule.row // rule.banks) // size)
    at = dict(lanes)
    if rule.paired and not atomic and any(all(at.get(n ^ d, a) == a for n, a in lanes) for d in (1, 2)):
        per_pass = min(32, 2 * per_pass)
    total = 0
    for first in range(0, 32, per_pass):
        load: Counter[int] = Counter()
        seen = set()
        for lane, a in lanes:
            if first <= lane < first + per_pass:
                for word in sorted({byte // rule.width for byte in range(a, a + size)}):
                    bank, row = word % rule.banks, word * rule.width // rule.row
                    load[bank] += atomic or (bank, row) not in seen
                    seen.add((bank, row))
        most = max(load.values(), default=0)
        total += most * rule.cycles if rule.each else max(most, rule.cycles) if most else 0
    return total


def _half_warp_passes(rule: BankRule, addresses: list[int], atomic: bool) -> int:
    words = [a // rule.width for a in addresses]
    if atomic:
        return max(Counter(word % rule.banks for word in words).values(), default=0)
    count = 0
    while words:
        broadcast, busy, left = words[0], {words[0] % rule.banks}, []
        for word in words:
            if word != broadcast and word % rule.banks in busy:
                left.append(word)
            elif word != broadcast:
                busy.add(word % rule.banks)
        words, count = left, count + 1
    return count


def dependencies(code: StaticCode, path: Sequence[int]) -> list[tuple[int, set[int]]]:
    """(operation, producers that it waits for) of every entry of one path: all of them, not only binding ones."""
    entries: list[tuple[int, set[int]]] = []
    values: dict[int, set[int]] = {}
    groups: list[set[int]] = [set()]  # of asynchronous copies, the last one still open
    copies, waited = 0, 0  # in the open group; groups for which somebody waited
    kinds = [] if code.groups is None else [int(code.groups[pc]) for pc in path]
    uses = GROUP_COPY in kinds and GROUP_USE in kinds[kinds.index(GROUP_COPY) :]
    for pc in path:
        sources: set[int] = set()
        for r in code.reads[code.read_start[pc] : code.read_start[pc + 1]]:
            sources |= values.get(int(r), set())
        for w in code.writes[code.write_start[pc] : code.write_start[pc + 1]] if code.checks_writes else ():
            sources |= values.get(int(w), set())
        chain = range(int(code.chain_start[pc]), int(code.chain_start[pc + 1]))
        kind = GROUP_NONE if code.groups is None else int(code.groups[pc])
        closes = kind == GROUP_COMMIT or (kind == GROUP_EXPECT and copies)
        if kind == GROUP_WAIT_OLDEST and uses and chain and (waited < len(groups) - 1 or copies):
            sources |= groups[waited]
            waited += 1
            closes = waited == len(groups)
        elif kind == GROUP_WAIT_ALL and chain:
            sources |= set().union(*groups)
            closes, waited = True, len(groups)
        elif kind >= GROUP_WAIT and chain:
            covered = max(0, len(groups) - 1 - (kind - GROUP_WAIT))
            sources |= set().union(*groups[:covered])
            waited = max(waited, covered)
        if closes:
            groups.append(set())
            copies = 0
        value: set[int] = set() if chain else sources
        for j, op in enumerate(chain):
            waits = set(sources) if j == 0 else set()
            last = len(entries) - 1
            if j > 0 and code.op_value[entries[last][0]]:
                waits.add(last)
            if last >= 0 and code.op_fence[entries[last][0]]:
                waits.add(last)
            entries.append((op, waits))
            if code.op_value[op]:
                value = {len(entries) - 1}
        if kind == GROUP_COPY:
            groups[-1] |= value
            copies += 1
        for w in code.writes[code.write_start[pc] : code.write_start[pc + 1]]:
            values[int(w)] = value | (values.get(int(w), set()) if code.guarded[pc] else set())
    return entries


def reference_schedule(
    code: StaticCode, path_start: Sequence[int], path_pc: Sequence[int], width: int, slots: int
) -> Schedule:
    """As `scoreboard.schedule`."""
    starts, ops, waits, slot_of = [0], [], [], []
    for begin, end in pairwise(path_start):
        entries = dependencies(code, list(path_pc[begin:end]))
        wait, slot = _slots(code, entries, width, slots)
        ops += [op for op, _ in entries]
        waits += wait
        slot_of += slot
        starts.append(len(ops))
    return Schedule(
        np.array(starts, np.int64),
        np.array(ops, np.int32),
        np.array([sum(1 << s for s in wait) for wait in waits], np.uint64),
        np.array(slot_of, np.int8),
    )


def _slots(
    code: StaticCode, entries: list[tuple[int, set[int]]], width: int, slots: int
) -> tuple[list[set[int]], list[int]]:
    consumer: dict[int, int] = {}
    for i, (_, producers) in enumerate(entries):
        for p in producers:
            consumer.setdefault(p, i)
    wait: list[set[int]] = [set() for _ in entries]
    slot = [-1] * len(entries)
    holder: dict[int, int] = {}  # slot -> producer
    for i, (op, _) in enumerate(entries):
        for s in [s for s, p in holder.items() if consumer[p] == i]:
            wait[i].add(s)
            del holder[s]
        fixed = int(code.op_fixed[op])
        if i not in consumer or (fixed >= 0 and (consumer[i] - i) // width >= fixed):
            continue
        if len(holder) == slots:
            oldest = min(holder, key=lambda s: holder[s])
            wait[i].add(oldest)
            del holder[oldest]
        slot[i] = min(s for s in range(slots) if s not in holder)
        holder[slot[i]] = i
    return wait, slot
