"""Memory in the S-core model: what caches add to the latency of loads, and what stalls the core (Blem, section 4.2.1).

Out of order, misses that the next cache serves are long operations; only those of the last cache stall, once a window.
In order, every miss stalls. TLB misses stall both.
"""

from __future__ import annotations

from ppt_gpu.models.base.steps import Steps
from ppt_gpu.multicore.base.core import SCore
from ppt_gpu.multicore.core_models.s_inputs import SInputs


def load_latency(inputs: SInputs, core: SCore, steps: Steps) -> float:
    """Mean latency of a load, cycles: that of the L1, out of order with the caches behind it (as Eq 3.3)."""
    t1 = steps.given("t_L1", core.l1.latency, "load to use in the L1", unit="cycles")
    if not core.out_of_order:
        return t1
    steps.given("t_L2", core.l2.latency, "in the L2", unit="cycles")
    m1 = _share("m_L1", "N_mL1 / loads and stores", inputs.N_mL1, inputs.accesses, steps)
    latency, text = t1 + m1 * (core.l2.latency - t1), "{t_L1} + {m_L1} x ({t_L2} - {t_L1})"
    if core.l3 is not None:
        steps.given("t_L3", core.l3.latency, "in the L3", unit="cycles")
        m2 = _share("m_L2", "N_mL2 / N_mL1", inputs.N_mL2, inputs.N_mL1, steps)
        latency += m1 * m2 * (core.l3.latency - core.l2.latency)
        text += " + {m_L1} x {m_L2} x ({t_L3} - {t_L2})"
    return steps("t_load", text, latency, unit="cycles")


def _share(symbol: str, equation: str, part: float, whole: float, steps: Steps) -> float:
    """part / whole, at most 1: prefetches count as misses of a cache behind the one that asked."""
    return steps(symbol, f"min(1, {equation})", min(1.0, part / whole) if whole else 0.0)


def memory_time(inputs: SInputs, core: SCore, steps: Steps) -> dict[str, float]:
    """T_memory in parts, cycles."""
    parts: dict[str, float] = {}
    t_mem = steps.given("t_mem", core.memory_cycles, f"{core.memory_latency * 1e9:g} ns", unit="cycles")
    if core.out_of_order:
        last = inputs.N_mL3 if core.l3 else inputs.N_mL2
        stalls = _isolated(inputs, core, last, steps)
        parts["memory"] = steps("T_miss", "{N_isolated} x {t_mem}", stalls * t_mem, unit="cycles")
    else:
        steps.given("t_L2", core.l2.latency, "in the L2", unit="cycles")
        steps.given("N_mL1", inputs.N_mL1, "L1 misses")
        steps.given("N_mL2", inputs.N_mL2, "L2 misses")
        parts["L2"] = steps("T_L2", "{N_mL1} x {t_L2}", inputs.N_mL1 * core.l2.latency, unit="cycles")
        last, beyond, symbol = inputs.N_mL2, 0.0, "N_mL2"
        if core.l3 is not None:
            beyond = inputs.N_mL2 * core.l3.latency
            last, symbol = inputs.N_mL3, "N_mL3"
            steps.given("N_mL3", last, "L3 misses")
        parts["memory"] = steps("T_miss", f"{{{symbol}}} x {{t_mem}}", last * t_mem + beyond, unit="cycles")
    steps.given("N_mITLB", inputs.N_mITLB, "instruction TLB misses")
    steps.given("N_mDTLB", inputs.N_mDTLB, "data TLB misses")
    walks = inputs.N_mITLB * core.itlb_latency + inputs.N_mDTLB * core.dtlb_latency
    text = f"{{N_mITLB}} x {core.itlb_latency:g} + {{N_mDTLB}} x {core.dtlb_latency:g}"
    parts["TLB"] = steps("T_TLB", text, walks, unit="cycles")
    return parts


def misses_together(inputs: SInputs, core: SCore, misses: float) -> float:
    """Misses that one window holds where they lie evenly over the run: 1 to as many as the core keeps in flight."""
    return min(max(1.0, core.window * misses / inputs.operations), core.outstanding_misses)


def _isolated(inputs: SInputs, core: SCore, misses: float, steps: Steps) -> float:
    """Misses of the last cache that no other one hides: measured, or those of one window counted once.

    The latter are Eyerman's m*(W), for misses that lie evenly over the run.
    """
    steps.given("N_m", misses, "misses of the last cache")
    if inputs.N_mL3_o is not None:
        steps.given("N_mL3.o", inputs.N_mL3_o, "of which overlapped")
        return steps("N_isolated", "{N_m} - {N_mL3.o}", max(misses - inputs.N_mL3_o, 0.0))
    steps.given("W", core.window, "window")
    steps.given("N", inputs.operations, "operations")
    steps.given("in flight", core.outstanding_misses, "at most")
    together = misses_together(inputs, core, misses)
    steps("MLP", "min(max(1, {W} x {N_m} / {N}), {in flight})", together)
    return steps("N_isolated", "{N_m} / {MLP}", misses / together)
