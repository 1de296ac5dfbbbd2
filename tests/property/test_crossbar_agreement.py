"""The compiled crossbar takes each packet in the step in which the plain one does, window after window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from some_examples import cases

from ppt_gpu.common.compiled import entry
from ppt_gpu.sm.chip import memory as q
from ppt_gpu.sm.chip.crossbar import RECORD_WORDS, cross, crossbar_words, enqueue
from ppt_gpu.sm.program.machine import NEVER
from ppt_gpu.sm.reference.crossbar import Crossbar, Sent

WINDOWS = 6
SENDER, TO, PACKETS, HOLD, STEP = range(5)


@entry
def pass_window(words: Any, records: int, requests: Any, begin: int, count: int, first: int, end: int) -> int:
    """`count` requests, from number `begin` on of all, [R, 5], come to the crossbar at the beginning of `words`, whose
    records stand from `records` on; the place of the first record that passes in steps `first` to `end` - 1."""
    for index in range(begin, begin + count):
        one, at = requests[index], records + index * RECORD_WORDS
        enqueue(words, 0, one[SENDER], one[TO], at, one[STEP], one[PACKETS], one[HOLD])
    return cross(words, 0, q.R_ACROSS, first, end, True, 0)


@entry
def pass_ahead(words: Any, step: int) -> None:
    """Look ahead with the crossbar at the beginning of `words`."""
    cross(words, 0, q.R_ACROSS, step, NEVER, False, 0)


@settings(deadline=None, max_examples=cases(500))
@given(
    seed=st.integers(0, 2**32),
    senders=st.integers(1, 5),
    receivers=st.integers(1, 5),
    steps=st.sampled_from((1, 2)),
    lag=st.integers(0, 70),
    window=st.integers(1, 40),
    late=st.integers(0, 3),
    most=st.integers(1, 12),
)
def test_compiled_crossbar_is_the_plain_one(
    seed: int, senders: int, receivers: int, steps: int, lag: int, window: int, late: int, most: int
) -> None:
    """`lag`: the first windows begin before cycle 0. Requests come up to `late` windows late."""
    rng, many = np.random.default_rng(seed), steps == 1
    plain, crossbar = Crossbar(senders, receivers, many), crossbar_words(senders, receivers, steps, lag)
    requests = np.zeros((WINDOWS * most, 5), np.int64)
    words = np.concatenate((crossbar, np.zeros(len(requests) * RECORD_WORDS, np.int64)))
    records, total, sent = len(crossbar), 0, list[Sent]()

    def numbers(at: int) -> Iterator[int]:
        """Of the records in a chain."""
        while at:
            yield (at - records) // RECORD_WORDS
            at = int(words[at + q.R_NEXT])

    for first in range(-lag * steps, (WINDOWS * window - lag) * steps, window * steps):
        count, end = int(rng.integers(0, most + 1)), first + window * steps
        new = requests[total : total + count]
        new[:, SENDER], new[:, TO] = rng.integers(0, senders, count), rng.integers(0, receivers, count)
        new[:, PACKETS] = rng.integers(1, 5, count) if many else 1
        new[:, HOLD] = 1 if many else rng.integers(1, 6, count)
        new[:, STEP] = np.sort(first + rng.integers(0, (late + 1) * window * steps, count))
        for one in new:
            sent.append(Sent(int(one[STEP]), int(one[TO]), int(one[PACKETS]), int(one[HOLD]), what=len(sent)))
            plain.send(int(one[SENDER]), sent[-1])
        passed = pass_window(words, records, requests, total, count, first, end)
        total += count
        expected = [one.what for step in range(first, end) for _, one in plain.step(step)]
        assert list(numbers(passed)) == expected
        waited = words[records:].reshape(-1, RECORD_WORDS)[:, q.R_ACROSS]
        assert waited[expected].tolist() == [sent[one].there - sent[one].step for one in expected]
        copy = words.copy()
        pass_ahead(copy, end)
        ahead = [(one.what, one.there - one.step) for _, one in plain.look_ahead(end, {})]
        assert [(one, copy[records + one * RECORD_WORDS + q.R_ACROSS]) for one, _ in ahead] == ahead
