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

How many warps Hong and Kim's model sees at once: memory latency, MWP and CWP (Eq 5 to 18, 29 and 30).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ppt_gpu.models.base.steps import Step, Steps
from ppt_gpu.models.hong_kim.inputs import HongKimInputs, record_inputs


@dataclass(frozen=True)
class Memory:
    """What the paper calls Mem_L, Departure_delay and Mem_cycles, in cycles."""

    latency: float
    departure: float
    cycles: float


def memory_terms(steps: Steps, given: HongKimInputs) -> Memory:
    """Eq 10 to 15 and 18."""
    uncoal = steps(
        "Mem_L_Uncoal",
        "{Mem_LD} + ({#Uncoal_per_mw} - 1) x {Departure_del_uncoal}",
        given.mem_ld + (given.uncoal_per_mw - 1) * given.dep_uncoal,
        number="(10)",
        unit="cycles",
    )
    coal = steps("Mem_L_Coal", "{Mem_LD}", given.mem_ld, number="(11)", unit="cycles")
    share = steps(
        "Weight_uncoal",
        "{#Uncoal_Mem_insts} / ({#Uncoal_Mem_insts} + {#Coal_Mem_insts})",
        given.uncoal_mem_insts / given.mem_insts,
        number="(13)",
    )
    rest = steps(
        "Weight_coal",
        "{#Coal_Mem_insts} / ({#Coal_Mem_insts} + {#Uncoal_Mem_insts})",
        given.coal_mem_insts / given.mem_insts,
        number="(14)",
    )
    latency = steps(
        "Mem_L",
        "{Mem_L_Uncoal} x {Weight_uncoal} + {Mem_L_Coal} x {Weight_coal}",
        uncoal * share + coal * rest,
        number="(12)",
        unit="cycles",
    )
    departure = steps(
        "Departure_delay",
        "({Departure_del_uncoal} x {#Uncoal_per_mw}) x {Weight_uncoal} + {Departure_del_coal} x {Weight_coal}",
        given.dep_uncoal * given.uncoal_per_mw * share + given.dep_coal * rest,
        number="(15)",
        unit="cycles",
    )
    cycles = steps(
        "Mem_cycles",
        "{Mem_L_Uncoal} x {#Uncoal_Mem_insts} + {Mem_L_Coal} x {#Coal_Mem_insts}",
        uncoal * given.uncoal_mem_insts + coal * given.coal_mem_insts,
        number="(18)",
        unit="cycles",
    )
    return Memory(latency, departure, cycles)


def memory_warps(steps: Steps, given: HongKimInputs, memory: Memory, n: float, literal: bool) -> float:
    """Eq 6, 7, 16 and 17; then Eq 29 and 30 where there are independent requests, else Eq 5."""
    parallel, name, number = n, "N", "(5)"
    if given.ind_mem_req:
        name, number = "N_pw", "(30)"
        top = "#ind_mem_req" if literal else "#Mem_insts"
        parallel = parallel_warps(n, given.mem_insts, given.ind_mem_req, literal=literal)
        equation = f"{{N}} x {{{top}}} / max({{#Mem_insts}} - {{#ind_mem_req}}, 1)"
        steps("N_pw", equation, parallel, number="(29)", unit="warps")
    cap, capped = (n, "N") if literal else (parallel, name)
    if memory.departure:
        full = memory.latency / memory.departure
        steps("MWP_Without_BW_full", "{Mem_L} / {Departure_delay}", full, number="(16)", unit="warps")
        equation = f"min({{MWP_Without_BW_full}}, {{{capped}}})"
        without = steps("MWP_Without_BW", equation, min(full, cap), number="(17)", unit="warps")
    else:  # Eq 16 without a departure delay is no limit
        without = steps("MWP_Without_BW", f"{{{capped}}}", cap, number="(17)", unit="warps")
    each = steps(
        "BW_per_warp",
        "{Freq} x {Load_bytes_per_warp} / {Mem_L}",
        given.freq * given.load_bytes_per_warp / memory.latency,
        number="(7)",
        unit="GB/s",
    )
    peak = steps(
        "MWP_peak_BW",
        "{Mem_Bandwidth} / ({BW_per_warp} x {#Active_SMs})",
        given.mem_bandwidth / (each * given.active_sms),
        number="(6)",
        unit="warps",
    )
    equation = f"min({{MWP_Without_BW}}, {{MWP_peak_BW}}, {{{name}}})"
    return steps("MWP", equation, min(without, peak, parallel), number=number, unit="warps")


def parallel_warps(n: float, requests: float, independent: float, *, literal: bool = False) -> float:
    """N_pw of Eq 29: N times the requests that a warp has under way at once.

    A warp waits at least once, so that at most requests - 1 are independent.
    """
    return n * (independent if literal else requests) / max(requests - independent, 1.0)


def computation_warps(steps: Steps, n: float, comp: float, memory: float) -> float:
    equation = "({Mem_cycles} + {Comp_cycles}) / {Comp_cycles}"
    full = steps("CWP_full", equation, (memory + comp) / comp, number="(8)", unit="warps")
    return steps("CWP", "min({CWP_full}, {N})", min(full, n), number="(9)", unit="warps")


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
