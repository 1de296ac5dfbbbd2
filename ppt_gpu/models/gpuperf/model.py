"""GPUPerf as one of the analytical models: from a launch to its estimate, with its potential benefits.

GPUPerf's potential benefits: how many cycles better code could save of each kind (Sim et al. 2012, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.models.base.floors import Raised, raised
from ppt_gpu.models.base.model import Estimate, Model, Options, answer
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.steps import Step, Steps
from ppt_gpu.models.gpuperf.counts import gpuperf_inputs
from ppt_gpu.models.gpuperf.gpuperf import GpuPerf, gpuperf


@dataclass(frozen=True)
class Benefits:
    """Cycles of the launch that could be saved, at most, by removing one cause each; they overlap."""

    itilp: float  # more parallelism among instructions
    serial: float  # no synchronisation, divergence, bank conflicts or shortage of special function units
    fp: float  # nothing but the floating-point instructions
    memlp: float  # as many memory requests under way as the bandwidth allows
    steps: tuple[Step, ...]

    @property
    def largest(self) -> str:
        """The name of the largest: "itilp", "serial", "fp" or "memlp"."""
        return max(("memlp", "itilp", "serial", "fp"), key=lambda name: getattr(self, name))


def potential_benefits(found: GpuPerf) -> Benefits:
    """The four metrics; a launch whose inputs name no floating-point latency has T_fp = 0."""
    given, steps = found.given, Steps()
    for symbol in ("W_parallel", "W_serial", "T_comp", "T_mem", "T_overlap", "ITILP", "ITILP_max", "MWP_peak_bw",
                   "AMAT"):  # fmt: skip
        steps.given(symbol, found[symbol])
    for symbol, value in (
        ("insts", given.insts),
        ("FP_insts", given.fp_insts),
        ("FP_lat", given.fp_lat),
        ("mem_insts", given.mem_insts),
        ("avg_inst_lat", given.avg_inst_lat),
        ("total_warps", given.total_warps),
        ("active_SMs", given.active_sms),
    ):
        steps.given(symbol, value)
    least = given.insts * given.sm_warps * given.avg_inst_lat / found["ITILP_max"]
    itilp = steps(
        "B_itilp",
        "max({W_parallel} - {insts} x {total_warps} x {avg_inst_lat} / ({active_SMs} x {ITILP_max}), 0)",
        max(found["W_parallel"] - least, 0.0),
        unit="cycles",
    )
    serial = steps("B_serial", "{W_serial}", found["W_serial"], unit="cycles")
    t_fp = steps(
        "T_fp",
        "{FP_insts} x {total_warps} x {FP_lat} / ({active_SMs} x {ITILP})",
        given.fp_insts * given.sm_warps * given.fp_lat / found["ITILP"],
        unit="cycles",
    )
    fp = steps("B_fp", "max({T_comp} - {T_fp}, 0)", max(found["T_comp"] - t_fp, 0.0), unit="cycles")
    exposed = steps("T'_mem", "{T_mem} - {T_overlap}", found["T_mem"] - found["T_overlap"], unit="cycles")
    ideal = steps(
        "T_mem_min",
        "{mem_insts} x {total_warps} x {AMAT} / ({active_SMs} x {MWP_peak_bw})",
        given.mem_insts * given.sm_warps * found["AMAT"] / found["MWP_peak_bw"],
        unit="cycles",
    )
    memlp = steps("B_memlp", "max({T'_mem} - {T_mem_min}, 0)", max(exposed - ideal, 0.0), unit="cycles")
    return Benefits(itilp, serial, fp, memlp, tuple(steps.all))


_ADVICE = {
    "itilp": "more parallel instructions",
    "serial": "no synchronisation, bank conflicts and shortage of special function units",
    "fp": "nothing but floating-point instructions",
    "memlp": "more memory requests under way",
}


class GpuPerfModel(Model):
    """Equations 1 to 17 and A.1 to A.7, then the four potential benefits."""

    name = "gpuperf"
    title = "GPUPerf"
    source = "Sim, Dasgupta, Kim and Vuduc, PPoPP 2012, Eq 1 to 17 and A.1 to A.7"

    def estimate(self, inputs: ModelInputs, options: Options) -> Estimate:
        given, notes = gpuperf_inputs(inputs)
        found = gpuperf(given)
        benefits = potential_benefits(found)
        steps = [*found.steps, *(step for step in benefits.steps if step.numbers)]
        notes = (*notes, *barrier_note(found), *_benefit_notes(benefits))
        return estimate_of(self, inputs, options, found, steps, notes)


def estimate_of(
    model: Model, inputs: ModelInputs, options: Options, found: GpuPerf, steps: list[Step], notes: tuple[str, ...]
) -> Estimate:
    """The estimate of a model made of GPUPerf's equations, at least its floors, with its CPI by cause."""
    last = Steps()
    final = Raised(found.cycles, 0.0, ()) if options.literal else raised(inputs, found.cycles, last)
    stack: tuple[tuple[str, float], ...] = ()
    if inputs.sm_instructions:
        parts = (*parts_of(found), ("floor", final.by)) if final.by else parts_of(found)
        stack = tuple((name, cycles / inputs.sm_instructions) for name, cycles in parts)
    all_notes = (*notes, *final.notes)
    return answer(model, inputs, final.cycles, limiter_of(found), [*steps, *last.all], stack=stack, notes=all_notes)


def parts_of(found: GpuPerf) -> tuple[tuple[str, float], ...]:
    """T_exec by cause, cycles: parallel and serial computation, and memory that computation does not hide."""
    return (
        ("computation", found["W_parallel"]),
        ("serialisation", found["W_serial"]),
        ("memory", found["T_mem"] - found["T_overlap"]),
    )


def limiter_of(found: GpuPerf) -> str:
    """The largest part of T_exec."""
    name, cycles = max(parts_of(found), key=lambda part: part[1])
    return f"{name}: {cycles / found.cycles:.0%} of the time" if found.cycles else "nothing"


def barrier_note(found: GpuPerf) -> tuple[str, ...]:
    """What counting barriers by block would yield; the specification calls Eq 7 weakly grounded."""
    if not found["O_sync"]:
        return ()
    other = gpuperf(found.given, sync_count="block")
    return (f"Eq 7 counts a barrier once a warp; once a block, the estimate is {other.cycles:,.0f} cycles",)


def _benefit_notes(benefits: Benefits) -> tuple[str, ...]:
    worth = getattr(benefits, benefits.largest)
    return (f"largest potential benefit: {worth:,.0f} cycles, by {_ADVICE[benefits.largest]}",) if worth else ()
