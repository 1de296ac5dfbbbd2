"""Speed of level grid: CPU time of a whole chip over that of its SMs simulated one by one, on synthetic programs."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.loop_programs import DEPENDENT_FMA, SGEMM, STREAMING, Entry, loop_program
from ppt_gpu.common.threads import at_most
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.sm.whole_chip import simulate_chip
from ppt_gpu.spec.gpu import Gpu

BODIES: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    ("dependent FMA", DEPENDENT_FMA),
    ("streaming", STREAMING),
    ("sgemm-like", SGEMM),
)
CHIP, WARPS, RESIDENT, WAVES = "v100", 8, 8, 2
FEW = 8  # SMs whose state stays in a processor's own cache


def bench_chip(entries: int = 1 << 10, runs: int = 3) -> list[dict[str, Any]]:
    """Figures {name, value, unit, inputs}: two waves of blocks of 8 warps on 80 SMs, `entries` operations a warp.

    Neither simulation skips anything; each SM alone has its share of L2 and DRAM. Both with all set-up, in one thread
    unless a line says otherwise.
    """
    from ppt_gpu.spec import load_gpu

    gpu = load_gpu(CHIP)
    with at_most(1):
        found = [figure for label, body in BODIES for figure in _figures(gpu, label, body, entries, runs)]
        return found + _parts(gpu, entries, runs)


def _parts(gpu: Gpu, entries: int, runs: int) -> list[dict[str, Any]]:
    """What the streaming program's time depends on: how many SMs there are to go through, how long a window is, and
    whether threads meet after each round."""
    from ppt_gpu.sm.chip.machine import checked_window, chip_of

    repeat = max(1, entries // len(STREAMING))
    few, name = _part_of(gpu, FEW), "grid streaming, a request of an SM"
    programs = {each.sm.count: loop_program(each, STREAMING, repeat, RESIDENT * WAVES * each.sm.count, WARPS)
                for each in (gpu, few)}  # fmt: skip
    window = checked_window(None, chip_of(programs[FEW], gpu))
    one = loop_program(gpu, STREAMING, repeat, RESIDENT * WAVES, WARPS)
    alone = _seconds(lambda: simulate(one, gpu, resident_blocks=RESIDENT, active_sms=gpu.sm.count, skip=False), runs)
    figures: list[dict[str, Any]] = [
        {"name": f"{name}, alone", "value": alone / len(one.tx_line) * 1e9, "unit": "ns",
         "inputs": {"sms": 1, "requests": len(one.tx_line)}}
    ]  # fmt: skip
    for each, length, threads in ((gpu, window, 1), (gpu, window // 2, 1), (few, window, 1), (few, window, 2)):
        program = programs[each.sm.count]
        with at_most(threads):
            taken = _seconds(lambda: simulate_chip(program, each, resident_blocks=RESIDENT, window=length), runs)  # noqa: B023
        inputs = {"sms": each.sm.count, "window": length, "threads": threads, "requests": len(program.tx_line)}
        label = f"{name}, {each.sm.count} SMs, windows of {length} cycles" + ", 2 threads" * (threads == 2)
        figures.append({"name": label, "value": taken / len(program.tx_line) * 1e9, "unit": "ns", "inputs": inputs})
    return figures


def _part_of(gpu: Gpu, sms: int) -> Gpu:
    """So many SMs of `gpu`, with their share of what all share."""
    share, replace = sms / gpu.sm.count, dataclasses.replace
    return replace(
        gpu,
        sm=replace(gpu.sm, count=sms),
        l2=replace(gpu.l2, bandwidth=gpu.l2.bandwidth * share, size=int(gpu.l2.size * share)),
        dram=replace(gpu.dram, bandwidth=gpu.dram.bandwidth * share),
    )


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
