"""Whole accesses through the memoised, compiled path agree with the plain rules on absolute addresses."""

from __future__ import annotations

from math import ceil

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.lower import (
    reference_apart,
    reference_bank_cycles,
    reference_look_ups,
    reference_passes,
    reference_transactions,
)

from ppt_gpu.sm.accesses.access import BY_L1, PAST_L1, STAYS, Geometry, Variants, lower_accesses
from ppt_gpu.sm.accesses.banks import BankRule
from ppt_gpu.sm.accesses.coalesce import RULES
from ppt_gpu.sm.accesses.shapes import GLOBAL, LOCAL, SHARED

BANKS = (
    BankRule(32, 4, 128, False), BankRule(32, 8, 256, False), BankRule(16, 4, 64, True),
    BankRule(32, 4, 128, False, first_word=True),
)  # fmt: skip


@st.composite
def batches(draw: st.DrawFn) -> tuple[Geometry, Variants, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(geometry, variants, variant, pattern, base, offsets, masks): a few shapes used again and again."""
    shape = Geometry(
        RULES[draw(st.sampled_from(sorted(RULES)))], draw(st.sampled_from([64, 128, 256])), 32,
        draw(st.sampled_from(BANKS)), draw(st.sampled_from([0.5, 1.0, 4.0])), draw(st.booleans()),
        draw(st.booleans()), draw(st.sampled_from([0, 2, 4, 8])), draw(st.sampled_from([0, 0, 2, 4])),
        atomics_apart=draw(st.booleans()),
    )  # fmt: skip
    number = draw(st.integers(1, 4))
    rows = [
        (draw(st.sampled_from([GLOBAL, SHARED, LOCAL])), draw(st.sampled_from([1, 4, 8, 16])),
         draw(st.sampled_from(["load", "store", "atomic"])), draw(st.integers(0, 2)), draw(st.sampled_from([1, 2, 4])))
        for _ in range(number)
    ]  # fmt: skip
    variants = Variants(
        np.array([row[0] for row in rows], np.int8),
        np.array([row[1] for row in rows], np.int32),
        np.array([row[2] == "load" for row in rows]),
        np.array([row[2] == "atomic" for row in rows]),
        np.array([row[3] if row[0] == GLOBAL and row[2] == "load" else STAYS for row in rows], np.int8),
        word=np.array([max(1, row[1] // row[4]) for row in rows], np.int32),
    )
    patterns = draw(st.integers(1, 3))
    lane = st.lists(st.integers(-30, 30), min_size=32, max_size=32)
    offsets = np.array([draw(lane) for _ in range(patterns)], np.int64) * 16
    masks = np.array([draw(st.sampled_from([0, 1, 0xFFFFFFFF, 0xF00FF00F])) for _ in range(patterns)], np.uint32)
    offsets[(masks[:, None] >> np.arange(32, dtype=np.uint32) & 1) == 0] = 0
    accesses = draw(
        st.lists(
            st.tuples(st.integers(-1, number - 1), st.integers(0, patterns - 1), st.integers(40, 200)), max_size=30
        )
    )
    columns = np.array(accesses, np.int64).reshape(-1, 3)
    return (
        shape, variants, columns[:, 0].astype(np.int32), columns[:, 1].astype(np.int32), columns[:, 2] * 16,
        offsets, masks,
    )  # fmt: skip


@given(batches())
@settings(max_examples=120, deadline=None)
def test_accesses_agree_with_the_plain_rules(batch: tuple) -> None:
    shape, variants, variant, pattern, base, offsets, masks = batch
    found = lower_accesses(shape, variants, variant, pattern, base, offsets, masks)
    rule = next(name for name, number in RULES.items() if number == shape.rule)
    for i, v in enumerate(variant):
        span = slice(found.start[i], found.start[i + 1])
        moved = list(zip((found.address[span] // shape.line).tolist(), found.sectors[span].tolist(), strict=True))
        if v < 0:
            assert (moved, found.cycles[i], found.atomic[i]) == ([], 1, 1)
            continue
        size, space = int(variants.size[v]), variants.space[v]
        lanes = [
            (lane, int(base[i] + offsets[pattern[i], lane])) for lane in range(32) if masks[pattern[i]] >> lane & 1
        ]
        same = [address for _, address in lanes]
        most = max((same.count(address) for address in same), default=1)
        assert found.atomic[i] == (most if variants.atomic[v] else 1)
        if space == SHARED:
            assert moved == []
            assert found.cycles[i] == max(1, reference_passes(shape.banks, lanes, size, bool(variants.atomic[v])))
            continue
        whole = rule in ("line", "segment") and bool(variants.load[v]) and (shape.l1_global or space == LOCAL)
        word = int(variants.word[v])
        expected = reference_transactions(rule, lanes, size, shape.line, shape.sector, whole, word)
        if shape.atomics_apart and variants.atomic[v]:
            expected = reference_apart(expected, lanes, shape.line, shape.sector)
        assert moved == expected
        requests = {lane * max(4, size) // 128 for lane, _ in lanes} if rule in ("line", "sector") else {0}
        onward = variants.onward[v]
        banked = shape.l1_banked and bool(variants.load[v]) and space == GLOBAL and onward != PAST_L1
        read = reference_passes(shape.banks, lanes, size, False) if banked else 0
        tags = reference_look_ups({line for line, _ in moved}, shape.l1_tag_sets)
        least = max(1, len(requests), ceil(len(moved) / shape.per_cycle))
        if shape.l1_sector_banks and variants.atomic[v]:
            least = max(1, len(moved))
        elif shape.l1_sector_banks:
            least = reference_bank_cycles(moved, shape.line // shape.sector, shape.l1_sector_banks)
        written = ceil(len(lanes) * size / shape.banks.row)
        looked_up = max(least, read, tags)
        assert (
            found.cycles[i] == {STAYS: looked_up, BY_L1: looked_up + written, PAST_L1: max(looked_up, written)}[onward]
        )
