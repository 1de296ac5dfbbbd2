"""The tables of an L1 with pipelines before its banks in the compiled loop: a part of `mem`, from the place L1_PIPE on.

It begins with the words below, then come the queues, the tags, and the pools of what is in flight. `mem` of an SM alone
and of one of a chip have the same part, so its tags find lines by a hash table, as those of chip.memory do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.sm.loop import memory as c
from ppt_gpu.sm.loop.memory import MemoryArrays
from ppt_gpu.sm.program.fill import FILL_FROM, fill_transactions
from ppt_gpu.sm.program.machine import NEVER, Machine, set_index
from ppt_gpu.sm.program.program import Program

#: requests that an SM has in flight, at most: room for them, which no launch of the reference needs
AT_ONCE = 4096
#: requests that wait for the way out of the SM, at most: gpgpusim's icnt_in_buffer_limit
WAY_OUT = 512
#: kind of a request for a line of the code
OF_CODE = -1

# words. DUE: the next cycle in which something happens here. UNIT: the operation in the load/store unit, WRITING: whose
# result is written next, PASSING: the request whose answer passes the L1 by (their places, 0: none). TURN: whose result
# is next. REPLACED: the line that has to be written back, REPLACED_MASK: its sectors. GROUP: sectors of the L2 in one
# of the L1. WAY_PLACES: of the way out. MSHRS_USED; ORDER: answers so far. Of each ring: how many have come and gone,
# and where it stands. Of each pool: the first free record that has been used, the next one that has not been.
(
    DUE, UNIT, WRITING, PASSING, TURN, MSHRS_USED, ORDER, IN_USE, BANK_NUMBER, STAGES, SHARED_STAGES, MISS_PLACES, LAG,
    SHARED_IN, SHARED_OUT, SHARED, MISS_IN, MISS_OUT, MISSES, WAY_IN, WAY_GONE, WAY, FILLED_IN, FILLED_OUT, FILLED,
    HEAP_SIZE, HEAP, BANKS, SETS, TAGS, TAG_MASK, FREE_OP, NEW_OP, FREE_REQUEST, NEW_REQUEST, REQUEST_WORDS,
    MISS_MASK, SHARED_MASK, BANK_MASK, WAY_PLACES, GROUP, REPLACED, REPLACED_MASK,
) = range(43)  # fmt: skip
FIXED = 44
# a bank: how many sectors have come, how many gone; then a ring of them: the cycle in which each came, its operation,
# the word of its line, its number in the line and the mask of its sectors of the L2
BANK_IN, BANK_OUT, BANK_RING = range(3)
I_CYCLE, I_OP, I_LINE, I_BIT, I_PART = range(5)
ITEM_WORDS = 5
WAY_MASK, FILLED_MASK = WAY_OUT - 1, AT_ONCE - 1
# an operation. NEXT, LAST: its transactions that are left; MASK: sectors left of the first one, 0: all; PENDING: of the
# L1's sectors those that are not back. ENTERS: cycle from which it goes into the pipeline of shared memory. WAIT: of an
# atomic, for other updates of the same address, -1: none of it has left; UPDATES. LOOKS: into the L1; of shared memory:
# it has a result. GROUP: sectors of the L2 that go together; STAYS: a store that stays in the L1 if its line is there.
# FREE: the next free record
(
    O_PLACE, O_ENTRY, O_OP, O_KIND, O_NEXT, O_LAST, O_MASK, O_PENDING, O_ENTERS, O_WAIT, O_UPDATES, O_LOOKS, O_GROUP,
    O_STAYS,
) = range(14)  # fmt: skip
O_FREE = O_PLACE
OP_WORDS = 14
# a request. LINE: the word of its line; NODE: of the L1, 0: none; BESIDE: the next request for its line; COUNT:
# operations that wait for it, DRAINED: of them, those that have been given to be written; OPERATIONS: these, 0: a line
# that is written back. FREE: the next free record. LEFT: cycle in which it left; MASK: of sectors of the L2
R_KIND, R_LINE, R_BIT, R_NODE, R_BESIDE, R_COUNT, R_DRAINED, R_LEFT, R_MASK, R_OPERATIONS = range(10)
R_FREE = R_BESIDE
# an answer: its cycle, ORDER_BITS of its order below it; and its request
ANSWER_WORDS, ORDER_BITS = 2, 30
# a node: as in loop.memory; FILL: the first request for its line that is on its way, FILLING: the sectors
REQUESTED = c.FILL


def l1_tables(machine: Machine, base: int) -> NDArray[np.int64]:
    """The part of `mem` that begins at `base`."""
    nodes, sets = c._empty_cache(machine.l1_sets, machine.l1_ways)
    shared, misses, bank = (
        _power_of_two(places) for places in (machine.shared_stages, machine.miss_queue, machine.l1_stages)
    )
    tags = _power_of_two(2 * len(nodes))
    request = R_OPERATIONS + machine.merges
    operations = AT_ONCE + machine.mshrs * machine.merges + machine.l1_banks * bank + shared + 4
    sizes = [
        FIXED, 2 * shared, misses, WAY_OUT, AT_ONCE, machine.l1_banks * (BANK_RING + bank * ITEM_WORDS),
        nodes.size, sets.size, tags, (AT_ONCE + 2) * ANSWER_WORDS, operations * OP_WORDS, (AT_ONCE + 1) * request,
    ]  # fmt: skip
    at: list[int] = (base + np.cumsum([0, *sizes])).tolist()
    _, shared_at, misses_at, way, filled, banks, nodes_at, sets_at, tags_at, heap, ops, requests, end = at
    table = np.zeros(end - base, np.int64)
    for word, value in (
        (DUE, NEVER), (BANK_NUMBER, machine.l1_banks), (STAGES, machine.l1_stages),
        (SHARED_STAGES, machine.shared_stages), (MISS_PLACES, machine.miss_queue), (LAG, machine.memory_lag),
        (SHARED, shared_at), (MISSES, misses_at), (WAY, way), (FILLED, filled), (HEAP, heap), (BANKS, banks),
        (SETS, sets_at), (TAGS, tags_at), (TAG_MASK, tags - 1), (NEW_OP, ops), (NEW_REQUEST, requests),
        (REQUEST_WORDS, request), (MISS_MASK, misses - 1), (SHARED_MASK, shared - 1), (BANK_MASK, bank - 1),
        (WAY_PLACES, WAY_OUT), (GROUP, machine.l1_group),
    ):  # fmt: skip
        table[word] = value
    links = nodes[:, (c.PREV, c.NEXT)]
    nodes[:, (c.PREV, c.NEXT)] = np.where(links >= 0, links * c.NODE_WORDS + nodes_at, 0)
    table[nodes_at - base : sets_at - base] = nodes.ravel()
    table[sets_at - base : tags_at - base] = sets.ravel() * c.NODE_WORDS + nodes_at
    return table


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


def transactions(program: Program, machine: Machine) -> NDArray[np.int64]:
    """[T + 1] the words of all transactions; one more, as in loop.memory."""
    if len(program.tx_line) >= FILL_FROM:
        words = np.empty(len(program.tx_line) + 1, np.int64)
        sets = set_index(program, machine.l1_sets if machine.l1_sets > 1 else 0, machine.l1_index)
        fill_transactions(words, program.tx_line, program.tx_sectors, c.SECTORS, sets, c.SET_AT)
        return words
    words = np.zeros(len(program.tx_line) + 1, np.int64)
    words[:-1] = program.tx_line
    known = program.tx_line >= 0
    words <<= c.SECTORS
    words[:-1] |= program.tx_sectors
    if machine.l1_sets > 1:
        l1_set = set_index(program, machine.l1_sets, machine.l1_index).astype(np.int64) << c.SET_AT
        words[:-1] |= np.where(known, l1_set[np.where(known, program.tx_line, 0)], 0)
    return words


class L1Memory(MemoryArrays):
    """The memory of an SM alone, with this part where its L1 has such pipelines."""

    def __init__(self, program: Program, machine: Machine) -> None:
        super().__init__(program, machine)
        if machine.miss_queue:
            before = self.mem
            tables = l1_tables(machine, len(before))
            self.mem = np.zeros(len(before) + len(tables), np.int64)
            self.mem[: len(before)] = before
            used = len(tables) - int(np.argmax(tables[::-1] != 0))  # what is never written takes no memory
            self.mem[len(before) : len(before) + used] = tables[:used]
            self.mem[c.L1_PIPE] = len(before)
            self.tx = transactions(program, machine)
