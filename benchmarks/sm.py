"""Speed of the SM loop: millions of warp instructions per second of CPU time, on synthetic programs, one core."""

from __future__ import annotations

import dataclasses
import statistics
import time
from functools import partial
from typing import Any

from benchmarks.loop_programs import DEPENDENT_FMA, ILP8_FMA, SGEMM, STREAMING, Entry, loop_program
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.spec.gpu import Gpu

BODIES: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    ("dependent FMA", DEPENDENT_FMA),
    ("ILP-8 FMA", ILP8_FMA),
    ("streaming", STREAMING),
    ("sgemm-like", SGEMM),
)
#: how loops are simulated; the first one is what the others are held against
WAYS = ((False, False, "every cycle simulated"), (True, False, "repeats skipped"), (True, True, "approximate"))
GPUS = ("k40", "v100", "h100")
BLOCKS, WARPS, RESIDENT = 32, 8, 8


def bench_sm(entries: int = 1 << 14, runs: int = 3) -> list[dict[str, Any]]:
    """Figures {name, value, unit, inputs}: 64 resident warps, `entries` machine operations a warp.

    Each three times: with every cycle simulated, as `simulate` does it by default, skipping what repeats exactly, and
    skipping what goes alike, with the difference of cycles in %.
    """
    from ppt_gpu.spec import load_gpu

    figures = []
    for name in GPUS:
        gpu = load_gpu(name)
        policies = ("gto", "lrr")
        for policy in policies:
            for label, body in BODIES:
                exact = 0
                for skip, approximate, how in WAYS:
                    rate, cycles = _rate(gpu, policy, body, entries, runs, skip, approximate)
                    exact = exact or cycles
                    if cycles != exact:
                        how = f"{how} ({cycles / exact - 1:+.2%} cycles)"
                    title = f"sm {label}, {name}, {policy}, width {gpu.sm.issue_width}, {how}"
                    inputs = {"warps": BLOCKS * WARPS, "resident": RESIDENT * WARPS, "entries": entries}
                    unit = "M warp instructions/s"
                    figures.append({"name": title, "value": rate / 1e6, "unit": unit, "inputs": inputs})
    return figures


def _rate(
    gpu: Gpu, policy: str, body: tuple[Entry, ...], entries: int, runs: int, skip: bool, approximate: bool
) -> tuple[float, int]:
    """(warp instructions per second of CPU time, cycles)"""
    gpu = dataclasses.replace(gpu, sm=dataclasses.replace(gpu.sm, policy=policy))
    length = max(1, entries // len(body))
    program = loop_program(gpu, body, length, BLOCKS, WARPS)
    run = partial(
        simulate,
        program,
        gpu,
        resident_blocks=RESIDENT,
        active_sms=gpu.sm.count,
        skip=skip,
        approximate=approximate,
    )
    run()  # compile, or load
    rates = []
    for _ in range(runs):
        start = time.process_time()
        result = run()
        rates.append(result.issued / (time.process_time() - start))
    return statistics.median(rates), result.cycles
