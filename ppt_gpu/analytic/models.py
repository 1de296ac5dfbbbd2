"""The list of the analytical models, in the order in which they are shown."""

from __future__ import annotations

from ppt_gpu.analytic.model import Model
from ppt_gpu.errors import PptError, did_you_mean


def models() -> tuple[Model, ...]:
    """Every model; the one list that the commands, the study and the tests read."""
    from ppt_gpu.analytic.gatsim import Gatsim
    from ppt_gpu.analytic.gcom import Gcom
    from ppt_gpu.analytic.gpumech import GpuMech, GpuMechMdm, MarkovChain, Mt, MtMshr, NaiveInterval
    from ppt_gpu.analytic.gpuperf_model import GpuPerfModel
    from ppt_gpu.analytic.hong_kim_model import HongKimModel
    from ppt_gpu.analytic.mcore_model import MCoreModel
    from ppt_gpu.analytic.ppt_module import PptModule
    from ppt_gpu.analytic.ppt_successors import PptGpu2019, PptGpu2021
    from ppt_gpu.analytic.roofline_model import RooflineModel
    from ppt_gpu.analytic.volkov import Volkov

    return (
        GpuMech(),
        GpuMechMdm(),
        MtMshr(),
        Mt(),
        NaiveInterval(),
        MarkovChain(),
        Gcom(),
        Gatsim(),
        HongKimModel(),
        GpuPerfModel(),
        MCoreModel(),
        PptModule(),
        PptGpu2019(),
        PptGpu2021(),
        Volkov(),
        RooflineModel(),
    )


def find_model(name: str) -> Model:
    """The model of that name. PptError with the nearest name when there is none."""
    known = {model.name: model for model in models()}
    if name not in known:
        raise PptError(f"unknown model '{name}'", hint=did_you_mean(name, known))
    return known[name]
