"""How fast the lowering is, on inputs made here: `python -m benchmarks lower` prints the rates."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from ppt_gpu.common.hash_ids import dense_ids
from ppt_gpu.sm.accesses.access import Geometry, Variants, lower_accesses
from ppt_gpu.sm.accesses.banks import BankRule
from ppt_gpu.sm.accesses.coalesce import SECTOR
from ppt_gpu.sm.accesses.scoreboard import StaticCode, schedule
from ppt_gpu.sm.accesses.shapes import GLOBAL

Metric = dict[str, str | float]


def bench_lower(entries: int = 4_000_000, accesses: int = 2_000_000) -> list[Metric]:
    """Rates of the compiled passes, in millions a second of CPU time on one core.

    entries: length of the stream that is scheduled; accesses: warp accesses that are coalesced.
    """
    code = _loop_code()
    start = np.array([0, entries], np.int64)
    pcs = np.tile(np.arange(16, dtype=np.int32), entries // 16 + 1)[:entries]
    rates = [_rate("lower.schedule", "scoreboard entries", entries, lambda: schedule(code, start, pcs))]
    for name, what, lanes in (
        ("lower.coalesced", "accesses of one shape, one transaction each", np.arange(32) * 4),
        ("lower.strided", "transactions of accesses of 32 lines", np.arange(32) * 128),
    ):
        few = accesses // (8 if name == "lower.strided" else 1)
        offsets, bases = lanes[None, :].astype(np.int64), np.arange(few, dtype=np.int64) * 128
        count = few * (32 if name == "lower.strided" else 1)
        rates.append(_rate(name, what, count, _access_run(offsets, np.zeros(few, np.int32), bases)))
    rates.append(_random(accesses // 8))
    return rates


def _random(accesses: int) -> Metric:
    """Every access a pattern of its own: 32 unrelated addresses."""
    offsets = np.random.default_rng(0).integers(0, 1 << 20, (accesses, 32)) * 4
    run = _access_run(offsets, np.arange(accesses, dtype=np.int32), np.zeros(accesses, np.int64))
    return _rate("lower.random", "transactions of accesses without a common shape", accesses * 32, run)


def _access_run(
    offsets: np.ndarray, pattern: np.ndarray, bases: np.ndarray
) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    shape = Geometry(SECTOR, 128, 32, BankRule(32, 4, 128, False), 1.0, True)
    yes, no = np.array([True]), np.array([False])
    variants = Variants(np.array([GLOBAL], np.int8), np.array([4], np.int32), yes, no, np.zeros(1, np.int8))
    masks = np.full(len(offsets), 0xFFFFFFFF, np.uint32)
    zero = np.zeros(len(bases), np.int32)
    return lambda: dense_ids(lower_accesses(shape, variants, zero, pattern, bases, offsets, masks).address)


def _loop_code() -> StaticCode:
    """Sixteen instructions, each reading what two earlier ones wrote; every fourth is a load."""
    n = 16
    reads = [r for i in range(n) for r in ((i - 1) % n, (i - 5) % n)]
    return StaticCode(
        registers=n,
        read_start=np.arange(0, 2 * n + 1, 2, dtype=np.int32),
        reads=np.array(reads, np.int32),
        write_start=np.arange(n + 1, dtype=np.int32),
        writes=np.arange(n, dtype=np.int32),
        guarded=np.zeros(n, np.bool_),
        chain_start=np.arange(n + 1, dtype=np.int32),
        op_fixed=np.where(np.arange(n) % 4 == 0, -1, 6).astype(np.int32),
        op_value=np.ones(n, np.bool_),
        op_fence=np.zeros(n, np.bool_),
    )


def _rate(name: str, what: str, count: int, run: Callable[[], object]) -> Metric:
    """The best of three runs, after one that compiles."""
    run()
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        run()
        best = min(best, time.process_time() - begin)
    return {"name": name, "what": what, "value": round(count / best / 1e6, 1), "unit": "M/s"}
