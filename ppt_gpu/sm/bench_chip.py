"""Speed of level grid: CPU time of a whole chip over that of its SMs simulated one by one, on synthetic programs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from ppt_gpu.sm.bench_programs import DEPENDENT_FMA, SGEMM, STREAMING, Entry, loop_program
from ppt_gpu.sm.simulate import simulate, simulate_chip
from ppt_gpu.spec.gpu import Gpu

BODIES: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    ("dependent FMA", DEPENDENT_FMA),
    ("streaming", STREAMING),
    ("sgemm-like", SGEMM),
)
CHIP, WARPS, RESIDENT, WAVES = "v100", 8, 8, 2


def bench_chip(entries: int = 1 << 10, runs: int = 3) -> list[dict[str, Any]]:
    """Figures {name, value, unit, inputs}: two waves of blocks of 8 warps on 80 SMs, `entries` operations a warp.

    Neither simulation skips anything; each SM alone has its share of L2 and DRAM. Both with all set-up, one core.
    """
    from ppt_gpu.spec import load_gpu

    gpu = load_gpu(CHIP)
    return [figure for label, body in BODIES for figure in _figures(gpu, label, body, entries, runs)]


def _figures(gpu: Gpu, label: str, body: tuple[Entry, ...], entries: int, runs: int) -> list[dict[str, Any]]:
    sms, repeat = gpu.sm.count, max(1, entries // len(body))
    whole, one = (loop_program(gpu, body, repeat, RESIDENT * WAVES * count, WARPS) for count in (sms, 1))
    issued = 0

    def chip() -> None:
        nonlocal issued
        issued = simulate_chip(whole, gpu, resident_blocks=RESIDENT).issued

    together = _seconds(chip, runs)
    alone = _seconds(lambda: simulate(one, gpu, resident_blocks=RESIDENT, active_sms=sms, skip=False), runs)
    inputs = {"sms": sms, "blocks": RESIDENT * WAVES * sms, "warps": WARPS, "entries": repeat * len(body)}
    name = f"grid {label}, {CHIP}, {sms} SMs"
    return [
        {"name": name, "value": issued / together / 1e6, "unit": "M warp instructions/s", "inputs": inputs},
        {"name": f"{name}, over its SMs one by one", "value": together / (sms * alone), "unit": "x", "inputs": inputs},
    ]


def _seconds(run: Callable[[], object], runs: int) -> float:
    """Median CPU time of `run`, after a first one that compiles or loads."""
    times = []
    for _ in range(runs + 1):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return statistics.median(times[1:])
