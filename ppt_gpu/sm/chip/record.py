"""What the SMs of a chip asked of the L2, and the answers, as the compiled loop writes them down after each window.

So that a run whose answers would be the same from another L2 or DRAM need not be made (chip.memory_replay).
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called
from ppt_gpu.sm.chip import memory as q
from ppt_gpu.sm.chip.machine import ATOMIC
from ppt_gpu.sm.loop.raw import Requests
from ppt_gpu.sm.program.program import Program, op_issues

# the room for records: where the next one goes, behind the end when some found no room, and the end; then the records
NEXT_RECORD, END_OF_RECORDS = range(2)
HEAD = 2
#: words of a record: the fields of Requests
WORDS = 9
#: transactions of a program whose run is recorded, at most; and one in how many warp instructions
MOST, RARE = 1 << 18, 32


def room_for(program: Program) -> int:
    """How many requests a run of `program` on a chip may make; 0: none, or too many to be worth it."""
    transactions = len(program.tx_line)
    if transactions > MOST or transactions * RARE > int(op_issues(program).sum()):
        return 0
    return 2 * transactions  # each may have a line written back that the L1 replaced


def records(room: int) -> NDArray[np.int64]:
    """Room for so many requests."""
    found = np.empty(HEAD + room * WORDS, np.int64)
    found[[NEXT_RECORD, END_OF_RECORDS]] = HEAD, len(found)
    return found


@called
def write_down(mems: Any, stride: int, sms: int, into: Any) -> None:
    """Write down the requests of a window, which have been answered, if there is room for all of them."""
    at = into[NEXT_RECORD]
    for sm in range(sms):
        base, count = sm * stride, mems[sm * stride + q.N_REQS]
        if at + count * WORDS > into[END_OF_RECORDS]:
            into[NEXT_RECORD] = into[END_OF_RECORDS] + 1
            return
        for number in range(count):
            request = base + mems[base + q.REQS] + (number << q.REQ_SHIFT)
            updates = mems[request + q.R_UPDATES] if mems[request + q.R_KIND] == ATOMIC else int64(0)
            into[at] = sm
            into[at + 1] = mems[request + q.R_TIME]
            into[at + 2] = mems[request + q.R_LINE]
            into[at + 3] = mems[request + q.R_SECTORS]
            into[at + 4] = mems[request + q.R_KIND]
            into[at + 5] = mems[request + q.R_WAIT]
            into[at + 6] = mems[request + q.R_START] if updates > 0 else int64(0)
            into[at + 7] = updates
            into[at + 8] = mems[request + q.R_ANSWER]
            at += WORDS
    into[NEXT_RECORD] = at


def requests_of(written: NDArray[np.int64]) -> Requests | None:
    """What was written down; None where not everything found room."""
    end = int(written[NEXT_RECORD])
    if end > written[END_OF_RECORDS]:
        return None
    table = written[HEAD:end].reshape(-1, WORDS)
    return Requests(*(np.ascontiguousarray(table[:, word]) for word in range(len(fields(Requests)))))
