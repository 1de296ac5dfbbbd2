"""compare(): the simulation of every launch beside all analytical models, on the same blocks, trace and GPU."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack

from numpy.typing import NDArray

from ppt_gpu.common.threads import at_most
from ppt_gpu.emulator.launch.sequence import plan_sequence
from ppt_gpu.frontends.call import CallOptions
from ppt_gpu.models.base.floors import issue_floor
from ppt_gpu.models.base.model import MODEL_POLICIES, Estimate, Model, Options
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.caches.cache_models import cache_models
from ppt_gpu.models.caches.hit_rates import simulated_rates
from ppt_gpu.models.classics.roofline import RooflineModel
from ppt_gpu.models.registry import find_model, models
from ppt_gpu.pipeline import open_any, open_gpu, predict_sequence, runs_on, simulated_sms, workload_traces
from ppt_gpu.report.compare import SIMULATION, Comparison, LaunchComparison, Row
from ppt_gpu.report.result.result import LaunchResult
from ppt_gpu.scale.levels.representative_sm import one_sm
from ppt_gpu.scale.model_inputs import model_inputs
from ppt_gpu.scale.prediction import KernelPrediction
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.workload.budget import Budget


def compare(
    workload: object,
    gpu: Gpu | str | Path,
    *,
    overrides: Sequence[str] = (),
    policy: str | None = None,
    literal: bool = False,
    only: Sequence[str | Model] = (),
    caches: bool = False,
    blocks: str | int = "sample",
    contents: Mapping[str, NDArray] | None = None,
    budget: Budget | None = None,
    assume: Sequence[str] = (),
    cache: bool = True,
    **call: Unpack[CallOptions],
) -> Comparison:
    """Simulate every launch of `workload` on `gpu`, and ask every analytical model, or only those in `only`.

    The models read the blocks that were simulated. `literal`: equations as printed where their authors erred. `caches`:
    hit rates too, of the simulation and of the cache models. The other options are those of `ppt_gpu.predict`. Times
    are without launch overhead. Raises PptError for bad input.
    """
    asked = [found if isinstance(found, Model) else find_model(found) for found in only] or list(models())
    target = open_gpu(gpu, overrides)
    opened, arrays = open_any(workload, target.compute_capability, call)
    traces, sequence = None, plan_sequence(opened, None)
    if not opened.tasklist_path:
        found_contents, target = {**arrays, **(contents or {})}, runs_on(opened, target)
        traces, sequence = workload_traces(opened, target, found_contents, budget or Budget(), assume, cache, None)
    own = policy or target.sm.policy
    options = Options(MODEL_POLICIES.get(own, own), literal)
    found: list[LaunchComparison] = []
    began = [time.process_time()]

    def seen(prediction: KernelPrediction, result: LaunchResult) -> None:
        spent = time.process_time() - began[0]
        found.append(_compared(prediction, result, asked, options, spent, caches))
        began[0] = time.process_time()

    simulated = simulated_sms(opened, traces, sequence, target, policy, keep=True)
    with at_most(1):  # launches and models are timed one by one
        predict_sequence(sequence, simulated, target, "steady", blocks, seen)
    return Comparison(opened.name, target.name, own, literal, tuple(found))


def inputs_of(workload: object, gpu: Gpu | str | Path, contents: Mapping[str, NDArray] | None = None) -> ModelInputs:
    """What the models read of the longest launch of `workload` on `gpu`. Raises PptError for bad input."""
    target = open_gpu(gpu)
    opened, arrays = open_any(workload, target.compute_capability, {})
    traces, sequence = workload_traces(opened, target, {**arrays, **(contents or {})}, Budget(), (), True, None)
    found: list[tuple[float, ModelInputs]] = []

    def seen(prediction: KernelPrediction, result: LaunchResult) -> None:
        found.append((prediction.cycles, model_inputs(prediction.simulated_sm, one_sm(prediction))))

    predict_sequence(
        sequence, simulated_sms(opened, traces, sequence, target, None, True), target, "steady", "sample", seen
    )
    return max(found, key=lambda item: item[0])[1]


def _compared(
    prediction: KernelPrediction,
    result: LaunchResult,
    asked: Sequence[Model],
    options: Options,
    spent: float,
    caches: bool,
) -> LaunchComparison:
    """`spent`: CPU seconds that the prediction took."""
    began = time.process_time()
    sm = prediction.simulated_sm
    inputs = model_inputs(sm, one_sm(prediction))
    _ = inputs.producers, inputs.latencies  # what the models share is timed apart
    shared = time.process_time() - began
    time_s = prediction.cycles / sm.gpu.sm.clock
    cpi = prediction.cycles / inputs.sm_instructions if inputs.sm_instructions else 0.0
    limit = str(result.value("limiter"))
    rows = [Row(SIMULATION, "one SM event by event, scaled", time_s, prediction.cycles, cpi, limit, spent, 0.0)]
    rows += [_row(model, *_timed(model, inputs, options), time_s) for model in asked]
    grid, block = sm.launch.grid, sm.launch.block
    kept = not prediction.result.wall
    rates = (simulated_rates(prediction.result), *cache_models(inputs, literal=options.literal)) if caches else ()
    return LaunchComparison(sm.launch.kernel, grid, block, tuple(rows), shared, kept, floor_cycles(inputs), rates)


def floor_cycles(inputs: ModelInputs) -> float:
    """Cycles that the launch takes at least: its instructions in all issue slots, its traffic at full bandwidth."""
    roof = RooflineModel().analyze(inputs)
    return max(roof.cycles, issue_floor(inputs))


def _timed(model: Model, inputs: ModelInputs, options: Options) -> tuple[Estimate, float]:
    began = time.process_time()
    return model.analyze(inputs, options), time.process_time() - began


def _row(model: Model, found: Estimate, spent: float, simulated: float) -> Row:
    if not found.applies:
        return Row(model.name, model.title, None, None, None, "", spent, None, found.reason, found)
    difference = found.time / simulated - 1.0 if simulated else None
    numbers = (found.time, found.cycles, found.cpi)
    return Row(model.name, model.title, *numbers, found.limiter, spent, difference, estimate=found)
