"""The memory system's state in the compiled loop: one flat array, `mem`, and where everything is in it.

Parameters, server times and counters stand at fixed places, then come the tables. A cache has a record for each way, a
node, chained in each set from the next victim to the newest; the record of a line says at which node it is, so nothing
is searched. Nodes, sets and lines are named by their place in `mem`; place 0 is none. (One array, because every further
one makes each call dearer, and compiling too.) What happens in it: loop.lsu, loop.l2_dram_share, loop.tags.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.sm.program import machine as cm
from ppt_gpu.sm.program.fill import FILL_FROM, fill_accesses, fill_lines, fill_transactions
from ppt_gpu.sm.program.machine import (
    FRACTION,
    Machine,
    even_sets,
    instruction_lines,
    is_local,
    lines_behind,
    lines_in_l2,
    set_index,
    uses_l1,
)
from ppt_gpu.sm.program.program import CODE_COLD, CODE_IN_SM, Program, posted_by
from ppt_gpu.sm.program.slot_rotation import turned_together

# parameters
_PARAMETERS = (
    "tx_cost", "shared_latency", "atomic_cost", "atomic_busy",
    "l1_fifo", "l1_write", "l1_allocate", "l1_latency", "l1_group", "mshrs",
    "merges", "l2_fifo", "l2_back", "l2_allocate", "l2_latency", "l2_cost", "icnt_cost", "dram_cost", "dram_latency",
    "dirty", "perfect", "sector_bytes", "queue", "request_cost", "request_queue", "store_ack", "miss_latency",
    "code_sets", "code_ways", "code_l2", "code_dram", "constant_late", "constant_latency",
    "constant_queued", "constant_miss", "dram_turn", "dram_group", "store_latency", "warp_launch", "turned",
    "l2_write_cost", "l2_near", "l2_far", "dram_work", "dram_loaded", "dram_ahead",
    "constant_sets", "constant_ways", "constant_fill", "constant_behind", "l1_reserves",
)  # fmt: skip
(
    P_TX, P_SHARED, P_ATOMIC, P_ATOMIC_BUSY, P_L1_FIFO, P_L1_WRITE, P_L1_ALLOCATE, P_L1_LATENCY, P_L1_GROUP, P_MSHRS,
    P_MERGES, P_L2_FIFO, P_L2_BACK, P_L2_ALLOCATE, P_L2_LATENCY, P_L2, P_ICNT, P_DRAM, P_DRAM_LATENCY,
    P_DIRTY, P_PERFECT, P_BYTES, P_QUEUE, P_REQUEST, P_REQUEST_QUEUE, P_ACK, P_MISS,
    P_CODE_SETS, P_CODE_WAYS, P_CODE_L2, P_CODE_DRAM, P_CONSTANT_LATE, P_CONSTANT_LATENCY,
    P_CONSTANT_QUEUED, P_CONSTANT_MISS, P_TURN, P_DRAM_GROUP, P_STORE, P_WARP_LAUNCH, P_TURNED,
    P_L2_WRITE, P_L2_NEAR, P_L2_FAR, P_WORK, P_LOADED, P_AHEAD,
    P_CONSTANT_SETS, P_CONSTANT_WAYS, P_CONSTANT_FILL, P_CONSTANT_BEHIND, P_L1_RESERVES,
) = range(len(_PARAMETERS))  # fmt: skip
# servers (time from which each is free), heads of the rings, carried fraction; the last cycle in which the instruction
# cache was filled or a constant issued that is queued; the cycle from which constants are
# there (0: nobody has asked); where the tables begin
(
    LSU, L2_SERVER, INWARD, OUTWARD, DRAM, ATOMIC, REQUESTS, RETURNS, DIRTY_REST, MSHR_HEAD, QUEUE_HEAD, LAST_RELEASE,
    NOW, CODE_FILL, CONSTANTS, MSHRS, QUEUE, CODE, CODE_KNOWN, CODE_LINE, LINES,
    COPIER, CONSTANT_TABLE, CONSTANT_SERVER,
) = range(len(_PARAMETERS), len(_PARAMETERS) + 24)  # fmt: skip
#: way of an operation: it does not look into the L1, it does, the copy engine does it, or it does for local memory
PASSES_L1, LOOKS_INTO_L1, COPIES, IN_LOCAL = range(4)
#: added to the way of an atomic of which nobody wants a result back
POSTED, WAY = 4, 3
WAY_BITS = 3
C = len(_PARAMETERS) + 27  # counters
C_L1, C_L1_HIT, C_L2, C_L2_HIT = C + cm.L1_ACCESSES, C + cm.L1_HITS, C + cm.L2_ACCESSES, C + cm.L2_HITS
C_DRAM_READ, C_DRAM_WRITE = C + cm.DRAM_READ, C + cm.DRAM_WRITE
C_L2_READ, C_L2_WRITE = C + cm.L2_READ, C + cm.L2_WRITE
C_PASSES, C_SHARED = C + cm.SHARED_PASSES, C + cm.SHARED_ACCESSES
#: where the tables of an L1 with pipelines begin (staged_l1_state), 0: it has none
L1_PIPE = C + len(cm.COUNTERS)
TABLES = 92
# a node. HOLDS: place of its line; VALID: mask of its sectors, and of an L2 node, from bit SECTORS on, of those in the
# part next to the SM; MERGED: requests that the pending fill serves; FRESH, of an L2 node: stands in a way that was
# never used before
HOLDS, PREV, NEXT, VALID, DIRTY, FILL, FILLING, MERGED = range(8)
FRESH = MERGED
NODE_WORDS = 8
# a set
VICTIM, NEWEST = range(2)
SET_WORDS = 2
# a line: its nodes, its sets; with the set of the L2, from bit WARM_AT, the sectors that are warm, from bit COMING_AT
# those of them that are on their way, and in bit KEPT_AT whether others keep the line. Records do not cross the lines
# of the host's caches.
L1_NODE, L2_NODE, L1_SET, L2_SET = range(4)
LINE_WORDS, WARM_AT, COMING_AT, KEPT_AT = 4, 40, 48, 56
# the word of an access: FIRST_MASK, then cycles, then updates; the word of a transaction: sector mask, then the line
FIRST_MASK, CYCLES_AT, CYCLES_MASK, UPDATES_AT = (1 << 36) - 1, 36, (1 << 20) - 1, 56
SECTORS, ALL_SECTORS = 8, 0xFF
# and, where the L1 finds lines by a hash table, from SET_AT the set of the line in it
SET_AT = 44
LINE_MASK = (1 << (SET_AT - SECTORS)) - 1
PART = 1 << 14
_NO_SETS = np.zeros(0, np.int32)
#: places are masked when read, which tells the compiler that they are not negative
PLACE = (1 << 40) - 1


def parameters(program: Program, machine: Machine) -> list[int]:
    """What the first words of the memory's state are, from P_TX on."""
    values = [int(getattr(machine, name)) for name in _PARAMETERS]
    values[P_TURNED] = turned_together(machine, int(np.diff(program.block_warp).max(initial=0)))
    return values


