"""The tables of a whole chip in the compiled loop: of each SM what is inside it, and one for all below.

An SM's `mem` begins as in `loop.memory`, so that what is the same there and here is one function. Its L1 finds lines by
a small hash table instead of a record for each line of the program, of which every SM would need one. As all SMs are
gone through in every window, and no cache of the host holds that much, records fill and begin lines of those caches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.sm.chip.machine import Chip
from ppt_gpu.sm.chip.staged_l1_state import WAY_PLACES, l1_tables, transactions
from ppt_gpu.sm.loop import memory as c
from ppt_gpu.sm.loop.tags import PLACE_BITS
from ppt_gpu.sm.program.machine import ONE, Machine
from ppt_gpu.sm.program.program import Program, copies_of

FIXED = 128  # words before the tables
ALIGNED = 8  # words of a line of the host's caches
# words of an SM. Operations, requests and dependences stand in tables at OPS, REQS, DEPS. Of operations, a ring by
# number: those before FIRST are served, those from LAST on not yet issued; all before SETTLED have been announced.
# Those of the copy engine are in a ring of their own: the same words, OF_COPIES further on.
# TAKEN: MSHRs taken in this window. QUEUE_BLOCKED: the queue is full and nobody knows until when. FLOW: ring of stores
# that have been answered: time from which the answer counts, and the answer; FLOW_LIMIT: the latest that counts.
# SOON: room for chip.prefetch_hints. LAG: cycles by which all this is behind its SM.
# LINK_OUT: the interconnect outward. (loop.memory.INWARD stays 0: instruction lines do not wait for data.)
# PORT: ring of the times in which flits left for the crossbar, of which so many were SENT, TAKEN, and are KNOWN to be
# taken some time, if nothing more comes
(
    WINDOW_END, HORIZON, OPS, OP_SETTLED, OP_FIRST, OP_LAST, OP_MASK, COPY_OPS, COPY_SETTLED, COPY_FIRST, COPY_LAST,
    COPY_MASK, REQS, N_REQS, DEPS, N_DEPS, TAKEN, QUEUE_BLOCKED, FLOW, FLOW_FIRST, FLOW_LAST, FLOW_MASK, FLOW_LIMIT,
    TAGS, TAG_MASK, L1_SETS, LINK_OUT, SOON, LAG, PORT, PORT_SIZE, PORT_SENT, PORT_TAKEN, PORT_KNOWN,
) = range(c.TABLES, c.TABLES + 34)  # fmt: skip
OF_UNIT, OF_COPIES = 0, COPY_OPS - OPS
#: the number of the first copy; above those of all operations of the load/store unit
FIRST_COPY = 1 << 40
# an operation. ACCESS: cycles in the load/store pipe, then, from UPDATES_AT, updates of the same address, as the words
# of loop.memory have them above the first transaction. PLACE: in the ring of the queue. STATE: UNRESOLVED, it waits for
# answers of this window, and ANNOUNCED, its warp was told that nobody knows when it is done. TELLS: the scoreboard slot
# in which it is announced * 4 + WAIT_*. EVENT: the event for which it counts when its result is there, -1: none
(
    O_KIND, O_CACHED, O_ME, O_TELLS, O_EVENT, O_ISSUED, O_FIRST, O_NEXT, O_LAST, O_ACCESS, O_TIME, O_DONE, O_POSTED,
    O_PLACE, O_STATE, O_START,
) = range(16)  # fmt: skip
OP_SHIFT = 4
UPDATES_AT = c.UPDATES_AT - c.CYCLES_AT
UNRESOLVED, ANNOUNCED = 1, 2
# a request; server times but for ANSWER (of a read: cycle). WAIT: for what is inside the SM. START, UPDATES: of an
# atomic's first transaction, when its operation began and how many updates of one address it makes (0: a further
# one). NODE: of the L1, 0 none; BEFORE: the request for the same node before it in this window, + 1; BASE: its FILL
# then; FILL: with this answer. ACROSS, BACK: the waits in the crossbars. TO, SIZE: the number of the receiver there,
# and how many packets it has, above the steps that each takes (HOLD_BITS).
(
    R_TIME, R_LINE, R_SECTORS, R_KIND, R_WAIT, R_START, R_UPDATES, R_ANSWER, R_NODE, R_BEFORE, R_BASE, R_FILL,
    R_ACROSS, R_BACK, R_TO, R_SIZE,
) = range(16)  # fmt: skip
REQ_SHIFT = 4
#: of a request in a crossbar the next one (its place, 0: none)
R_NEXT = R_FILL
#: of an SM with pipelines in its L1 its own record of the request, where others have what their node was filled with
R_OF = R_BASE
HOLD_BITS = 8
# a dependence: the operation at place OF waits for request number ON: its answer, the fill with it, or, of a store that
# is acknowledged, its acceptance
D_OF, D_ON, D_FOR = range(3)
FOR_ANSWER, FOR_FILL, FOR_ACCEPTANCE = range(3)
DEP_SHIFT = 2
# a line below the SMs: as in loop.memory, with its slice instead of what it has in an L1
SLICE = c.L1_SET
# a node of an L1: as in loop.memory, but HOLDS: line + 1; dirty sectors, from bit DIRTY_AT of VALID; and in their
# place the last request for it in this window + 1
ASKED, DIRTY_AT = c.DIRTY, c.SECTORS
NODE_WORDS = c.NODE_WORDS
# what is below the SMs knows of each
CONFLICT, LINK = range(2)
# the word of a transaction: as in loop.memory, with its set in the L1
SET_AT, LINE_MASK = c.SET_AT, c.LINE_MASK
#: instead of what a sector costs on the way to the L2
BY_CROSSBAR = -1
#: the crossbar to the slices, that back, what is in both, and, with ports, room for one to look ahead
WAY_THERE, WAY_BACK, IN_FLIGHT, WAY_AHEAD = range(4)


class ChipArrays(NamedTuple):
    """What the loop of a chip's SMs reads and writes."""

    shared: NDArray[np.int64]  # words of `chip.round`
    accesses: NDArray[np.int64]
    tx: NDArray[np.int64]
    sms: NDArray[np.int64]  # [sms, words] what State.sm or StagedState.sm says of each


