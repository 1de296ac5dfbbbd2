"""The errors that Blem's dissertation found for each kind of prediction (chapters 4 and 5), to be shown with ours.

Errors are those of speedups: (predicted - measured) / measured. A program whose speedup is predicted e too high takes
1 + e times as long as predicted.
"""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.multicore.base.core import SCore
from ppt_gpu.spec.gpu import Gpu


@dataclass(frozen=True)
class Accuracy:
    """Errors over the benchmarks of a suite; None where the text does not say."""

    kind: str
    source: str
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    mean_absolute: float | None = None
    note: str = ""

    def times(self, predicted: float) -> tuple[float, float] | None:
        """Between which times the measured one lay, had it been one of those benchmarks; None without a range."""
        if self.low is None or self.high is None:
            return None
        return predicted * max(0.0, 1 + self.low), predicted * (1 + self.high)


CUSTOM_S = {
    "a8": Accuracy(
        "A8 from its own counters", "Fig 4.7", 0.41, 3.62, 1.29, 1.29,
        "errors of cycles; whole applications, with accesses to a slow card that are not modelled",
    ),
    "atom": Accuracy("Atom from its own counters", "section 4.3.1", mean=1.0, note="2x too fast on average"),
    "xeon": Accuracy("Xeon from its own counters", "Fig 4.9", -0.16, 1.27, 0.36, 0.44),
    "sandybridge": Accuracy("Sandybridge from its own counters", "Fig 4.10", -0.53, 1.14, 0.29, 0.49),
}  # fmt: skip
CUSTOM_M = {
    "pre-Fermi": Accuracy("pre-Fermi GPU from its own counts", "Fig 4.12", -0.42, 2.53, mean_absolute=0.68),
    "Kepler": Accuracy(
        "Kepler GPU from its own counts", "Fig 4.13 and section 4.3.2", -0.46, 6.53, mean_absolute=1.27,
        note="-29 % to 29 % where the GPU was faster",
    ),
}  # fmt: skip
S_TO_M = {
    "pre-Fermi": Accuracy("pre-Fermi GPU from counters of a CPU", "Fig 5.2", -0.56, 6.80, 1.71),
    "Kepler": Accuracy(
        "Kepler GPU from counters of a CPU", "section 5.4.1", note="better than pre-Fermi; in a figure only"
    ),
}
M_TO_S = Accuracy("CPU core from a run on a GPU", "section 5.4.2", -0.71, 4.76, note="Atom and Sandybridge together")
UNTESTED = "the dissertation did not test this one"


def _generation(gpu: Gpu) -> str:
    return "pre-Fermi" if gpu.compute_capability < (2, 0) else "Kepler"


def of_core(core: SCore, *, translated: bool) -> Accuracy:
    """What was found for predictions for `core`, from a GPU's run (`translated`) or its own counters."""
    if translated:
        return M_TO_S
    return CUSTOM_S.get(core.name, Accuracy(f"{core.title} from its own counters", "", note=UNTESTED))


def of_gpu(gpu: Gpu, *, translated: bool) -> Accuracy:
    """What was found for predictions for `gpu`: of the pre-Fermi one before 2.0, of the Kepler one from then on."""
    table = S_TO_M if translated else CUSTOM_M
    return table[_generation(gpu)]
