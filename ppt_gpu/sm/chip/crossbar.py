"""Crossbars between the SMs of a chip and the slices of its L2, in the compiled loop. As `reference.crossbar`.

What is in one stands in a table of records, `in_flight`, laid out as the requests of an SM (`chip.memory`); so it is
there until its answer is back, however many windows that takes. Of the words of a crossbar the first HEAD are: how many
senders and receivers it has, and steps in a cycle: with one, a sender may give packets to several receivers in it. A
receiver stops where more than MOST sectors wait for the way back, or in its queue for longer than QUEUE, LATE steps
later. A RING for each receiver, from word STOPS on, has the steps in which that is so; of its queue also those to come,
as what a receiver has taken stays there until it is served. Then, of each sender SENDER_WORDS: the step from which its
next packet may be taken, its first and last record, the packets left of the first and their receiver, the sender that
waits beside it for the same one; how many packets it has sent, how many have been there, and the first record that is
not. Of each receiver RECEIVER_WORDS: the sender whose turn it is, the first one that waits, the step from which it
takes another packet, and that from which its queue is empty.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, merged, popcount
from ppt_gpu.common.records import Words
from ppt_gpu.sm.chip import memory as q
from ppt_gpu.sm.chip.machine import Chip
from ppt_gpu.sm.program.machine import NEVER

SENDERS, RECEIVERS, STEPS, MOST, QUEUE, LATE, STOPS = range(7)
HEAD = 7
GONE, FIRST, LAST, LEFT, TO, BESIDE, SENT, THERE, NEXT_THERE = range(9)
SENDER_WORDS = 9
TURN, WAITS, BUSY, SERVED = range(4)
RECEIVER_WORDS = 4
#: steps of which it is kept which receivers stop then
RING = 1 << 10
NO_STEP = -(1 << 62)

# `in_flight`: the first record that is free, the first that has never been used, how many are used; then the records
FREE, NEW, USED = range(3)
RECORDS = 3
#: fields of a record that a request of an SM has not, or that matter there only: the step from which it waits in the
#: crossbar, its SM, and the one before it
R_STEP, R_SM, R_PREVIOUS = q.R_NODE, q.R_BEFORE, q.R_START
RECORD_WORDS = 1 << q.REQ_SHIFT


def crossbar_words(
    senders: int, receivers: int, steps: int, lag: int, most: int = 0, queue: int = 0, late: int = 0
) -> NDArray[np.int64]:  # fmt: skip
    """An idle crossbar. `lag`: its first window begins so many cycles before the SMs do. most, queue, late: more than
    so many sectors that wait for the way back, or in the queue of a receiver, keep it from taking others so many cycles
    later; `most` 0: never."""
    stops = HEAD + senders * SENDER_WORDS + receivers * RECEIVER_WORDS
    words = np.zeros(stops, np.int64)
    words[:HEAD] = senders, receivers, steps, most, queue * steps, late * steps, stops
    words[HEAD : HEAD + senders * SENDER_WORDS : SENDER_WORDS] = -lag * steps
    for word in (BUSY, SERVED):
        words[HEAD + senders * SENDER_WORDS + word : stops : RECEIVER_WORDS] = -lag * steps
    return np.append(words, np.full(receivers * RING if most else 0, NO_STEP))


def crossbars(chip: Chip) -> list[NDArray[np.int64]]:
    """That to the slices and that back, as far as there are any; and, with ports, room for one to look ahead."""
    if not chip.crossbar:
        return []
    steps, lag = 2 if chip.router else 1, chip.sm.memory_lag
    there = crossbar_words(chip.sms, chip.slices, steps, lag, chip.answers, chip.queue, chip.stops_after)
    ahead = [there[: there[STOPS]]] if chip.port else []
    return [there, crossbar_words(chip.slices, chip.sms, steps, lag), *ahead]


@called
def new_record(words: Words, in_flight: int) -> int:
    """The place of a record that nobody uses."""
    at = words[in_flight + FREE]
    if at:
        words[in_flight + FREE] = words[at + q.R_NEXT]
    else:
        at = in_flight + RECORDS + words[in_flight + NEW] * RECORD_WORDS
        words[in_flight + NEW] += 1
    words[in_flight + USED] += 1
    return at


@called
def free_record(words: Words, in_flight: int, at: int) -> None:
    words[at + q.R_NEXT] = words[in_flight + FREE]
    words[in_flight + FREE] = at
    words[in_flight + USED] -= 1


@merged
def _sender(at: int, number: int) -> int:
    return at + HEAD + number * SENDER_WORDS


@merged
def _receiver(words: Words, at: int, number: int) -> int:
    return at + HEAD + words[at + SENDERS] * SENDER_WORDS + number * RECEIVER_WORDS


@called
def _later(words: Words, first: int, last: int, step: int) -> int:
    """The first record of a queue whose step is later, of which the last one is; looked for from both ends, as answers
    of the L2 overtake all that wait for DRAM, and those of DRAM few others."""
    after, late = first, last
    while words[after + R_STEP] <= step:
        after, before = words[after + q.R_NEXT], words[late + R_PREVIOUS]
        if words[before + R_STEP] <= step:
            return late
        late = before
    return after


@called
def enqueue(words: Words, at: int, sender: int, receiver: int, record: int, step: int, packets: int, hold: int) -> None:
    """The record is in its sender from a step on, behind those that are by then, with so many packets of so many steps
    each."""
    this = _sender(at, sender)
    words[record + R_STEP], words[record + q.R_TO] = step, receiver
    words[record + q.R_SIZE] = packets << q.HOLD_BITS | hold
    first, last = words[this + FIRST], words[this + LAST]
    after = _later(words, first, last, step) if first and step < words[last + R_STEP] else int64(0)
    before = words[after + R_PREVIOUS] if after else last
    if first == 0 or after == first:
        before = int64(0)
    words[record + q.R_NEXT], words[record + R_PREVIOUS] = after, before
    if after:
        words[after + R_PREVIOUS] = record
    if before:
        words[before + q.R_NEXT] = record
    else:
        words[this + FIRST] = record
        _first(words, this)
    if after == 0:
        words[this + LAST] = record
    if words[this + NEXT_THERE] == 0 or step < words[words[this + NEXT_THERE] + R_STEP]:
        words[this + NEXT_THERE] = record


@called
def _first(words: Words, this: int) -> None:
    """The sender begins with its first record, if there is one."""
    record = words[this + FIRST]
    if record:
        words[this + LEFT] = words[record + q.R_SIZE] >> q.HOLD_BITS
        words[this + TO] = words[record + q.R_TO]


@merged
def _ready(words: Words, this: int) -> int:
    """From which step on the next packet of a sender that has one may be taken."""
    return max(words[this + GONE], words[words[this + FIRST] + R_STEP])


@merged
def _wait(words: Words, at: int, number: int) -> None:
    """Sender `number` waits for the receiver of its next packet."""
    this = _sender(at, number)
    receiver = _receiver(words, at, words[this + TO])
    words[this + BESIDE] = words[receiver + WAITS]
    words[receiver + WAITS] = number + 1


@called
def _line_up(words: Words, at: int, now: int) -> int:
    """Senders that have a packet wait for its receiver; the step of the next one that will have one."""
    soon = int64(NEVER)
    for number in range(words[at + SENDERS]):
        this = _sender(at, number)
        if words[this + FIRST] != 0:
            then = _ready(words, this)
            if then <= now:
                _wait(words, at, number)
                soon = now + 1
            else:
                soon = min(soon, then)
    return soon


@merged
def _stop(words: Words, at: int, to: int, step: int) -> int:
    """The word that has the step where receiver `to` stops for what waited in it."""
    return at + words[at + STOPS] + to * RING + (step & (RING - 1))


@merged
def _stopped(words: Words, at: int, to: int, now: int) -> bool:
    step = now - words[at + LATE]
    return words[at + MOST] != 0 and words[_stop(words, at, to, step)] == step


@called
def _count_waiting(words: Words, at: int, there: int, now: int) -> None:
    """Which receivers of the crossbar `there` stop for what waits in that back, at `at`."""
    for number in range(words[at + SENDERS]):
        this = _sender(at, number)
        record = words[this + NEXT_THERE]
        while record and words[record + R_STEP] <= now:
            words[this + THERE] += words[record + q.R_SIZE] >> q.HOLD_BITS
            record = words[record + q.R_NEXT]
        words[this + NEXT_THERE] = record
        if words[this + THERE] - words[this + SENT] > words[there + MOST]:
            words[_stop(words, there, number, now)] = now


@called
def _into_queue(words: Words, at: int, to: int, record: int, now: int) -> None:
    """The record comes to the queue of receiver `to`, which serves a sector a cycle."""
    receiver, takes = _receiver(words, at, to), popcount(words[record + q.R_SECTORS]) * words[at + STEPS]
    words[receiver + SERVED] = max(words[receiver + SERVED], now) + takes
    for step in range(now, min(words[receiver + SERVED] - words[at + QUEUE], now + (RING >> 1))):
        words[_stop(words, at, to, step)] = step


@called
def _grant(words: Words, at: int, to: int, now: int) -> int:
    """Receiver `to` takes the packet of the next sender in turn among those that wait, unless it is busy. The record
    whose last packet that is, or 0."""
    receiver, best, senders = _receiver(words, at, to), int64(NEVER), words[at + SENDERS]
    waits = words[receiver + WAITS] - 1
    words[receiver + WAITS] = 0
    if words[receiver + BUSY] > now or _stopped(words, at, to, now):
        return int64(0)
    while waits >= 0:
        turn = waits - words[receiver + TURN]
        turn += senders if turn < 0 else int64(0)
        best = min(best, turn)
        waits = words[_sender(at, waits) + BESIDE] - 1
    number = best + words[receiver + TURN]
    number -= senders if number >= senders else int64(0)
    this = _sender(at, number)
    record = words[this + FIRST]
    until = now + (words[record + q.R_SIZE] & ((1 << q.HOLD_BITS) - 1))
    many = words[at + STEPS] == 1
    words[receiver + BUSY] = until
    words[receiver + TURN] = number + 1 if number + 1 < senders else int64(0)
    words[this + GONE] = now if many else until
    words[this + LEFT] -= 1
    words[this + SENT] += 1
    if words[this + LEFT] != 0:
        return int64(0)
    words[this + FIRST] = words[record + q.R_NEXT]
    _first(words, this)
    if many and words[this + FIRST] != 0 and words[this + TO] > to and _ready(words, this) <= now:
        _wait(words, at, number)  # for one whose turn comes later in this step
    return record


@called
def cross(words: Words, at: int, wait: int, first: int, end: int, chained: bool, there: int) -> int:
    """What passes in steps `first` to `end` - 1. In the word `wait` of each record, how many steps later than it came
    its last packet is taken. `chained`: R_NEXT of each is the next one, in that order, 0: none; of the first one the
    place. Without, records stay in their queues: to look ahead, with a crossbar that is left alone then, and nothing
    comes to the queue of a receiver. `there`: the crossbar whose receivers stop for what waits here; 0: none do."""
    now, passed, last = int64(first), int64(0), int64(0)
    while now < end:
        if there:
            _count_waiting(words, at, there, now)
        soon = _line_up(words, at, now)
        for to in range(words[at + RECEIVERS]):
            if words[_receiver(words, at, int64(to)) + WAITS] != 0:
                record = _grant(words, at, int64(to), now)
                if record:
                    words[record + wait] = now - words[record + R_STEP]
                if record and chained:
                    if words[at + MOST] != 0:
                        _into_queue(words, at, int64(to), record, now)
                    words[record + q.R_NEXT] = 0
                    if last:
                        words[last + q.R_NEXT] = record
                    else:
                        passed = record
                    last = record
        now = soon
    return passed
