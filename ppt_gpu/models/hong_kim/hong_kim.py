"""Hong and Kim's MWP-CWP model (ISCA 2009): equations 2 to 31, one after another, from numbers to cycles.

S. Hong, H. Kim: An Analytical Model for a GPU Architecture with Memory-level and Thread-level Parallelism Awareness.
Names and equation numbers are the paper's. MWP: warps whose memory requests an SM serves at once; CWP: warps that it
computes during one of them, plus one. Where the print cannot be meant, the default departs from it and `literal`
follows it:

* the guard of Eq 23 also asks for Comp_cycles > Mem_cycles, against the paper's own Case 5 (Figure 7): dropped;
* Eq 29 has the independent requests in the numerator, which leaves dependent code without warps: #mem_req instead;
* below one warp, which little bandwidth can make of MWP, the computation periods of Eq 22 and 23 would shorten the
  time: MWP - 1 is 0 then;
* Eq 30 means to raise MWP above N, which Eq 17 has cut off at N before: Eq 17 takes N_pw too, and so do Eq 22 and its
  guard, in the form of Eq 4 (equal to Eq 22 where MWP is N).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ppt_gpu.models.base.steps import Step, Steps
from ppt_gpu.models.hong_kim.inputs import HongKimInputs, record_inputs
from ppt_gpu.models.hong_kim.parallelism import Memory, computation_warps, memory_terms, memory_warps

#: relative difference up to which two values count as equal
SAME = 1e-9


@dataclass(frozen=True)
class HongKim:
    """Every term of the model. Cycles are those of the SM clock."""

    steps: tuple[Step, ...]
    case: str  # "eq22", "eq23", "eq24" or "no memory"

    def __getitem__(self, symbol: str) -> float:
        """The last value of one of the paper's symbols. KeyError when the inputs did not ask for it."""
        return {step.symbol: step.value for step in self.steps}[symbol]

    @property
    def cycles(self) -> float:
        """Exec_cycles_with_synch, Eq 28."""
        return self["Exec_cycles_with_synch"]


def hong_kim(given: HongKimInputs, *, literal: bool = False, mwp_digits: int | None = None) -> HongKim:
    """The model, Eq 2 to 31. `mwp_digits` rounds MWP as Table 2 of the paper does. Raises PptError for bad inputs."""
    steps = Steps()
    case, _ = _evaluate(given, steps, literal, mwp_digits)
    return HongKim(tuple(steps.all), case)


def hong_kim_cycles(given: HongKimInputs) -> float:
    """`hong_kim(...).cycles` alone, without writing the equations down: for fits."""
    return _evaluate(given, NoSteps(), False, None)[1]


class NoSteps(Steps):
    """Calculates and records nothing."""

    def __call__(self, symbol: str, equation: str, value: float, *, number: str = "", unit: str = "") -> float:
        return value

    def given(self, symbol: str, value: float, meaning: str = "", *, unit: str = "") -> float:
        return value


def _evaluate(given: HongKimInputs, steps: Steps, literal: bool, mwp_digits: int | None) -> tuple[str, float]:
    """The case that applies, and the cycles."""
    record_inputs(steps, given)
    n = _warps(steps, given)
    comp = _computation(steps, given)
    rep = steps(
        "#Rep",
        "{#Blocks} / ({#Active_blocks_per_SM} x {#Active_SMs})",
        given.blocks / (given.active_blocks_per_sm * given.active_sms),
        number="(21)",
    )
    case, app, sync = "no memory", comp * n * rep, 0.0
    if given.mem_insts == 0:
        steps("Exec_cycles_app", "{Comp_cycles} x {N} x {#Rep}", app, unit="cycles")
    else:
        memory = memory_terms(steps, given)
        mwp = memory_warps(steps, given, memory, n, literal)
        if mwp_digits is not None:
            mwp = steps("MWP", f"round({{MWP}}, {mwp_digits})", round(mwp, mwp_digits), unit="warps")
        cwp = computation_warps(steps, n, comp, memory.cycles)
        case = _case(mwp, cwp, n, comp, memory.cycles, literal)
        app = _execution(steps, _Terms(memory, n, mwp, comp, rep), given.mem_insts, case)
        sync = _synchronisation(steps, given, memory.departure, mwp, rep)
    _totals(steps, given, app, sync)
    return case, app + sync


def _warps(steps: Steps, given: HongKimInputs) -> int:
    per_block = given.warps_per_block
    steps("#Active_warps_per_block", "ceil({#Threads_per_block} / {#Threads_per_warp})", per_block, unit="warps")
    equation = "{#Active_blocks_per_SM} x {#Active_warps_per_block}"
    steps("N", equation, given.active_blocks_per_sm * per_block, number="(20)", unit="warps")
    return given.active_blocks_per_sm * per_block