class MemoryArrays:
    """The state of one run."""

    def __init__(self, program: Program, machine: Machine, l2_set: NDArray[np.int32] | None = None) -> None:
        """`l2_set` [L]: the set of the L2 of each line, where it is not that of one SM; then no line is warm."""
        l1, l1_sets = _empty_cache(machine.l1_sets, machine.l1_ways)
        l2, l2_sets = _empty_cache(machine.l2_sets, machine.l2_ways)
        code, known, code_line = code_tables(program, machine)
        sizes = [
            TABLES, machine.mshrs, machine.queue, code.size, known.size, code_line.size, l1.size, l2.size,
            l1_sets.size, l2_sets.size, constant_words(machine),
        ]  # fmt: skip
        places: list[int] = np.cumsum([0, *sizes]).tolist()
        _, mshrs, queue, code_at, known_at, code_line_at, l1_at, l2_at, l1_sets_at, l2_sets_at, *places = places
        constants_at, lines_at = places
        self.mem = np.empty(lines_at + (len(program.line_address) + 1) * LINE_WORDS, np.int64)
        lines_at += -(self.mem.ctypes.data // self.mem.itemsize + lines_at) % LINE_WORDS
        self.mem[:code_at] = 0
        self.mem[constants_at:lines_at] = 0
        self.mem[CONSTANT_TABLE] = constants_at
        self.mem[code_at:l1_at] = np.concatenate((code, known, code_line))
        self.mem[: len(_PARAMETERS)] = parameters(program, machine)
        self.mem[DRAM] = -machine.dram_left
        self.mem[[MSHRS, QUEUE, LINES]] = mshrs, queue, lines_at
        self.mem[[CODE, CODE_KNOWN, CODE_LINE]] = code_at, known_at, code_line_at
        for nodes, sets, place, sets_at in ((l1, l1_sets, l1_at, l1_sets_at), (l2, l2_sets, l2_at, l2_sets_at)):
            links = nodes[:, (PREV, NEXT)]
            nodes[:, (PREV, NEXT)] = np.where(links >= 0, links * NODE_WORDS + place, 0)
            self.mem[place : place + nodes.size] = nodes.ravel()
            self.mem[sets_at : sets_at + sets.size] = sets.ravel() * NODE_WORDS + place
        lines = self.mem[lines_at : lines_at + len(program.line_warm) * LINE_WORDS]
        #: [M+1] first transaction, cycles in the load/store pipe, updates of the same address
        self.access = np.empty(len(program.access_start), np.int64)
        #: [T + 1] line and sector mask; one more, for the look ahead
        self.tx = np.empty(len(program.tx_line) + 1, np.int64)
        if len(program.line_warm) >= FILL_FROM:
            fill_lines(
                lines, program.line_address, program.line_warm, program.line_coming,
                _NO_SETS if l2_set is None else l2_set, program.line_bytes, machine.l1_sets, machine.l1_index,
                l1_sets_at, machine.l2_sets, l2_sets_at, SET_WORDS, WARM_AT, COMING_AT, cm.TURN, cm.TURN_MASK,
            )  # fmt: skip
            fill_accesses(
                self.access, program.access_start, program.access_cycles, program.access_atomic, CYCLES_AT, UPDATES_AT
            )
            fill_transactions(self.tx, program.tx_line, program.tx_sectors, SECTORS, _NO_SETS, 0)
        else:
            _write_lines(lines.reshape(-1, LINE_WORDS), program, machine, l1_sets_at, l2_sets_at, l2_set)
            _write_accesses(self.access, program)
            _write_transactions(self.tx, program)
        if l2_set is None:
            lines.reshape(-1, LINE_WORDS)[np.flatnonzero(program.line_kept), L2_SET] |= np.int64(1) << KEPT_AT

    def counters(self) -> NDArray[np.int64]:
        return self.mem[C : C + len(cm.COUNTERS)].copy()

    def idle(self) -> int:
        """The cycle from which no server is busy."""
        servers = [LSU, COPIER, L2_SERVER, INWARD, OUTWARD, DRAM, ATOMIC, REQUESTS, RETURNS]
        return -(-int(self.mem[servers].max()) >> FRACTION)


def _write_lines(
    lines: NDArray[np.int64], program: Program, machine: Machine, l1_sets_at: int, l2_sets_at: int,
    l2_set: NDArray[np.int32] | None,
) -> None:  # fmt: skip
    for first in range(0, len(lines), PART):
        part = slice(first, min(first + PART, len(lines)))
        here, l1_set = lines[part], set_index(program, machine.l1_sets, machine.l1_index, lines=part)
        in_l2 = even_sets(program, machine.l2_sets, lines=part) if l2_set is None else l2_set[part]
        here[:, L1_NODE : L2_NODE + 1] = 0
        here[:, L1_SET] = l1_set * np.int64(SET_WORDS) + l1_sets_at
        here[:, L2_SET] = in_l2 * np.int64(SET_WORDS) + l2_sets_at
        if l2_set is None:
            here[:, L2_SET] |= program.line_warm[part].astype(np.int64) << WARM_AT
            if len(program.line_coming):
                coming = program.line_coming[part] & program.line_warm[part]
                here[:, L2_SET] |= coming.astype(np.int64) << COMING_AT


def _write_accesses(access: NDArray[np.int64], program: Program) -> None:
    access[:] = program.access_start
    for first in range(0, len(program.access_cycles), PART):
        part = slice(first, min(first + PART, len(program.access_cycles)))
        access[part] |= program.access_cycles[part].astype(np.int64) << CYCLES_AT
        updates = program.access_atomic[part].astype(np.int64) if len(program.access_atomic) else np.int64(1)
        access[part] |= updates << UPDATES_AT


def _write_transactions(tx: NDArray[np.int64], program: Program) -> None:
    tx[-1] = 0
    for first in range(0, len(program.tx_line), PART):
        part = slice(first, min(first + PART, len(program.tx_line)))
        np.left_shift(program.tx_line[part], SECTORS, out=tx[part], dtype=np.int64)
        tx[part] |= program.tx_sectors[part]


def l1_way(program: Program, machine: Machine) -> NDArray[np.int64]:
    """[O] the way of each operation that the copy engine does not do."""
    looks = uses_l1(program, machine)
    return np.where(looks & is_local(program), IN_LOCAL, looks).astype(np.int64) + POSTED * posted_by(program)


def code_tables(program: Program, machine: Machine) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The instruction cache: (the sets, each from the least recent way: line + 1, cycle at which it is there), whether
    each line has been fetched, and of each operation its line and that of the instruction behind it."""
    of_operation, behind = instruction_lines(program, machine), lines_behind(program, machine)
    lines = int(max(of_operation.max(initial=0), behind.max(initial=0))) + 1
    sets, ways = max(machine.code_sets, 1), max(machine.code_ways, 1)
    held = np.zeros((sets, ways, 2), np.int64)
    used = np.unique(of_operation)
    if machine.code_at == CODE_IN_SM and machine.code_sets:
        for number in range(sets):
            last = used[used % sets == number][-ways:]
            held[number, ways - len(last) :, 0] = last + 1
    known = np.full(lines, machine.code_at != CODE_COLD, np.int64)
    known[list(lines_in_l2(program, machine))] = 1
    return held.ravel(), known, np.stack([of_operation, behind], axis=1).ravel()


def constant_words(machine: Machine) -> int:
    """Of the cache of constants: the sets, each from the least recent way: line + 1, cycle at which it is there."""
    return machine.constant_sets * machine.constant_ways * 2


def _empty_cache(sets: int, ways: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(nodes [ways of all sets, NODE_WORDS], sets [sets, SET_WORDS]), links as numbers of nodes, -1: none."""
    ways, count = max(ways, 1), max(1, sets * ways)
    nodes = np.zeros((count, NODE_WORDS), np.int64)
    numbers = np.arange(count)
    nodes[:, PREV] = np.where(numbers % ways == 0, -1, numbers - 1)
    nodes[:, NEXT] = np.where((numbers + 1) % ways == 0, -1, numbers + 1)
    first = np.arange(max(1, sets)) * ways
    return nodes, np.stack([first, first + ways - 1], axis=1)
