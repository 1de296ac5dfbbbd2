"""One SM as the interval models see it: its representative warp, what that asks of memory, and where its time goes.

Per scheduler run as many warps as it holds, per SM as many schedulers as it has; the core of GPUMech's paper (000) has
one. The CPI stack is that of its section VII.

Queues for MSHRs and DRAM: GPUMech's contention model (paper 000, section IV-B, Eqs. 17-23).

An interval's requests of all warps of a core come together. MSHRs serve them in batches of a miss latency each; DRAM is
an M/D/1 queue, capped at half of what can be before a request. For a utilisation of 1 and more the cap is used: the
printed minimum would be negative (docs/models.md).

Many warps on one scheduler, without contention: GPUMech's multithreading model (paper 000, section IV-A, Eqs. 7-16).

The representative warp's own cycles, and what the instructions of the other warps add that do not hide its stalls.
Eqs. 7, 15 and 16 are misprinted: 7 is instructions by cycles, 15 and 16 have max and min exchanged (docs/models.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.bounds.least_latency import next_entry_holds
from ppt_gpu.models.base.cache_outcomes import DRAM, L1, L2, LEVELS
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.warp_streams import DoesNotApply
from ppt_gpu.models.gpumech.interval import Profile, Profiles, interval_profiles
from ppt_gpu.models.gpumech.mdm import mdm_of
from ppt_gpu.models.gpumech.representative import Representative, representative


@dataclass(frozen=True)
class Multithreading:
    """`warps` warps like the representative one, on a scheduler that issues `rate` instructions a cycle."""

    issue_probability: float  # Eq. 9
    alone: float  # cycles of the representative warp alone
    nonoverlapped: NDArray[np.float64]  # [K] instructions of other warps that hide no stall
    cycles: float  # Eq. 8, of all the warps
    instructions: float  # of all the warps

    @property
    def cpi(self) -> float:
        """Eq. 7, cycles by instructions, as the model has it: round robin may yield less than 1 / rate."""
        return self.cycles / self.instructions if self.instructions else 0.0

    def clamped(self, rate: float = 1.0) -> float:
        """CPI of at least what issuing takes."""
        return max(self.cpi, 1.0 / rate) if self.instructions else 0.0


def multithreading(
    profile: Profile, warps: int, policy: str = "lrr", rate: float = 1.0, literal: bool = False
) -> Multithreading:
    """Eqs. 7-16 for `policy` "lrr" or "gto". `literal`: Eqs. 15 and 16 as printed."""
    p = profile.issue_probability(rate)
    if policy == "lrr":
        other = p * (warps - 1) * (profile.insts - 1.0)  # Eqs. 10, 11
    else:
        average = profile.instructions / max(len(profile.insts), 1)  # Eq. 13
        pick = np.maximum if literal else np.minimum
        issued = average * pick(p * profile.stall, 1.0) * (warps - 1)  # Eqs. 12, 14, 15
        clip = np.minimum if literal else np.maximum
        other = clip(issued - profile.stall * rate, 0.0)  # Eq. 16
    alone = profile.cycles(rate)
    cycles = alone + float(other.sum()) / rate
    return Multithreading(p, alone, other, cycles, warps * profile.instructions)


def naive_ipc(profile: Profile, warps: int, rate: float = 1.0) -> float:
    """Eq. 1, capped at the issue rate: as if every instruction of every other warp hid a stall."""
    return min(warps * profile.issue_probability(rate), rate)


Array = NDArray[np.float64]


@dataclass(frozen=True)
class MshrDelay:
    """Of every interval, in cycles."""

    batches: Array  # mean number of the batch that a request is served in
    queueing: Array  # Eq. 19
    delay: Array  # Eq. 20


def mshr_delay(core_requests: Array, mshrs: int, miss_latency: float, memory_insts: Array) -> MshrDelay:
    """Eqs. 19, 20. core_requests (Eq. 18): of all warps in each interval; memory_insts: of one warp."""
    n = np.asarray(core_requests, np.float64)
    batches = mean_batch(n, mshrs)
    queueing = miss_latency * (batches - 1.0)
    return MshrDelay(batches, queueing, np.where(n > mshrs, queueing * np.asarray(memory_insts, np.float64), 0.0))


def mean_batch(requests: Array, size: int) -> Array:
    """Mean of ceil(j / size) over j = 1 ... n, in closed form; 1 for n = 0. n may be a fraction."""
    n = np.maximum(np.asarray(requests, np.float64), 0.0)
    full = np.floor(n / size)
    rest = n - full * size
    total = size * full * (full + 1.0) / 2.0 + rest * (full + 1.0)
    found: Array = np.where(n > 0, total / np.maximum(n, 1e-300), 1.0)
    return found


@dataclass(frozen=True)
class BandwidthDelay:
    """Of every interval, in cycles."""

    service: float  # cycles of one request at the DRAM
    arrivals: Array  # Eq. 23, requests a cycle
    utilisation: Array  # Eq. 22
    cap: Array
    delay: Array  # Eq. 21


def bandwidth_delay(core_requests: Array, cores: int, cycles: Array, service: float) -> BandwidthDelay:
    """Eqs. 21-23. core_requests: that reach DRAM, of all warps of a core; cycles: of each interval alone."""
    requests = np.asarray(core_requests, np.float64) * cores
    arrivals = np.where(requests > 0, requests / np.maximum(np.asarray(cycles, np.float64), 1e-300), 0.0)
    utilisation = arrivals * service
    cap = service * requests / 2.0
    room = np.maximum(1.0 - utilisation, 1e-300)
    queue = np.minimum(arrivals * service**2 / (2.0 * room), cap)
    return BandwidthDelay(service, arrivals, utilisation, cap, np.where(utilisation >= 1.0, cap, queue))


@dataclass(frozen=True)
class Core:
    """One SM as the interval models see it: its representative warp and what that asks of memory."""

    warps: int  # resident on the SM
    scheduler_warps: int  # on its fullest scheduler
    schedulers: int
    rate: int  # instructions a scheduler issues in a cycle
    chosen: Representative
    profile: Profile
    fetched: NDArray[np.float64]  # [K] requests that hold an MSHR, of one warp in each interval
    waiting: NDArray[np.float64]  # [K] memory instructions that wait for L2 or DRAM
    memory: NDArray[np.float64]  # [K] loads and atomics
    l2_read: NDArray[np.float64]  # [K] sectors
    l2_write: NDArray[np.float64]
    dram_read: NDArray[np.float64]
    dram_write: NDArray[np.float64]

    @property
    def instructions(self) -> float:
        """Of all resident warps."""
        return self.warps * self.profile.instructions


def core_of(inputs: ModelInputs, *, gap: int, drain: bool = False, method: str = "clustering") -> Core:
    """Collect the inputs, run the interval algorithm on all paths, choose the representative warp."""
    if not inputs.instructions:
        raise DoesNotApply("the warps issue no instruction")
    profiles = profiles_of(inputs, gap, drain)
    chosen, path = _chosen(inputs, profiles, method)
    profile, cost = profiles[path], inputs.latencies
    op = inputs.program.entry_op[inputs.program.path_start[path] : inputs.program.path_start[path + 1]]
    starts = profile.first - inputs.program.path_start[path]

    def by_interval(values: NDArray[np.float64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = np.add.reduceat(values[op], starts)
        return found

    schedulers = inputs.gpu.sm.schedulers
    return Core(
        warps=inputs.resident_warps,
        scheduler_warps=-(-inputs.resident_warps // schedulers),
        schedulers=schedulers,
        rate=inputs.gpu.sm.issue_width,
        chosen=chosen,
        profile=profile,
        fetched=by_interval(cost.fetched_lines),
        waiting=by_interval(cost.may_miss),
        memory=by_interval(cost.share.sum(axis=1)),
        l2_read=by_interval(cost.l2_read),
        l2_write=by_interval(cost.l2_write),
        dram_read=by_interval(cost.dram_read),
        dram_write=by_interval(cost.dram_write),
    )


def profiles_of(inputs: ModelInputs, gap: int, drain: bool) -> Profiles:
    """The interval profiles of all paths with the latencies that the caches of these inputs give."""
    hold = next_entry_holds(inputs.program).astype(np.float64)
    return interval_profiles(inputs.program, inputs.producers, inputs.latencies.latency, hold, gap=gap, drain=drain)


def _chosen(inputs: ModelInputs, profiles: Profiles, method: str) -> tuple[Representative, int]:
    """The representative among the paths that warps run, in the order of their first warps; and its path."""
    paths, first, count = np.unique(inputs.program.warp_path, return_index=True, return_counts=True)
    order = np.argsort(first)
    paths, count = paths[order], count[order]
    insts, stall = (total[paths] for total in profiles.totals())
    perf = insts / np.maximum(insts / inputs.gpu.sm.issue_width + stall, 1e-300)
    chosen = representative(perf, insts, count.astype(np.float64), method=method)
    path = int(paths[chosen.index])
    if not insts[chosen.index]:
        path = int(paths[np.argmax(insts)])
    return chosen, path


def multithreaded(core: Core, policy: str, literal: bool) -> tuple[Multithreading, float]:
    """Eqs. 7-16 for one scheduler; and the CPI of the SM, at least what issuing takes."""
    model = multithreading(core.profile, core.scheduler_warps, policy, core.rate, literal)
    cycles = max(model.cycles, model.instructions / core.rate)
    return model, cycles / core.instructions


def dram_request(inputs: ModelInputs) -> tuple[float, float]:
    """Sectors of one request to DRAM, a sector of the L2; and the cycles in which the chip's DRAM serves it."""
    gpu, sector = inputs.gpu, inputs.program.sector_bytes
    size = max(min(gpu.l2.sector, inputs.program.line_bytes), sector)
    return size / sector, size / (gpu.dram_bytes_per_cycle * gpu.dram.efficiency)


