"""Which share of the sectors that stores write they write in part, against counting bytes."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.loop_programs import STREAMING, loop_program
from ppt_gpu.sm.accesses.access import Variants
from ppt_gpu.sm.l2_sharing.partial_sectors import written_in_part
from ppt_gpu.sm.program.machine import machine_of
from ppt_gpu.spec import load_gpu

LANES = np.arange(32)


def variants(*size: int, load: bool = False, space: int = 0) -> Variants:
    n = len(size)
    no = np.zeros(n, np.bool_)
    return Variants(np.full(n, space, np.int8), np.array(size, np.int32), no | load, no, np.zeros(n, np.int8))


def share(kinds: Variants, variant: list[int], base: list[int], offsets: np.ndarray, masks: list[int]) -> float:
    pattern = np.arange(len(variant), dtype=np.int32) % len(masks)
    return written_in_part(
        32,
        kinds,
        np.array(variant, np.int32),
        pattern,
        np.array(base),
        np.atleast_2d(offsets),
        np.array(masks, np.uint32),
    )


def plain(base: int, offsets: list[int], size: int, mask: int) -> tuple[int, int]:
    """(sectors written, of these in part)."""
    written = {base + offset + k for lane, offset in enumerate(offsets) if mask >> lane & 1 for k in range(size)}
    sectors = {byte // 32 for byte in written}
    return len(sectors), sum(any(32 * s + k not in written for k in range(32)) for s in sectors)


@pytest.mark.parametrize(
    ("size", "stride", "base", "expected"),
    [
        (4, 4, 0, 0.0),
        (4, 4, 4, 2 / 5),  # the first and the last of five sectors
        (4, 4096, 0, 1.0),  # down a column
        (1, 1, 64, 0.0),
        (2, 4, 0, 1.0),  # every second half
        (16, 32, 0, 1.0),
        (16, 16, 0, 0.0),
    ],
)
def test_share_of_one_store(size: int, stride: int, base: int, expected: float) -> None:
    assert share(variants(size), [0], [base], stride * LANES, [0xFFFFFFFF]) == pytest.approx(expected)


def test_random_stores_as_counted_by_bytes() -> None:
    random = np.random.default_rng(3)
    sizes = [1, 2, 4, 8, 16]
    variant = random.integers(0, 5, 60).tolist()
    size = np.array([sizes[v] for v in variant])
    offsets = random.integers(0, 40, (60, 32)) * size[:, None]
    base, masks = (random.integers(0, 64, 60) * size).tolist(), random.integers(0, 1 << 32, 60).tolist()
    found = [plain(b, o, s, m) for b, o, s, m in zip(base, offsets.tolist(), size.tolist(), masks, strict=True)]
    expected = sum(parts for _, parts in found) / sum(written for written, _ in found)
    assert share(variants(*sizes), variant, base, offsets, masks) == pytest.approx(expected)


def test_loads_and_shared_memory_do_not_count() -> None:
    assert share(variants(4, load=True), [0], [0], 4096 * LANES, [0xFFFFFFFF]) == 0.0
    assert share(variants(4, space=1), [0], [0], 4096 * LANES, [0xFFFFFFFF]) == 0.0
    assert share(variants(4), [-1], [0], 4096 * LANES, [0xFFFFFFFF]) == 0.0


def test_the_l2_takes_longer_for_parts() -> None:
    gpu = load_gpu("v100", ("l2.partial_write=3",))
    program = loop_program(gpu, STREAMING, 1, 1, 1)
    whole, parts = (
        machine_of(replace(program, l2_in_part=share), gpu, 80, None, 0.0, gpu.l1.size) for share in (0.0, 1.0)
    )
    assert whole.l2_write_cost == whole.l2_cost and parts.l2_write_cost == pytest.approx(3 * whole.l2_cost, rel=1e-3)
