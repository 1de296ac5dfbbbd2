"""Hong and Kim's MWP-CWP model as one of the analytical models: from a launch to its estimate."""

from __future__ import annotations

from ppt_gpu.models.base.floors import Raised, raised
from ppt_gpu.models.base.model import Estimate, Model, Options, answer
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.steps import Steps
from ppt_gpu.models.hong_kim.counts import hong_kim_inputs
from ppt_gpu.models.hong_kim.hong_kim import HongKim, hong_kim

_LIMITERS = {
    "no memory": "computation: no access leaves the SM",
    "eq22": "too few warps: MWP and CWP are N",
    "eq23": "memory: CWP is at least MWP",
    "eq24": "computation: MWP is above CWP",
}


class HongKimModel(Model):
    """Equations 2 to 31, with coalescing detected from the addresses."""

    name = "hong-kim"
    title = "Hong and Kim's MWP-CWP model"
    source = "Hong and Kim, ISCA 2009, Eq 2 to 31 and appendix"

    def estimate(self, inputs: ModelInputs, options: Options) -> Estimate:
        given, notes = hong_kim_inputs(inputs, literal=options.literal)
        found = hong_kim(given, literal=options.literal)
        last = Steps()
        final = Raised(found.cycles, 0.0, ()) if options.literal else raised(inputs, found.cycles, last)
        steps = [*found.steps, *last.all]
        return answer(self, inputs, final.cycles, limiter_of(found), steps, notes=(*notes, *final.notes))


def limiter_of(found: HongKim) -> str:
    """What the case that applied says, and for memory which of the three limits MWP."""
    text = _LIMITERS[found.case]
    if found.case != "eq23":
        return text
    limits = {
        found["MWP_peak_BW"]: "DRAM bandwidth",
        found["MWP_Without_BW"]: "departure delay" if found["MWP_Without_BW"] < found["N"] else "warps",
    }
    return f"{text}, which {limits[min(limits)]} limits"
