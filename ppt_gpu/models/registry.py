"""The list of the analytical models, in the order in which they are shown."""

from __future__ import annotations

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.models.base.model import Model
from ppt_gpu.models.classics.roofline import RooflineModel
from ppt_gpu.models.classics.volkov import Volkov
from ppt_gpu.models.gatsim.gatsim import Gatsim
from ppt_gpu.models.gpumech.gcom import Gcom
from ppt_gpu.models.gpumech.gpumech import GpuMech, GpuMechMdm, MarkovChain, Mt, MtMshr, NaiveInterval
from ppt_gpu.models.gpuperf.model import GpuPerfModel
from ppt_gpu.models.hong_kim.model import HongKimModel
from ppt_gpu.models.mcore.model import MCoreModel
from ppt_gpu.models.ppt.module import PptModule
from ppt_gpu.models.ppt.successors import PptGpu2019, PptGpu2021


def models() -> tuple[Model, ...]:
    """Every model; the one list that the commands, the study and the tests read."""
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