@dataclass(frozen=True)
class Delays:
    """Cycles of contention in each interval."""

    mshr: NDArray[np.float64]
    queue: NDArray[np.float64]
    mshr_terms: MshrDelay | None = None
    queue_terms: BandwidthDelay | None = None


def contention(inputs: ModelInputs, core: Core, literal: bool) -> Delays:
    """Eqs. 18-23. An instruction that the L1 answers does not wait for an MSHR; as printed, every one does."""
    requests = core.fetched * core.warps
    insts = core.memory if literal else core.waiting
    mshr = mshr_delay(requests, inputs.gpu.l1.mshrs, inputs.latencies.miss_latency, insts)
    cycles = core.profile.insts / core.rate + core.profile.stall
    sectors, service = dram_request(inputs)
    dram = (core.dram_read + core.dram_write) * core.warps / sectors
    queue = bandwidth_delay(dram, inputs.active_sms, cycles, service)
    return Delays(mshr.delay, queue.delay, mshr, queue)


def mdm_contention(inputs: ModelInputs, core: Core) -> Delays:
    """The contention of MDM in place of Eqs. 18-23."""
    found = mdm_of(inputs, core, core.warps)
    return Delays(found.mshr, found.queue_noc + found.queue_dram)


def warp_stack(profile: Profile, share: NDArray[np.float64], rate: float) -> dict[str, float]:
    """CPI of the warp alone by cause (section VII): stalls on memory are split as the levels answer. share [O, 4]."""
    waits = profile.cause >= 0
    cause, stall = profile.cause[waits], profile.stall[waits]
    by_level = stall @ share[cause] if len(cause) else np.zeros(len(LEVELS))
    parts = {"L1": by_level[L1], "L2": by_level[L2], "DRAM": by_level[DRAM]}
    other = float(profile.stall.sum()) - float(by_level.sum())
    stack = {"BASE": profile.instructions / rate, "DEP": max(other, 0.0), **parts}
    return {name: float(cycles) / profile.instructions for name, cycles in stack.items()}


def cpi_stack(alone: dict[str, float], cpi: float, mshr: float, queue: float) -> tuple[tuple[str, float], ...]:
    """`alone` shrunk to the multithreaded `cpi`, and the two queues (section VII)."""
    shrink = cpi / sum(alone.values())
    return (*((name, share * shrink) for name, share in alone.items()), ("MSHR", mshr), ("QUEUE", queue))