class SmMemory:
    """`mem` of one SM as the launch finds it; the same for all SMs. `tx`: the transactions."""

    def __init__(self, program: Program, chip: Chip, window: int, slots: int, resident: int) -> None:
        m = chip.sm
        code, known, code_line = c.code_tables(program, m)
        nodes, sets = c._empty_cache(m.l1_sets, m.l1_ways)
        tags = _power_of_two(2 * len(nodes))
        in_window = _transactions_in(m, window)
        stores = chip.horizon * ONE // max(m.tx_cost, 1) + 2
        operations, flow = _power_of_two(in_window + 2 * m.queue + 8), _power_of_two(2 * in_window + stores + 8)
        copies = _power_of_two(_copies(program, resident) + 1)
        requests = max(requests_in(m, window), answers_in(chip, window))
        others = FIXED + m.mshrs + m.queue + code.size + known.size + code_line.size
        sizes = [
            FIXED, m.mshrs, m.queue, code.size, known.size, code_line.size + -others % ALIGNED,
            len(nodes) * NODE_WORDS, sets.size + -sets.size % ALIGNED, tags,
            operations << OP_SHIFT, copies << OP_SHIFT, requests << REQ_SHIFT, requests << DEP_SHIFT, 2 * flow, slots,
            c.constant_words(m), max(chip.port, 1),
        ]  # fmt: skip
        pipelines = l1_tables(m, sum(sizes)) if m.miss_queue else np.zeros(0, np.int64)
        sizes.append(len(pipelines))
        at: list[int] = np.cumsum([0, *sizes]).tolist()
        _, mshrs, queue, code_at, known_at, line_at, nodes_at, sets_at, tags_at, *at = at
        ops, copy_ops, reqs, deps, flow_at, soon, constants_at, port_at, pipelines_at, end = at
        assert end < 1 << PLACE_BITS
        self.mem = np.zeros(end + -end % ALIGNED, np.int64)
        self.mem[: len(c._PARAMETERS)] = c.parameters(program, m)
        self.mem[[c.MSHRS, c.QUEUE, c.CODE, c.CODE_KNOWN, c.CODE_LINE]] = mshrs, queue, code_at, known_at, line_at
        self.mem[c.CONSTANT_TABLE] = constants_at
        self.mem[code_at : line_at + code_line.size] = np.concatenate((code, known, code_line))
        wide = np.zeros((len(nodes), NODE_WORDS), np.int64)
        links = nodes[:, (c.PREV, c.NEXT)]
        wide[:, (c.PREV, c.NEXT)] = np.where(links >= 0, links * NODE_WORDS + nodes_at, 0)
        self.mem[nodes_at:sets_at] = wide.ravel()
        self.mem[sets_at : sets_at + sets.size] = sets.ravel() * NODE_WORDS + nodes_at
        self.mem[[L1_SETS, TAGS, TAG_MASK]] = sets_at, tags_at, tags - 1
        self.mem[[OPS, OP_MASK, REQS, DEPS]] = ops, operations - 1, reqs, deps
        self.mem[[COPY_OPS, COPY_MASK]] = copy_ops, copies - 1
        self.mem[[COPY_SETTLED, COPY_FIRST, COPY_LAST]] = FIRST_COPY
        self.mem[[PORT, PORT_SIZE]] = port_at, chip.port
        self.mem[[FLOW, FLOW_MASK, HORIZON, SOON, LAG]] = flow_at, flow - 1, chip.horizon, soon, m.memory_lag
        self.mem[pipelines_at:end] = pipelines
        self.mem[c.L1_PIPE] = pipelines_at if m.miss_queue else 0
        if m.miss_queue and chip.port:  # requests wait in the port, and for that in the miss queue
            self.mem[pipelines_at + WAY_PLACES] = 1
        self.tx = transactions(program, m)
        self.requests = requests


def _transactions_in(machine: Machine, window: int) -> int:
    return window * ONE // max(machine.tx_cost, 1) + 2


def requests_in(machine: Machine, window: int) -> int:
    """Requests that an SM can make in a window: those of copies, and of the load/store unit two for each transaction: a
    line that it replaces, too."""
    return 3 * _transactions_in(machine, window) + 8


def answers_in(chip: Chip, window: int) -> int:
    """Requests that a crossbar can bring back to an SM in a window."""
    return (2 if chip.router else 1) * window + 2 if chip.crossbar else 0


def _copies(program: Program, resident: int) -> int:
    """Copies that an SM may have under way: all of its blocks, and of some that have just ended."""
    before = np.concatenate(([0], np.cumsum(copies_of(program)[program.entry_op])))
    of_path = before[program.path_start[1:]] - before[program.path_start[:-1]]
    until = np.concatenate(([0], np.cumsum(of_path[program.warp_path])))[program.block_warp]
    return int(min(until[-1], 4 * resident * np.diff(until).max(initial=0)))


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()
