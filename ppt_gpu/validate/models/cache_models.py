"""The set `caches`: hit rates of the cache models and of the simulation, for every launch of every sample."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.progress import parts
from ppt_gpu.inputs import open_workload
from ppt_gpu.models.caches.cache_models import cache_models
from ppt_gpu.models.caches.hit_rates import HitRates, simulated_rates
from ppt_gpu.pipeline import simulated_sms, workload_traces
from ppt_gpu.report.text.columns import columns
from ppt_gpu.scale.blocks.distribution import plan
from ppt_gpu.scale.cache.block_timing import BlockTiming
from ppt_gpu.scale.model_inputs import model_inputs
from ppt_gpu.scale.simulated_sm import SimulatedSm, TraceSm
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.validate.tables.rows import is_asked
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.reader import sample_names

#: a Fermi, whose L1 Nugteren's model describes; the machine of GPUMech's Table I; a sectored L1
GPUS = ("gtx480", "gpumech_table1", "v100")


@dataclass(frozen=True)
class CacheRow:
    """One launch on one GPU: what was simulated, and what each model says of the same blocks."""

    case: str
    gpu: str
    simulated: HitRates
    models: tuple[HitRates, ...]


def rows(cases: Sequence[str] = ()) -> Iterator[CacheRow]:
    """Every launch of the samples whose name contains one of `cases` (all when empty), if it fits on the GPU."""
    for gpu in (load_gpu(name, ()) for name in GPUS):
        for name in parts(sample_names(), f"samples on {gpu.name}"):
            if not is_asked(name, cases):
                continue
            try:
                found = list(launches(name, gpu))
            except PptError:  # a block does not fit on that GPU
                continue
            for sm, result, models in found:
                case = f"{name}/{sm.launch.kernel}" if len(found) > 1 else name
                yield CacheRow(case, gpu.name, simulated_rates(result), models)


def launches(name: str, gpu: Gpu) -> Iterator[tuple[SimulatedSm, SmResult, tuple[HitRates, ...]]]:
    """Each launch of a sample with its simulation and its models, on what the launches before it left."""
    workload = open_workload(name)
    traces, sequence = workload_traces(workload, gpu, {}, Budget(), (), True, None)
    pending = simulated_sms(workload, traces, sequence, gpu, None, True)
    sms: list[SimulatedSm] = []
    done: list[BlockTiming] = []
    for step in sequence.steps:
        if step.number == len(sms):
            sm = next(pending)
            sms.append(sm)
            chosen = plan(sm.launch.blocks, sm.occupancy, gpu)
            done.append(sm(list(chosen.blocks)))
            yield sm, done[-1].result, cache_models(model_inputs(sm, chosen))
        sm = sms[step.number]
        if step.advance and isinstance(sm, TraceSm):
            sm.advance(done[step.number].feed.features, step.count)


def differences(found: Sequence[CacheRow]) -> dict[str, dict[str, float]]:
    """model -> "l1", "l2": mean difference from the simulation without sign, over the rows where both are known."""
    names = [model.model for model in found[0].models]
    return {
        name: {
            level: statistics.mean(gaps)
            for level in ("l1", "l2")
            if (gaps := [gap for row in found if (gap := _gap(row, place, level)) is not None])
        }
        for place, name in enumerate(names)
    }


def _gap(row: CacheRow, place: int, level: str) -> float | None:
    truth, model = getattr(row.simulated, level), getattr(row.models[place], level)
    return None if truth is None or model is None else abs(model - truth)


def to_json(found: Sequence[CacheRow]) -> str:
    document = {
        "schema": 1,
        "set": "caches",
        "rows": [asdict(row) for row in found],
        "differences": {gpu: differences([row for row in found if row.gpu == gpu]) for gpu in _gpus(found)},
    }
    return json.dumps(document, indent=2) + "\n"


def to_text(found: Sequence[CacheRow]) -> str:
    names = ["simulation", *(model.model for model in found[0].models)]
    lines = []
    for level in ("l1", "l2"):
        rates = [(row.case, row.gpu, *_percents(row, level)) for row in found]
        lines += [
            f"hit rate of the {level.upper()}",
            "",
            *columns([("case", "gpu", *names), *rates], left=2, keys=2),
            "",
        ]
    for level in ("l1", "l2"):
        lines += [f"mean difference of the {level.upper()}'s hit rate from the simulation, in points", ""]
        summary: list[tuple[str, ...]] = [("gpu", *names[1:])]
        for gpu in _gpus(found):
            gaps = differences([row for row in found if row.gpu == gpu])
            summary.append((gpu, *(_points(gaps[name].get(level)) for name in names[1:])))
        lines += [*columns(summary), ""]
    return "\n".join(lines[:-1]) + "\n"


def _percents(row: CacheRow, level: str) -> list[str]:
    return [_percent(getattr(rates, level)) for rates in (row.simulated, *row.models)]


def _gpus(found: Sequence[CacheRow]) -> list[str]:
    return list(dict.fromkeys(row.gpu for row in found))


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.1%}"


def _points(gap: float | None) -> str:
    return "-" if gap is None else f"{100 * gap:.1f}"
