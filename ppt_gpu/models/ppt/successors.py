"""PPT-GPU of 2019 and 2021: the schedule of the PPT GPU module with one latency for all global memory.

That is the mean access time, from hit rates: here those of SDCM (`cache_models`), which 2021 was published with. 2019
goes from a workload to the grid as PPT does, 2021 multiplies it by the number of workloads.
"""

from __future__ import annotations

import numpy as np

from ppt_gpu.bounds.least_latency import entry_ops
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.steps import Steps
from ppt_gpu.models.caches.cache_models import sdcm_rates
from ppt_gpu.models.ppt.loop import PptRun
from ppt_gpu.models.ppt.memory import AccessTimes, LoadedMemory, Traffic, access_time, mean_access_time
from ppt_gpu.models.ppt.module import PptModule, constant
from ppt_gpu.sm.program.program import KIND_ATOMIC, KIND_LOAD, KIND_STORE

#: memory channels, which GPU files do not say
CHANNELS = 8


class PptGpu2019(PptModule):
    """2019: every access of global memory takes the mean access time."""

    name = "ppt_gpu_2019"
    title = "PPT-GPU 2019"
    source = "Arafa, Badawy, Chennupati, Santhi, Eidenbenz: PPT-GPU (CAL 2019)"

    def memory(self, inputs: ModelInputs, steps: Steps, notes: list[str]) -> tuple[LoadedMemory, int]:
        gpu = inputs.gpu
        if gpu.perfect_memory:
            return constant(gpu.l1.latency), 0
        hits = _sdcm(inputs)[1]
        steps.given("P_hit", hits, "hit rate of the L2, by SDCM")
        steps.given("L2", gpu.l2.latency, "latency of an L2 hit", unit="cycles")
        steps.given("L2_DRAM", max(gpu.dram.latency - gpu.l2.latency, 0), "more where the L2 misses", unit="cycles")
        time = mean_access_time(hits, gpu.l2.latency, max(gpu.dram.latency - gpu.l2.latency, 0))
        return constant(steps("AMT", "{P_hit} {L2} + (1 - {P_hit}) ({L2} + {L2_DRAM})", time, unit="cycles")), 0


class PptGpu2021(PptModule):
    """2021: the mean access time of the kernel's transactions; workloads one after another."""

    name = "ppt_gpu_2021"
    title = "PPT-GPU 2021"
    source = "Arafa, Badawy, ElWazir, Barai, Eker, Chennupati, Santhi, Eidenbenz: PPT-GPU (SC 2021)"

    def memory(self, inputs: ModelInputs, steps: Steps, notes: list[str]) -> tuple[LoadedMemory, int]:
        gpu = inputs.gpu
        if gpu.perfect_memory:
            return constant(gpu.l1.latency), 0
        traffic = launch_traffic(inputs)
        line = inputs.program.line_bytes
        times = AccessTimes(
            l1=gpu.l1.latency,
            l2=gpu.l2.latency,
            dram=gpu.dram.latency,
            l2_service=line / (gpu.interconnect.bandwidth * gpu.sm.count),
            dram_service=line / gpu.dram_bytes_per_cycle,
            channels=CHANNELS,
        )
        for name, value in vars(traffic).items():
            steps.given(name, value, "of one SM" if name in ("requests", "loads", "stores") else "")
        equation = "ceil((max(L1, L2, DRAM transactions x latency) + service) / {requests})"
        notes.append(f"{CHANNELS} memory channels are assumed: GPU files do not say how many there are")
        return constant(steps("AMAT", equation, access_time(traffic, times), unit="cycles")), 0

    def grid(self, run: PptRun, inputs: ModelInputs, blocks: int, steps: Steps, literal: bool) -> float:
        cycles = steps.given("C", run.last, "end of the workload, its stores included", unit="cycles")
        own = steps.given("orig", max(round(inputs.sm_blocks), 1), "blocks of the busiest SM", unit="blocks")
        steps.given("new", blocks, "of them simulated", unit="blocks")
        if literal and own > blocks:
            return steps(
                "T", "{C} x ceil(({orig} - {new}) / {new})", cycles * -(-(own - blocks) // blocks), unit="cycles"
            )
        return steps("T", "{C} x ceil({orig} / {new})", cycles * -(-own // blocks), unit="cycles")


def launch_traffic(inputs: ModelInputs) -> Traffic:
    """Transactions of the simulated blocks."""
    program = inputs.program
    kind, count = program.op_kind[entry_ops(program)], np.diff(program.access_start)
    memory = np.isin(kind, (KIND_LOAD, KIND_STORE, KIND_ATOMIC))
    requests, transactions = float(memory.sum()), float(count[memory].sum())
    loads = float(count[kind == KIND_LOAD].sum())
    l1, l2 = _sdcm(inputs)
    return Traffic(requests, loads, transactions - loads, l1, l2, transactions / requests if requests else 0.0)


def _sdcm(inputs: ModelInputs) -> tuple[float, float]:
    """Hit rates of L1 and L2; 0 where nothing looks into them."""
    found = sdcm_rates(inputs)
    return found.l1 or 0.0, found.l2 or 0.0
