"""Advice: changes of a kernel that help, each of them simulated: occupancy, block sizes, single memory accesses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.progress import Progress
from ppt_gpu.explore.candidates import REGISTERS, Candidate, block_values, candidate, register_values
from ppt_gpu.explore.case import Case, Options, predict_case
from ppt_gpu.explore.other_accesses import GLOBAL, IdealLaunch, Spread, spreads
from ppt_gpu.explore.same_results import Results
from ppt_gpu.explore.tune import has_one_kernel
from ppt_gpu.pipeline import predict_launch, workload_traces
from ppt_gpu.report.result.result import Result, Suggestion
from ppt_gpu.scale.occupancy.rules import OccupancyLimits, theoretical_occupancy
from ppt_gpu.scale.simulated_sm import TraceSm
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Workload

LEAST = 1.02  # gain below which nothing is said
WORTH = 1.5  # times what an ideal access asks for, from which on a line is looked at
LINES = 4  # lines looked at alone
BLOCKS = 2  # block sizes named

Trial = tuple[str, str, Callable[[], float]]  # what, what it takes for granted, the launch's time in s


def advised(result: Result, workload: Workload, gpu: str, overrides: Sequence[str], options: Options) -> Result:
    """`result` with advice. PptError for a workload that is not one launch of a kernel."""
    check_advisable(workload)
    advisor = _Advisor(workload, gpu, tuple(overrides), options)
    now = float(result.main.value("kernel.time"))
    trials = list(advisor.trials())
    found: list[Suggestion] = []
    with Progress("simulations", len(trials)) as progress:
        for text, remark, time_of in trials:
            try:
                time = time_of()
            except PptError:  # such as a block size for which the kernel is not made
                time = now
            progress.done()
            if now / time >= LEAST:
                found.append(Suggestion(text, time, now / time, remark))
    return replace(result, advice=tuple(advisor.checked(sorted(found, key=lambda one: (-one.gain, one.text)))))


def check_advisable(workload: Workload) -> None:
    """PptError for a workload that is not one launch of a kernel."""
    if not has_one_kernel(workload):
        raise PptError("--advise is for one launch of a kernel", hint=f"'{workload.name}' is something else")


class _Advisor:
    """Changes to try of one launch on one GPU."""

    def __init__(self, workload: Workload, gpu: str, overrides: tuple[str, ...], options: Options) -> None:
        self.workload, self.gpu_name, self.overrides, self.options = workload, gpu, overrides, options
        self.gpu: Gpu = load_gpu(gpu, overrides)
        self.traces, self.sequence = workload_traces(
            workload, self.gpu, {}, options.budget or Budget(), options.assume, True, None
        )
        self.launch = self.sequence.launches[0]
        self.actual = TraceSm.of(self.traces.launch(0), self.gpu, options.policy)
        self.blocks: dict[str, Candidate] = {}  # by the text of the suggestion

    def trials(self) -> Iterator[Trial]:
        """All of them; nothing is simulated yet."""
        yield from self._registers()
        yield from self._shared()
        yield from self._block_sizes()
        yield from self._accesses()

    def checked(self, found: Sequence[Suggestion]) -> Iterator[Suggestion]:
        """Those whose results are right, as far as they could be looked at; of block sizes the best."""
        results, named = Results(self.workload, self.gpu.compute_capability), 0
        for one in found:
            block = self.blocks.get(one.text)
            if block is None:
                yield one
                continue
            if named == BLOCKS:
                continue
            verdict = results.against(block.workload)
            if verdict.good:
                named += 1
                yield replace(one, remark=verdict.text)

    def _time(self, made: Workload) -> float:
        case = Case(made, self.gpu_name, self.overrides, options=self.options)
        return float(predict_case(case).main.value("kernel.time"))

    def _registers(self) -> Iterator[Trial]:
        held = self.actual.occupancy.blocks_per_sm
        for value in register_values(self.workload, self.gpu):
            made = candidate("", self.workload, {REGISTERS: value}, self.gpu)
            registers = made.workload.launches[0].registers or 0
            blocks = self._held(registers, self.actual.shared)
            if blocks > held and not made.spills:
                text = f"raising occupancy from {held} to {blocks} blocks an SM by {registers} registers a thread"
                yield text, made.note, lambda made=made: self._time(made.workload)  # type: ignore[misc]

    def _shared(self) -> Iterator[Trial]:
        held, now = self.actual.occupancy.blocks_per_sm, self.actual.shared
        unit = self.gpu.shared.unit
        sizes = range(now - now % unit, -1, -unit)
        less = next((size for size in sizes if self._held(self.actual.registers, size) > held), None)
        if less is None or less >= now:
            return
        blocks = self._held(self.actual.registers, less)
        text = f"raising occupancy from {held} to {blocks} blocks an SM by {less} B of shared memory a block, now {now}"
        static = max(less - self.launch.dynamic_shared, 0)
        launch = replace(self.workload.launches[0], static_shared=static, dynamic_shared=less - static)
        made = replace(self.workload, launches=(launch,))
        yield text, "the same accesses in less memory", lambda: self._time(made)

    def _held(self, registers: int, shared: int) -> int:
        limits = OccupancyLimits.of(self.gpu)
        return theoretical_occupancy(limits, self.launch.threads_per_block, registers, shared).blocks_per_sm

    def _block_sizes(self) -> Iterator[Trial]:
        for value in block_values(self.launch, self.gpu):
            try:
                made = candidate("", self.workload, {"block": value}, self.gpu)
            except PptError:
                continue
            if made.workload.launches[0].block != self.launch.block:
                text = f"blocks of {value} threads"
                self.blocks[text] = made
                yield text, "", lambda made=made: self._time(made.workload)  # type: ignore[misc]

    def _accesses(self) -> Iterator[Trial]:
        blocks = [0, self.launch.blocks // 2, self.launch.blocks - 1]
        trace = self.traces.launch(0).run(sorted(set(blocks)))
        wide = [one for one in spreads(self.actual.kernel, trace) if one.asked >= WORTH * one.ideal]
        wide.sort(key=lambda one: (one.ideal - one.asked, one.pc))
        for one in wide[:LINES]:
            yield _said(one), "", lambda one=one: self._ideal([one.pc])  # type: ignore[misc]
        if len(wide) > 1:
            lines = sorted({one.line for one in wide})
            text = f"all of these accesses, lines {', '.join(map(str, lines))}"
            yield text, "", lambda: self._ideal([one.pc for one in wide])

    def _ideal(self, pcs: Sequence[int]) -> float:
        """The launch's time where these accesses are ideal, s."""
        ideal = TraceSm.of(IdealLaunch(self.traces, 0, pcs), self.gpu, self.options.policy, keep=False)
        sm = replace(ideal, approximate=self.options.approximate)
        _, result = predict_launch(sm, self.options.level, sm.survey(self.options.blocks))
        return float(result.value("kernel.time"))


def _said(one: Spread) -> str:
    asked, ideal = one.each
    if one.space == GLOBAL:
        return f"coalescing line {one.line}: it asks for {asked:.3g} sectors an access, side by side {ideal:.3g}"
    return f"other banks on line {one.line}: it takes {asked:.3g} passes an access, without conflicts {ideal:.3g}"
