"""How a launch is predicted at each level of fidelity, and at level steady: the first way that holds for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ppt_gpu.scale import levels
from ppt_gpu.scale.blocks.distribution import plan
from ppt_gpu.scale.blocks.survey import Survey, standing_sm
from ppt_gpu.scale.levels.long_launch import long_launch
from ppt_gpu.scale.levels.steady import affordable_waves
from ppt_gpu.scale.prediction import KernelPrediction
from ppt_gpu.scale.simulated_sm import SimulatedSm, TraceSm


@dataclass(frozen=True)
class Way:
    """A way to predict a launch at level steady."""

    holds: Callable[[SimulatedSm, Survey], bool]
    #: None where it turns out that it cannot be done: then the next way that holds
    predict: Callable[[SimulatedSm, Survey], KernelPrediction | None]


def _blocks_differ(sm: SimulatedSm, survey: Survey) -> bool:
    return survey.irregular and isinstance(sm, TraceSm)


def _differ_in_one_wave(sm: SimulatedSm, survey: Survey) -> bool:
    return _blocks_differ(sm, survey) and sm.spread.max_blocks <= sm.spread.resident


def _differ_in_a_small_launch(sm: SimulatedSm, survey: Survey) -> bool:
    return _blocks_differ(sm, survey) and levels.small(survey)


def _of_one_wave(sm: SimulatedSm, survey: Survey) -> KernelPrediction:
    return _through_crossbar(levels.single_wave_prediction(sm, survey), sm, survey)


def _of_a_small_launch(sm: SimulatedSm, survey: Survey) -> KernelPrediction | None:
    return levels.small_prediction(sm)


def _of_differing_blocks(sm: SimulatedSm, survey: Survey) -> KernelPrediction:
    assert isinstance(sm, TraceSm)
    return levels.irregular_prediction(sm, survey)


def _of_like_blocks(sm: SimulatedSm, survey: Survey) -> KernelPrediction:
    waves = affordable_waves(sm.spread.resident, survey.warp_instructions)
    if not isinstance(sm, TraceSm):
        return long_launch(sm, waves)
    sm = replace(sm, place=standing_sm(survey, sm.spread, sm.launch.grid))
    return _through_crossbar(long_launch(sm, waves), sm, survey)


def _through_crossbar(prediction: KernelPrediction, sm: SimulatedSm, survey: Survey) -> KernelPrediction:
    return levels.through_crossbar(prediction, sm, survey) if sm.gpu.interconnect.crossbar else prediction


#: in the order in which they are asked
STEADY = (
    Way(_differ_in_one_wave, _of_one_wave),
    Way(_differ_in_a_small_launch, _of_a_small_launch),
    Way(_blocks_differ, _of_differing_blocks),
    Way(lambda sm, survey: True, _of_like_blocks),
)


def _steady(sm: SimulatedSm, survey: Survey) -> KernelPrediction:
    """A few waves of one SM, extrapolated."""
    made = (way.predict(sm, survey) for way in STEADY if way.holds(sm, survey))
    return next(prediction for prediction in made if prediction is not None)


def _workload(sm: SimulatedSm, survey: Survey) -> KernelPrediction:
    """One wave of one SM, extrapolated by the rule of the PPT paper."""
    chosen = plan(sm.launch.blocks, sm.occupancy, sm.gpu, "workload")
    timing = sm(list(chosen.blocks))
    text = "blocks differ, which this level does not see: level steady dispatches them all"
    prediction = levels.workload_prediction(timing.result, chosen)
    return replace(prediction, timing=timing, sm=sm, more_warnings=(text,) if survey.irregular else ())


def _grid(sm: SimulatedSm, survey: Survey) -> KernelPrediction:
    """All blocks on all SMs."""
    return levels.grid_prediction(sm)


#: level -> how it predicts a launch
LEVELS: Mapping[str, Callable[[SimulatedSm, Survey], KernelPrediction]] = {
    "steady": _steady,
    "workload": _workload,
    "grid": _grid,
}
