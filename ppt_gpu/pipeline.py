"""predict(): the main loop. One call a stage: read, run functionally, lower, simulate one SM, scale, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from numpy.typing import NDArray

from ppt_gpu import frontends, sass, tasklist
from ppt_gpu.bounds.bounds import ResourceBound, bounds, largest_bound
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.outputs import check_outputs
from ppt_gpu.common.progress import Progress
from ppt_gpu.common.threads import allowed, at_most, ordered
from ppt_gpu.emulator import cache as recorded
from ppt_gpu.emulator.cache.store import Store
from ppt_gpu.emulator.cache.traces import Traces
from ppt_gpu.emulator.launch.sequence import Sequence as LaunchSequence
from ppt_gpu.emulator.launch.sequence import plan_sequence
from ppt_gpu.emulator.trace.block_features import BlockFeatures
from ppt_gpu.frontends.prepare import prepare
from ppt_gpu.inputs import files_of, open_workload
from ppt_gpu.ptx.features import require, require_clusters
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.report.build import build_launch, build_result
from ppt_gpu.report.result.result import LaunchResult, Result
from ppt_gpu.scale import levels
from ppt_gpu.scale.blocks.survey import Survey
from ppt_gpu.scale.history.code_history import CodeHistory
from ppt_gpu.scale.host import LaunchTime, application_time
from ppt_gpu.scale.l2_history import L2History
from ppt_gpu.scale.levels.choice import LEVELS
from ppt_gpu.scale.prediction import KernelPrediction
from ppt_gpu.scale.simulated_sm import SimulatedSm, TraceSm
from ppt_gpu.scale.tasklist_sm import TaskListSm
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.files import files_of as hardware_files
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.workload.block_cluster import blocks_of, cluster_of
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.npy_file import inputs_may_be_absent
from ppt_gpu.workload.workload import Workload

# What only some predictions need is imported by faces: imports take most of the time of a prediction that is kept.
if TYPE_CHECKING:
    from ppt_gpu.frontends.call import CallOptions
    from ppt_gpu.sm.reference.recording import Recording, Window

#: of so many launches every one is recorded where a window is asked for; of more, those longer than all before them
FEW = 4
#: launches that wait to be simulated together, for each thread
TOGETHER = 4


def predict(
    workload: Workload | str | Path | object,
    gpu: Gpu | str | Path,
    *,
    overrides: Sequence[str] = (),
    level: str = "steady",
    blocks: str | int = "sample",
    policy: str | None = None,
    approximate: bool = False,
    strict: bool = False,
    contents: Mapping[str, NDArray] | None = None,
    budget: Budget | None = None,
    assume: Sequence[str] = (),
    cache: bool = True,
    trace_in: str | Path | None = None,
    trace_out: str | Path | None = None,
    window: Window | None = None,
    threads: int | None = None,
    **call: Unpack[CallOptions],
) -> Result:
    """Predict the run time of every launch of `workload` on `gpu`, and of the whole.

    `workload` may also be a kernel (a Triton or numba-cuda function, PTX text, a .ptx or .cu file) with `grid`,
    `block`, `args` (NumPy arrays and numbers) and the other options of `ppt_gpu.frontends.call.CallOptions`.

    `workload` and `gpu` may be names, files or objects; `overrides` are "sm.count=30" and the like. `level` is
    "steady", "workload" or "grid" (docs/levels.md), `blocks` how many blocks are looked at to see whether they differ
    ("sample", "all" or a number: ppt_gpu.scale.blocks.survey), `policy` the warp scheduler's
    (`ppt_gpu.common.policies`; default: the GPU's). `approximate`: not all of loops that go alike is simulated, which
    is faster, near, and said in the result (docs/levels.md). `contents` gives buffers by name as NumPy arrays. With
    `strict` a warning is an error. `budget` ends runaway kernels. `assume`: "OPCODE=CLASS" for PTX instructions that
    are timed as a class and not executed, which the result then says. With `cache` the traces and block timings of
    earlier predictions are used again; `trace_out` writes the traces to a file, `trace_in` takes them from one
    (docs/trace.md). `window`: cycles of the simulated SM to record, for timelines (docs/reports.md). `threads`: at most
    so many simulate at once, by default PPT_GPU_THREADS or one a processor; the result is the same.

    Raises PptError for bad input, BudgetError when the budget is used up.
    """
    began = time.perf_counter()
    if window is not None and level == "grid":
        raise PptError("level grid records no window", hint="a timeline is of one SM: level steady")
    check_level(level, approximate)
    target = open_gpu(gpu, overrides)
    with inputs_may_be_absent() if trace_in else nullcontext():
        opened, arrays = open_any(workload, target.compute_capability, call)
    if trace_out:
        check_outputs([trace_out], lambda: [*_files_read(workload, opened, gpu, overrides), trace_in])
    traces = None
    if (trace_in or trace_out) and (opened.tasklist_path or opened.machine_path):
        message = "a task list has no traces" if opened.tasklist_path else "this is a trace already"
        raise PptError(message, path=opened.path, hint="predict it without trace files")
    if opened.tasklist_path:
        sequence = plan_sequence(opened, None)
    else:
        if trace_in and contents:
            raise PptError("contents are not used with traces from a file", path=trace_in)
        contents = {**arrays, **(contents or {})}
        target = runs_on(opened, target)
        traces, sequence = workload_traces(opened, target, contents, budget or Budget(), assume, cache, trace_in)
    # A trace file holds what the simulation asked for, so that nothing may be skipped.
    simulated = simulated_sms(opened, traces, sequence, target, policy, not trace_out, approximate)
    recordings: dict[int, Recording] = {}
    cycles: list[float] = []

    def seen(prediction: KernelPrediction, result: LaunchResult) -> None:
        longest = prediction.cycles > max(cycles, default=0.0)
        if window is not None and (longest or len(sequence.launches) <= FEW):
            recordings[len(cycles)] = levels.record_prediction(prediction, window)
        cycles.append(prediction.cycles)

    with at_most(threads):
        launches = predict_sequence(sequence, simulated, target, level, blocks, seen)
    launches = [replace(one, recording=recordings.get(number)) for number, one in enumerate(launches)]
    warnings = [*opened.warnings, *(text for launch in launches for text in launch.warnings)]
    if strict and warnings:
        raise PptError("; ".join(warnings), hint="--strict makes warnings errors")
    seconds = [float(launch.value("kernel.cycles")) / target.sm.clock for launch in launches]
    times = [LaunchTime(launches[s.number].kernel, seconds[s.number], s.count) for s in sequence.steps]
    application = application_time(times, opened.copies, target.host, graph=opened.graph)
    if traces is not None and trace_out:
        recorded.save_traces(trace_out, traces.records())
    order = [step.number for step in sequence.steps]
    return build_result(opened, target, level, launches, order, application, time.perf_counter() - began)


def check_level(level: str, approximate: bool) -> None:
    """PptError for a level that there is not, or that does not go with `approximate`."""
    if level not in LEVELS:
        raise PptError(f"unknown level '{level}'", hint=f"expected one of {', '.join(LEVELS)}")
    if approximate and level == "grid":
        raise PptError("level grid skips nothing", hint="approximate skipping is of one SM: level steady or workload")


def open_gpu(gpu: Gpu | str | Path, overrides: Sequence[str] = ()) -> Gpu:
    """The GPU that `gpu` is or names, with "sm.count=30" and the like changed. Raises PptError for bad input."""
    if isinstance(gpu, Gpu) and overrides:
        raise PptError("overrides need the GPU's name or file, not a Gpu")
    return gpu if isinstance(gpu, Gpu) else load_gpu(str(gpu), overrides)


def runs_on(workload: Workload, gpu: Gpu) -> Gpu:
    """`gpu` as it runs the workload: machine code as it is. PptError for machine code of another GPU."""
    if not workload.machine_path:
        return gpu

    return sass.gpu_of_run(workload, gpu)


def open_any(
    workload: object, capability: tuple[int, int], call: CallOptions
) -> tuple[Workload, Mapping[str, NDArray]]:
    """The workload that `workload` is or names, and its arrays. Raises PptError for bad input."""
    if isinstance(workload, Workload):
        if call:
            raise PptError(f"{', '.join(call)}: a Workload says these itself")
        return workload, {}

    if not call and isinstance(workload, str | Path) and not frontends.is_kernel(workload):
        return open_workload(workload), {}
    made = frontends.open_call(workload, capability, call)
    return made.workload, made.contents


#: what may look at a launch while memory is as it finds it
Seen = Callable[[KernelPrediction, LaunchResult], None]


def _files_read(given: object, opened: Workload, gpu: Gpu | str | Path, overrides: Sequence[str]) -> list[str | Path]:
    """Of a workload, of the kernel that it was made of, and of a GPU."""

    gpu_files = [] if isinstance(gpu, Gpu) else hardware_files("gpus", str(gpu), overrides)
    return [*files_of(opened), *frontends.file_of(given), *gpu_files]


def predict_sequence(
    sequence: LaunchSequence,
    simulated: Iterator[SimulatedSm],
    gpu: Gpu,
    level: str,
    blocks: str | int,
    seen: Seen | None = None,
) -> list[LaunchResult]:
    """The launches, each predicted at its first run; then run for what it leaves in memory, where a later one asks.

    All are looked at in order; those between two that change what later ones find are simulated in threads.
    """
    found: list[LaunchResult] = []
    simulated_blocks: list[BlockFeatures] = []
    sms: list[SimulatedSm] = []
    surveys: list[Survey] = []
    code, l2 = CodeHistory(gpu.sm.count), L2History(gpu)
    most = 1 if allowed() == 1 else TOGETHER * allowed()

    def simulate() -> None:
        def one(number: int) -> tuple[KernelPrediction, LaunchResult]:
            made = predict_launch(sms[number], level, surveys[number])
            progress.done()
            return made

        for prediction, result in ordered(one, range(len(found), len(surveys))):
            found.append(result)
            simulated_blocks.append(prediction.simulation.feed.features)
            if seen is not None:
                seen(prediction, result)

    with Progress("launches", len(sequence.steps)) as progress:
        for step in sequence.steps:
            one = sequence.launches[step.number]
            code_at, constants_at = code.launch(one.kernel, one.blocks)
            new = step.number == len(sms)
            try:
                if new:
                    made = next(simulated)
                    if isinstance(made, TraceSm) and gpu.collectors.units:
                        code_at |= code.beside(tuple(made.module.kernels), one.kernel)
                    sms.append(replace(made, code_at=code_at, constants_at=constants_at, l2_lines=l2.lines))
                    surveys.append(sms[-1].survey(blocks))
                sm = sms[step.number]
                if len(sms) < len(sequence.launches) and isinstance(sm, TraceSm) and not gpu.perfect_memory:
                    l2.launched(sm, surveys[step.number].features)
            except PptError:
                simulate()  # what an earlier launch raises comes first
                raise
            if not new:
                progress.done()
            if step.advance or len(surveys) - len(found) >= most:
                simulate()
            if step.advance and isinstance(sm, TraceSm):
                warning = sm.advance(simulated_blocks[step.number], step.count)
                known = found[step.number].warnings
                found[step.number] = replace(found[step.number], warnings=tuple(dict.fromkeys((*known, *warning))))
        simulate()
    return found


def predict_launch(sm: SimulatedSm, level: str, survey: Survey) -> tuple[KernelPrediction, LaunchResult]:
    """One launch: simulate enough of its blocks on one SM, scale to the grid, hold it against its bounds."""
    other = _at_level("steady", sm, survey)[0] if level != "steady" else None
    prediction, floors = _at_level(level, sm, survey)
    if other is not None:
        texts = (*prediction.more_warnings, *levels.disagreement(prediction, other))
        prediction = replace(prediction, more_warnings=texts)
    return prediction, build_launch(prediction, floors)


def _at_level(level: str, sm: SimulatedSm, survey: Survey) -> tuple[KernelPrediction, list[ResourceBound]]:
    """The prediction, raised to the highest of the bounds, and these."""
    prediction = replace(LEVELS[level](sm, survey), survey=survey)
    floors = bounds(
        prediction.simulation.work,
        prediction.result,
        sm.gpu,
        resident=sm.spread.resident,
        active_sms=sm.spread.active_sms,
        sm_blocks=prediction.plan.sm_blocks,
        grid_blocks=prediction.plan.grid_blocks,
        traffic=prediction.plan.traffic_of_work,
    )
    highest = largest_bound(floors)
    return prediction.raised_to(highest.cycles, highest.resource), floors


def simulated_sms(
    workload: Workload,
    traces: Traces | None,
    sequence: LaunchSequence,
    gpu: Gpu,
    policy: str | None,
    keep: bool,
    approximate: bool = False,
) -> Iterator[SimulatedSm]:
    """One simulated SM for each launch of the sequence. Of PTX, it finds what memory holds when it is asked for."""
    if traces is None:
        flat = tasklist.flatten(tasklist.read_tasklist(workload.tasklist_path))
        for launch in sequence.launches:
            yield replace(TaskListSm.of(flat, launch, gpu, policy), approximate=approximate)
        return
    for number in range(len(sequence.launches)):
        sm = TraceSm.of(traces.launch(number), gpu, policy, keep)
        yield replace(sm, source_notes=traces.notes, approximate=approximate)


def workload_traces(
    workload: Workload,
    gpu: Gpu,
    contents: Mapping[str, NDArray],
    budget: Budget,
    assume: Sequence[str],
    cache: bool,
    trace_in: str | Path | None,
) -> tuple[Traces, LaunchSequence]:
    """Where the traces of the launches come from: a file, the cache, or running the kernels; and their order."""
    if workload.machine_path:
        if contents or assume:
            raise PptError("a trace of machine code takes no data and no assumptions", path=workload.machine_path)

        machine = sass.MachineTraces(workload, budget)
        return machine, machine.sequence()
    prepared = prepare(workload, gpu.compute_capability, assume)
    module, sequence = prepared.module, plan_sequence(prepared.workload, prepared.module)
    bound = replace(prepared.workload, launches=sequence.launches)
    for kernel in dict.fromkeys(launch.kernel for launch in sequence.launches):
        require(link(module.kernels[kernel], module).instructions, module, gpu.compute_capability, gpu.name)
    for one in sequence.launches:
        require_clusters(blocks_of(cluster_of(module.kernels[one.kernel], one)), gpu.compute_capability, gpu.name)
    if trace_in:
        traces: Traces = recorded.RecordedTraces(module, bound, trace_in, budget)
    else:
        traces = Traces(module, bound, contents, budget, Store() if cache else None)
    traces.notes = prepared.notes
    return traces, sequence
