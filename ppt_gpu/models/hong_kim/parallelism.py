"""How many warps Hong and Kim's model sees at once: memory latency, MWP and CWP (Eq 5 to 18, 29 and 30)."""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.models.base.steps import Steps
from ppt_gpu.models.hong_kim.inputs import HongKimInputs


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
