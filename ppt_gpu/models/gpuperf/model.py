"""GPUPerf as one of the analytical models: from a launch to its estimate, with its potential benefits."""

from __future__ import annotations

from ppt_gpu.models.base.floors import Raised, raised
from ppt_gpu.models.base.model import Estimate, Model, Options, answer
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.steps import Step, Steps
from ppt_gpu.models.gpuperf.benefit import Benefits, potential_benefits
from ppt_gpu.models.gpuperf.counts import gpuperf_inputs
from ppt_gpu.models.gpuperf.gpuperf import GpuPerf, gpuperf

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
