"""GPUMech and its baselines: performance of a kernel from the intervals of one warp (paper 000).

The models of the paper's Table II, each adding one part to the one before: Naive_Interval, Markov_Chain, MT, MT_MSHR,
MT_MSHR_BAND, which is GPUMech. Per scheduler run as many warps as it holds, per SM as many schedulers as it has; the
paper's core has one. Delays of the SM's queues are divided by the instructions of all its warps: the paper's Eq. 17
divides by those of one, which does not fit the sum with Eq. 7 (SPEC section 3.7).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.analytic.cache_outcomes import DRAM, L1, L2, LEVELS
from ppt_gpu.analytic.contention import BandwidthDelay, MshrDelay, bandwidth_delay, mshr_delay
from ppt_gpu.analytic.interval import Profile, Profiles, interval_profiles
from ppt_gpu.analytic.least_latency import next_entry_holds
from ppt_gpu.analytic.markov import markov_ipc, markov_rates
from ppt_gpu.analytic.mdm import MdmDelay, mdm_of
from ppt_gpu.analytic.model import MODEL_POLICIES, Estimate, Model, Options, answer
from ppt_gpu.analytic.model_inputs import DoesNotApply, ModelInputs
from ppt_gpu.analytic.multithreading import Multithreading, multithreading, naive_ipc
from ppt_gpu.analytic.representative import Representative, representative
from ppt_gpu.analytic.steps import Steps

#: categories of the CPI stack (paper 000, Table III), and what each says of a kernel that it is the largest of
CATEGORIES = {
    "BASE": "instruction issue",
    "DEP": "the latency of arithmetic and shared memory",
    "L1": "the latency of L1 hits",
    "L2": "the latency of L2 hits",
    "DRAM": "the latency of DRAM",
    "MSHR": "MSHRs",
    "QUEUE": "DRAM bandwidth",
}


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


def profiles_of(inputs: ModelInputs, gap: int, drain: bool = False) -> Profiles:
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
    mdm_terms: MdmDelay | None = None


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
    return Delays(found.mshr, found.queue_noc + found.queue_dram, mdm_terms=found)


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


class IntervalModel(Model):
    """What the models of Table II share. A subclass says which queues it has."""

    source = "Huang, Lee, Kim, Lee, IISWC 2014"
    mshrs = bandwidth = mdm = False

    def __init__(self, method: str = "clustering", drain: bool = False) -> None:
        """method: how the representative warp is chosen (ppt_gpu.analytic.representative.METHODS)."""
        self.method, self.drain = method, drain
        if method != "clustering":
            self.name = f"{type(self).name}_{method}"

    def core(self, inputs: ModelInputs, options: Options, steps: Steps) -> Core:
        """The representative warp, recorded."""
        # Latencies of a GPU count to the issue of the dependent, so that done + 1 would count a cycle twice.
        core = core_of(inputs, gap=1 if options.literal else 0, drain=self.drain, method=self.method)
        given, profile = steps.given, core.profile
        given("W", core.warps, "warps of the SM", unit="warps")
        given("w", core.scheduler_warps, "warps of its fullest scheduler", unit="warps")
        given("rate", core.rate, "instructions that a scheduler issues in a cycle")
        given("I", profile.instructions, "instructions of the representative warp")
        given("K", len(profile.insts), "its intervals (2), (4)")
        given("S", float(profile.stall.sum()), "its stalls", unit="cycles")
        total = profile.cycles(core.rate)
        steps("T1", "{I} / {rate} + {S}", total, unit="cycles")
        steps("p", "{I} / {T1}", profile.issue_probability(core.rate), number="(9)")
        return core

    def estimate(self, inputs: ModelInputs, options: Options) -> Estimate:
        if options.policy not in ("lrr", "gto"):
            known = ", ".join(MODEL_POLICIES)
            raise DoesNotApply(f"it models round robin and greedy-then-oldest, not '{options.policy}' (of {known})")
        steps = Steps()
        core = self.core(inputs, options, steps)
        mt, cpi_mt = multithreaded(core, options.policy, options.literal)
        other = "p (w - 1) (insts - 1)" if options.policy == "lrr" else "max(avg min(p stall, 1) (w - 1) - stall, 0)"
        numbers = "(10)-(11)" if options.policy == "lrr" else "(12)-(16)"
        steps("N", f"sum of {other}", float(mt.nonoverlapped.sum()), number=numbers)
        steps("T", "{T1} + {N} / {rate}", mt.cycles, number="(8)", unit="cycles")
        steps("CPI_mt", "max({T}, {w} {I} / {rate}) / ({W} {I})", cpi_mt, number="(7)")
        mshr = queue = 0.0
        if self.mshrs or self.bandwidth or self.mdm:
            mshr, queue = self._contended(inputs, core, options.literal, steps)
        alone = warp_stack(core.profile, inputs.latencies.share, core.rate)
        stack = cpi_stack(alone, cpi_mt, mshr, queue)
        cpi = sum(value for _, value in stack)
        steps("CPI", "{CPI_mt} + {CPI_mshr} + {CPI_queue}" if mshr or queue else "{CPI_mt}", cpi, number="(3)")
        limit = max(stack, key=lambda item: item[1])[0]
        return answer(self, inputs, cpi * inputs.sm_instructions, CATEGORIES[limit], steps.all, stack=stack)

    def _contended(self, inputs: ModelInputs, core: Core, literal: bool, steps: Steps) -> tuple[float, float]:
        """CPI of the two queues."""
        delays = mdm_contention(inputs, core) if self.mdm else contention(inputs, core, literal)
        _record(delays, inputs, core, steps)
        one = literal and not self.mdm  # MDM states its delays for all warps
        by, divisor = ("{I}", core.profile.instructions) if one else ("({W} {I})", core.instructions)
        mshr = steps("D_mshr", "sum of MSHR_delay", float(delays.mshr.sum()), number="(20)", unit="cycles")
        cpi_mshr = steps("CPI_mshr", f"{{D_mshr}} / {by}", mshr / divisor, number="(17)")
        if not (self.bandwidth or self.mdm):
            steps.given("CPI_queue", 0.0, "not modelled")
            return cpi_mshr, 0.0
        queue = steps("D_queue", "sum of Bandwidth_delay", float(delays.queue.sum()), number="(21)", unit="cycles")
        return cpi_mshr, steps("CPI_queue", f"{{D_queue}} / {by}", queue / divisor, number="(17)")


def _record(delays: Delays, inputs: ModelInputs, core: Core, steps: Steps) -> None:
    """The terms of the interval with the longest delay."""
    worst = int(np.argmax(delays.mshr + delays.queue))
    steps.given("MSHR", inputs.gpu.l1.mshrs, "entries")
    steps.given("L", inputs.latencies.miss_latency, "mean latency of what the L1 does not answer", unit="cycles")
    if delays.mshr_terms is None or delays.queue_terms is None:
        return
    steps.given("worst", worst, "the interval with the longest delays, of which the next terms are")
    steps.given("reqs", float(core.fetched[worst]), "its requests that hold an MSHR, of one warp")
    requests = float(core.fetched[worst]) * core.warps
    steps("core_reqs", "{reqs} {W}", requests, number="(18)")
    steps("avg", "mean of ceil(j / {MSHR}), j = 1 ... {core_reqs}", float(delays.mshr_terms.batches[worst]))
    steps("queueing", "{L} ({avg} - 1)", float(delays.mshr_terms.queueing[worst]), number="(19)", unit="cycles")
    terms = delays.queue_terms
    steps.given("s", terms.service, "service time of a request at the DRAM", unit="cycles")
    steps.given("lambda", float(terms.arrivals[worst]), "(23) requests of all cores a cycle")
    steps("rho", "{lambda} {s}", float(terms.utilisation[worst]), number="(22)")
    steps(
        "delay", "min(lambda s^2 / (2 (1 - rho)), cap), the cap for rho >= 1", float(terms.delay[worst]), number="(21)"
    )


class Mt(IntervalModel):
    name, title = "mt", "MT: GPUMech's multithreading alone"


class MtMshr(IntervalModel):
    name, title, mshrs = "mt_mshr", "MT_MSHR: multithreading and MSHRs", True


class GpuMech(IntervalModel):
    name, title, mshrs, bandwidth = (
        "gpumech",
        "GPUMech (MT_MSHR_BAND): multithreading, MSHRs, DRAM bandwidth",
        True,
        True,
    )


class GpuMechMdm(IntervalModel):
    name, title, mdm = "gpumech_mdm", "GPUMech with MDM's contention", True
    source = "Huang et al., IISWC 2014; Wang, Jahre, Adileh, Eeckhout, MICRO 2020"


class NaiveInterval(IntervalModel):
    name, title = "naive_interval", "Naive_Interval: every other warp hides stalls"

    def estimate(self, inputs: ModelInputs, options: Options) -> Estimate:
        steps = Steps()
        core = self.core(inputs, options, steps)
        ipc = naive_ipc(core.profile, core.scheduler_warps, core.rate)
        steps("IPC", "min({w} {p}, {rate})", ipc, number="(1)")
        return _from_ipc(self, inputs, core, ipc, steps)


class MarkovChain(IntervalModel):
    name, title = "markov_chain", "Markov_Chain: threads suspended at random"
    source = "Chen, Aamodt, HPCA 2009; Huang et al., IISWC 2014, section VIII"

    def estimate(self, inputs: ModelInputs, options: Options) -> Estimate:
        steps = Steps()
        core = self.core(inputs, options, steps)
        suspend, suspended = markov_rates(core.profile)
        steps.given("q", suspend, "probability that a thread that issues is suspended: stalls by instructions")
        steps.given("M", suspended, "mean stall", unit="cycles")
        ipc = markov_ipc(core.scheduler_warps, suspend, suspended) * core.rate
        steps("IPC", "{rate} (1 - P(all {w} threads suspended))", ipc)
        return _from_ipc(self, inputs, core, ipc, steps)


def _from_ipc(model: Model, inputs: ModelInputs, core: Core, ipc: float, steps: Steps) -> Estimate:
    """ipc: of one scheduler with the most warps."""
    cycles = core.scheduler_warps * core.profile.instructions / ipc
    cpi = steps("CPI", "{w} {I} / {IPC} / ({W} {I})", cycles / core.instructions)
    limit = "instruction issue" if ipc >= 0.99 * core.rate else "latency"
    return answer(model, inputs, cpi * inputs.sm_instructions, limit, steps.all)
