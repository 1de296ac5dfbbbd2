"""GPUMech and its baselines: performance of a kernel from the intervals of one warp (paper 000).

The models of the paper's Table II, each adding one part to the one before: Naive_Interval, Markov_Chain, MT, MT_MSHR,
MT_MSHR_BAND, which is GPUMech. Per scheduler run as many warps as it holds, per SM as many schedulers as it has; the
paper's core has one. Delays of the SM's queues are divided by the instructions of all its warps: the paper's Eq. 17
divides by those of one, which does not fit the sum with Eq. 7 (docs/models.md).

The Markov chain model of a multithreaded core (Chen and Aamodt, HPCA 2009; as GPUMech, paper 000, compares it).

A thread that issues is suspended with probability p, a suspended one wakes in a cycle with probability 1 / M. The state
of N threads is how many are suspended; while one is active, one instruction issues. (GPUMech's section VIII describes
one thread; the chain of N follows from it.)
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.models.base.model import MODEL_POLICIES, Estimate, Model, Options, answer
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.steps import Steps
from ppt_gpu.models.base.warp_streams import DoesNotApply
from ppt_gpu.models.gpumech.gpumech_core import (
    Core,
    Delays,
    contention,
    core_of,
    cpi_stack,
    mdm_contention,
    multithreaded,
    naive_ipc,
    warp_stack,
)
from ppt_gpu.models.gpumech.interval import Profile


def transitions(threads: int, suspend: float, suspended: float) -> NDArray[np.float64]:
    """[N+1, N+1] probabilities from state to state. suspended: cycles M that a thread is suspended, at least 1."""
    wake = 1.0 / suspended
    chain = np.zeros((threads + 1, threads + 1))
    for state in range(threads + 1):
        for woken in range(state + 1):
            chance = comb(state, woken) * wake**woken * (1.0 - wake) ** (state - woken)
            if state < threads:
                chain[state, state - woken + 1] += suspend * chance
                chain[state, state - woken] += (1.0 - suspend) * chance
            else:
                chain[state, state - woken] += chance
    return chain


def markov_ipc(threads: int, suspend: float, suspended: float) -> float:
    """Instructions per cycle: the probability that not all N threads are suspended, in the stationary state."""
    if suspend <= 0.0:
        return 1.0
    chain = transitions(threads, min(suspend, 1.0), max(suspended, 1.0))
    # pi (chain - 1) = 0 and sum(pi) = 1; one equation of the first is redundant.
    system = (chain - np.eye(threads + 1)).T
    system[0] = 1.0
    stationary = np.linalg.solve(system, np.eye(threads + 1)[0])
    return float(np.clip(stationary[:-1].sum(), 0.0, 1.0))


def markov_rates(profile: Profile) -> tuple[float, float]:
    """p and M of a warp: stalls by instructions, and their mean length in cycles (0, 1 when it never stalls)."""
    stalls = profile.stall[profile.stall > 0]
    if not len(stalls) or not profile.instructions:
        return 0.0, 1.0
    return len(stalls) / profile.instructions, max(float(stalls.mean()), 1.0)


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


class IntervalModel(Model):
    """What the models of Table II share. A subclass says which queues it has."""

    source = "Huang, Lee, Kim, Lee, IISWC 2014"
    mshrs = bandwidth = mdm = False

    def __init__(self, method: str = "clustering", drain: bool = False) -> None:
        """method: how the representative warp is chosen (ppt_gpu.models.gpumech.representative.METHODS)."""
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