def _computation(steps: Steps, given: HongKimInputs) -> float:
    steps("#Mem_insts", "{#Uncoal_Mem_insts} + {#Coal_Mem_insts}", given.mem_insts)
    total = steps("#total_insts", "{#Comp_insts} + {#Mem_insts}", given.total_insts)
    if given.m_factor == 1:
        equation, number = "{Issue_cycles} x {#total_insts}", "(19)"
    else:
        equation, number = "({Issue_cycles} x {M_Factor}) x {#total_insts}", "(31)"
    cycles = given.issue_cycles * given.m_factor * total
    return steps("Comp_cycles", equation, cycles, number=number, unit="cycles")


def _case(mwp: float, cwp: float, n: float, comp: float, memory: float, literal: bool) -> str:
    as_many = math.isclose(mwp, n, rel_tol=SAME) or (mwp > n and not literal)
    if as_many and math.isclose(cwp, n, rel_tol=SAME):
        return "eq22"
    if cwp >= mwp * (1 - SAME) or (literal and comp > memory):
        return "eq23"
    return "eq24"


@dataclass(frozen=True)
class _Terms:
    memory: Memory
    n: float
    mwp: float
    comp: float
    rep: float


def _execution(steps: Steps, terms: _Terms, mem_insts: float, case: str) -> float:
    """Eq 2, then 22, 23 or 24."""
    memory, n, mwp, comp, rep = terms.memory, terms.n, terms.mwp, terms.comp, terms.rep
    period = steps("Comp_p", "{Comp_cycles} / {#Mem_insts}", comp / mem_insts, number="(2)", unit="cycles")
    if case == "eq22" and mwp > n * (1 + SAME):
        # Eq 22 is Eq 4 with MWP = N; independent requests shorten the memory periods only.
        number = "(22)"
        equation = "({Mem_cycles} x {N} / {MWP} + {Comp_cycles} + {Comp_p} x max({MWP} - 1, 0)) x {#Rep}"
        cycles = (memory.cycles * n / mwp + comp + period * max(mwp - 1, 0.0)) * rep
    elif case == "eq22":
        number, equation = "(22)", "({Mem_cycles} + {Comp_cycles} + {Comp_p} x max({MWP} - 1, 0)) x {#Rep}"
        cycles = (memory.cycles + comp + period * max(mwp - 1, 0.0)) * rep
    elif case == "eq23":
        number, equation = "(23)", "({Mem_cycles} x {N} / {MWP} + {Comp_p} x max({MWP} - 1, 0)) x {#Rep}"
        cycles = (memory.cycles * n / mwp + period * max(mwp - 1, 0.0)) * rep
    else:
        number, equation = "(24)", "({Mem_L} + {Comp_cycles} x {N}) x {#Rep}"
        cycles = (memory.latency + comp * n) * rep
    return steps("Exec_cycles_app", equation, cycles, number=number, unit="cycles")


def _synchronisation(steps: Steps, given: HongKimInputs, departure: float, mwp: float, rep: float) -> float:
    """Eq 27 and 26; less than one warp together costs nothing."""
    together = min(mwp, given.warps_per_block)
    steps("NpWB", "min({MWP}, {#Active_warps_per_block})", together, number="(27)", unit="warps")
    return steps(
        "Synch_cost",
        "{Departure_delay} x max({NpWB} - 1, 0) x {#synch_insts} x {#Active_blocks_per_SM} x {#Rep}",
        departure * max(together - 1, 0.0) * given.synch_insts * given.active_blocks_per_sm * rep,
        number="(26)",
        unit="cycles",
    )


def _totals(steps: Steps, given: HongKimInputs, app: float, sync: float) -> None:
    """Eq 28; Eq 25 without and with synchronisation, where there is an instruction."""
    if given.mem_insts == 0:
        steps("Exec_cycles_with_synch", "{Exec_cycles_app}", app, number="(28)", unit="cycles")
    else:
        steps("Exec_cycles_with_synch", "{Exec_cycles_app} + {Synch_cost}", app + sync, number="(28)", unit="cycles")
    insts = given.total_insts * given.warps_per_block * given.blocks / given.active_sms
    if insts:
        sum_of = "({#total_insts} x {#Active_warps_per_block} x {#Blocks} / {#Active_SMs})"
        steps("CPI_app", f"{{Exec_cycles_app}} / {sum_of}", app / insts, number="(25)")
        steps("CPI_with_synch", f"{{Exec_cycles_with_synch}} / {sum_of}", (app + sync) / insts, number="(25)")
