"""Which entries of a warp's stream wait for which: register dependencies in reusable scoreboard slots.

Issue is in order, so of all consumers of a producer only the first can be delayed by it: each producer needs one
slot, from its issue to its first consumer. What is modelled, and what is not:

* RAW only. A later write of the same register waits for nothing (as with renaming); WAR cannot occur in order. With
  `checks_writes` it waits too.
* A guarded instruction may leave its destination as it was: its consumer waits for the earlier writer too.
* An instruction becomes a chain of machine operations: the first waits for the sources, each for the one before,
  the last that yields a value announces the destinations. Without operations it is free: its destinations are
  complete when its sources are.
* Operations that yield no value (branch, barrier, store) have no slot. A fence delays the next entry.
* The streams of a warp's divergent paths follow one another; a value that an earlier path wrote and a later path
  wrote too counts as the later one's.
* A producer of fixed latency whose first consumer stands so far behind that the entries between take at least
  that long to issue gets no slot (exact: at most `width` entries of a warp issue in a cycle). Where
  instructions wait between issue and start, as with collector units, no latency is fixed.
* An asynchronous copy yields no register: the wait for its group (cp.async.wait_group, wait_all) waits for it.
* So does an asynchronous product (wgmma.mma_async) for who waits for its group (wgmma.wait_group), beside those who
  read its sums.
* Where it is not known which phase of which mbarrier a copy is for (`lowering.events`), bulk loads form groups too: one
  ends where bytes are expected again, or at a wait. A warp's waits on mbarriers wait for its own groups, the oldest
  first; with none left they wait for nothing. What other warps copy delays nobody. The warp's exit waits for all of
  them. A warp that does nothing with what it copied (it reads no shared memory behind its first copy, and meets no
  barrier of the block) copies for others: what it waits for is room, not its own copies, and such waits pass.
* When all slots are taken, the producer waits for the one issued longest ago and takes over its slot (conservative).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry, merged

SLOTS = 64
_NEVER = 1 << 62
#: what an instruction does with groups of asynchronous copies; GROUP_WAIT + n: wait for all but the n latest groups
#: GROUP_EXPECT: an mbarrier expects bytes; GROUP_WAIT_OLDEST: wait for the oldest group that nobody waited for
GROUP_NONE, GROUP_COPY, GROUP_COMMIT, GROUP_WAIT_ALL, GROUP_WAIT = range(5)
#: GROUP_USE: may be why the warp waits for its copies
GROUP_EXPECT, GROUP_WAIT_OLDEST, GROUP_USE = -1, -2, -3
_NONE, _ONE, _ALL = np.uint64(0), np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)


@dataclass(frozen=True)
class StaticCode:
    """I static instructions of R registers, O machine operations; CSR arrays."""

    registers: int
    read_start: NDArray[np.int32]  # [I+1]
    reads: NDArray[np.int32]  # guard included
    write_start: NDArray[np.int32]  # [I+1]
    writes: NDArray[np.int32]
    guarded: NDArray[np.bool_]  # [I]
    chain_start: NDArray[np.int32]  # [I+1] operations of each instruction, in order
    op_fixed: NDArray[np.int32]  # [O] cycles from issue to completion; -1: varies
    op_value: NDArray[np.bool_]  # [O] yields a value that somebody may wait for
    op_fence: NDArray[np.bool_]  # [O] the next entry waits for it
    groups: NDArray[np.int32] | None = None  # [I] GROUP_*; None: no instruction has to do with groups
    # [I] the same of asynchronous products (wgmma), which have groups of their own
    products: NDArray[np.int32] | None = None
    checks_writes: bool = False  # who writes a register waits for who wrote it before


@dataclass(frozen=True)
class Schedule:
    """E entries over P paths."""

    path_start: NDArray[np.int64]  # [P+1]
    entry_op: NDArray[np.int32]  # [E]
    entry_wait: NDArray[np.uint64]  # [E] bit s: wait for slot s
    entry_slot: NDArray[np.int8]  # [E] -1: none


def schedule(
    code: StaticCode, path_start: NDArray[np.int64], path_pc: NDArray[np.int32], width: int = 1, slots: int = SLOTS
) -> Schedule:
    """Machine operations of every path with their waits. `width`: entries a warp may issue in a cycle."""
    length = np.diff(code.chain_start)
    first = np.zeros(len(path_pc) + 1, np.int64)
    np.cumsum(length[path_pc], out=first[1:])
    entries = int(first[-1])
    op, wait = np.empty(entries, np.int32), np.zeros(entries, np.uint64)
    slot, consumer = np.full(entries, -1, np.int8), np.empty(entries, np.int64)
    most = int(np.diff(path_start).max(initial=0))
    none = np.zeros(len(length), np.int32)
    kinds = [none if given is None else given for given in (code.groups, code.products)]
    rooms = [most if given is not None else 0 for given in (code.groups, code.products)]
    groups, products = (
        _Groups(kind, np.empty(room, np.int64), np.empty(room + 1, np.int64))
        for kind, room in zip(kinds, rooms, strict=True)
    )
    tables = _Tables(
        code.read_start, code.reads, code.write_start, code.writes, code.guarded, code.chain_start, code.op_fixed,
        code.op_value, code.op_fence,
    )  # fmt: skip
    _schedule(
        path_start, path_pc, first, groups, products, tables, code.checks_writes, width,
        np.empty(code.registers, np.int64), np.empty(slots, np.int64), op, consumer, wait, slot,
    )  # fmt: skip
    return Schedule(first[path_start], op, wait, slot)


class _Groups(NamedTuple):
    """Copies or products of a path in groups: what each instruction is to them, and room for `_group_waits`."""

    kind: np.ndarray  # [I] GROUP_*
    of: np.ndarray  # [longest path] the group of each copy
    waits: np.ndarray  # the first entry that waits for each group


class _Tables(NamedTuple):
    """What `Code` says of instructions and operations."""

    read_start: np.ndarray
    reads: np.ndarray
    write_start: np.ndarray
    writes: np.ndarray
    guarded: np.ndarray
    chain_start: np.ndarray
    op_fixed: np.ndarray
    op_value: np.ndarray
    op_fence: np.ndarray


@merged
def _uses_copies(begin: int, end: int, path_pc: np.ndarray, groups: np.ndarray) -> bool:
    """Whether a copy of this path has a use behind it."""
    copied = False
    for k in range(begin, end):
        kind = groups[path_pc[k]]
        if copied and kind == GROUP_USE:
            return True
        copied = copied or kind == GROUP_COPY
    return False


@merged
def _group_waits(begin: int, end: int, path_pc: np.ndarray, first: np.ndarray, of: _Groups) -> None:
    """Forwards over one path: the group of each copy, and the first entry that waits for each group (_NEVER: none)."""
    groups, group_of, waits = of
    uses = _uses_copies(begin, end, path_pc, groups)
    group = 0
    waited = 0
    copies = 0  # in the last group
    waits[0] = _NEVER
    for k in range(begin, end):
        kind = groups[path_pc[k]]
        if kind == GROUP_COPY:
            group_of[k - begin] = group
            copies += 1
        elif kind == GROUP_COMMIT or (kind == GROUP_EXPECT and copies > 0):
            group += 1
            waits[group] = _NEVER
            copies = 0
        elif kind == GROUP_WAIT_OLDEST and uses and first[k + 1] > first[k] and (waited < group or copies > 0):
            if waited == group:
                group += 1
                waits[group] = _NEVER
                copies = 0
            waits[waited] = first[k]
            waited += 1
        elif kind >= GROUP_WAIT_ALL and first[k + 1] > first[k]:
            covered = group - (kind - GROUP_WAIT)
            if kind == GROUP_WAIT_ALL:  # copies that no group has yet, too: those after it are of the next
                covered = group + 1
                group += 1
                waits[group] = _NEVER
                copies = 0
            while waited < covered:
                waits[waited] = first[k]
                waited += 1


@merged
def _consumers(
    begin: int, end: int, path_pc: np.ndarray, first: np.ndarray, tables: _Tables, reader: np.ndarray,
    entry_op: np.ndarray, consumer: np.ndarray, groups: _Groups, products: _Groups, checks_writes: bool,
) -> None:  # fmt: skip
    """Backwards over one path: each entry's operation and its first consumer (_NEVER: none).

    `reader[r]` is the next entry that needs register r, as seen from the place reached.
    """
    read_start, reads, write_start, writes, guarded, chain_start, _, op_value, op_fence = tables
    for r in range(len(reader)):
        reader[r] = _NEVER
    for k in range(end - 1, begin - 1, -1):
        pc = path_pc[k]
        needed = _NEVER
        for i in range(write_start[pc], write_start[pc + 1]):
            if reader[writes[i]] < needed:
                needed = reader[writes[i]]
            if not guarded[pc]:
                reader[writes[i]] = _NEVER
        if groups.kind[pc] == GROUP_COPY and groups.waits[groups.of[k - begin]] < needed:
            needed = groups.waits[groups.of[k - begin]]
        if products.kind[pc] == GROUP_COPY and products.waits[products.of[k - begin]] < needed:
            needed = products.waits[products.of[k - begin]]
        entry, length = first[k], first[k + 1] - first[k]
        last_value = -1
        for j in range(length):
            op = chain_start[pc] + j
            entry_op[entry + j] = op
            consumer[entry + j] = _NEVER
            if op_value[op]:
                last_value = j
                if j + 1 < length:
                    consumer[entry + j] = entry + j + 1
            if op_fence[op] and entry + j + 1 < first[end]:
                consumer[entry + j] = entry + j + 1
        if last_value >= 0 and needed < consumer[entry + last_value]:
            consumer[entry + last_value] = needed
        if length > 0:
            needed = entry
        for i in range(read_start[pc], read_start[pc + 1]):
            if needed < reader[reads[i]]:
                reader[reads[i]] = needed
        if checks_writes:
            for i in range(write_start[pc], write_start[pc + 1]):
                if needed < reader[writes[i]]:
                    reader[writes[i]] = needed


@merged
def _allocate(
    begin: int, end: int, entry_op: np.ndarray, consumer: np.ndarray, op_fixed: np.ndarray, width: int,
    wait: np.ndarray, slot: np.ndarray, owner: np.ndarray,
) -> None:  # fmt: skip
    """Forwards over one path: slots by linear scan, the lowest free one first. `owner[s]`: producer in slot s."""
    slots = len(owner)
    free = _ALL >> np.uint64(64 - slots)
    for i in range(begin, end):
        free |= wait[i]
        target = consumer[i]
        latency = op_fixed[entry_op[i]]
        if target == _NEVER or (latency >= 0 and target - i >= latency * width):
            continue
        if free == _NONE:
            oldest = 0
            for s in range(1, slots):
                if owner[s] < owner[oldest]:
                    oldest = s
            free = _ONE << np.uint64(oldest)
            wait[consumer[owner[oldest]]] &= ~free
            wait[i] |= free
        at = 0
        while not (free >> np.uint64(at)) & _ONE:
            at += 1
        bit = _ONE << np.uint64(at)
        free &= ~bit
        owner[at] = i
        slot[i] = at
        wait[target] |= bit


@entry
def _schedule(
    path_start: np.ndarray, path_pc: np.ndarray, first: np.ndarray, groups: _Groups, products: _Groups,
    tables: _Tables, checks_writes: bool, width: int, reader: np.ndarray, owner: np.ndarray, entry_op: np.ndarray,
    consumer: np.ndarray, wait: np.ndarray, slot: np.ndarray,
) -> None:  # fmt: skip
    """Fill entry_op, wait, slot of every path. reader [R], owner [slots], consumer [E]: work space."""
    for p in range(len(path_start) - 1):
        begin, end = path_start[p], path_start[p + 1]
        if len(groups.of) > 0:
            _group_waits(begin, end, path_pc, first, groups)
        if len(products.of) > 0:
            _group_waits(begin, end, path_pc, first, products)
        _consumers(
            begin, end, path_pc, first, tables, reader, entry_op, consumer, groups, products, checks_writes
        )  # fmt: skip
        _allocate(first[begin], first[end], entry_op, consumer, tables.op_fixed, width, wait, slot, owner)
