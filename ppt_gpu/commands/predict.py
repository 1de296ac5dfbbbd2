"""predict: the run time of a workload on a GPU."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from dataclasses import dataclass

from ppt_gpu.commands.opened import gpu_files, open_from
from ppt_gpu.commands.options.arguments import terminal
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.outputs import check_outputs, write_whole
from ppt_gpu.inputs import files_of
from ppt_gpu.pipeline import predict
from ppt_gpu.report.figures import common as figures
from ppt_gpu.report.figures.prediction import prediction_figure
from ppt_gpu.report.html import page
from ppt_gpu.report.result.result import Result
from ppt_gpu.report.text import sections
from ppt_gpu.report.timeline import trace_events
from ppt_gpu.report.timeline.timeline import about, timeline
from ppt_gpu.sm.precompile import loop_beside
from ppt_gpu.sm.reference.recording import Window
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.npy_file import inputs_may_be_absent


@dataclass(frozen=True)
class Outputs:
    """Files to write, sections to show, and the window to record for them; None where nothing shows it."""

    html: str | None
    plot: str | None
    timeline: str | None
    window: Window | None
    sections: tuple[sections.Section, ...]

    def write(self, result: Result) -> None:
        """Write the files. PptError where one cannot be written."""
        if self.html:
            write_whole(self.html, page.to_html(result).encode())
        if self.plot:
            figures.save(prediction_figure(result), self.plot)
        if self.timeline:
            trace_events.write(self.timeline, timeline(result), about(result))


def outputs_of(arguments: argparse.Namespace) -> Outputs:
    """What was asked for. PptError for files and sections of kinds that there are not, and for a bad window."""
    if arguments.html:
        page.check_target(arguments.html)
    if arguments.plot:
        figures.check_target(arguments.plot)
    if arguments.timeline:
        trace_events.check_target(arguments.timeline)
    if arguments.json and (arguments.warps or arguments.pressure or arguments.explain):
        raise PptError("--json has no sections", hint="it holds all metrics, and lines and pipes of every launch")
    shown: list[sections.Section] = [sections.pressure] if arguments.pressure else []
    shown += [sections.warps] if arguments.warps else []
    shown += [sections.explained(tag) for tag in arguments.explain]
    recorded = arguments.timeline or arguments.html or arguments.warps
    if arguments.window and not recorded:
        raise PptError(f"--window {arguments.window}: nothing shows a timeline", hint="such as --timeline sm.json.gz")
    window = _window(arguments.window) if recorded else None
    return Outputs(arguments.html, arguments.plot, arguments.timeline, window, tuple(shown))


def _window(text: str | None) -> Window:
    if not text:
        return Window()
    first, colon, cycles = text.partition(":")
    if not (colon and first.isdecimal() and cycles.isdecimal()):
        raise PptError(f"--window {text}: expected FIRST:CYCLES", hint="such as 10000:2000")
    return Window(int(first), int(cycles))


#: options that ask for more than a report
_MORE = ("html", "plot", "timeline", "warps", "pressure", "explain", "window")


def run(arguments: argparse.Namespace) -> str:
    with loop_beside():
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> str:
    outputs = None
    if any(getattr(arguments, name) for name in _MORE):
        outputs = outputs_of(arguments)
    if arguments.advise and (arguments.trace_in or arguments.no_cache):
        raise PptError("--advise runs other forms of the kernel", hint="without --trace-in and --no-cache")
    limits = {
        "instructions": arguments.max_instructions,
        "memory": arguments.max_memory,
        "trace": arguments.max_trace,
    }
    with inputs_may_be_absent() if arguments.trace_in else nullcontext():
        workload = open_from(arguments)
    check_outputs(
        (arguments.trace_out, arguments.html, arguments.plot, arguments.timeline),
        lambda: (*files_of(workload), *gpu_files(arguments), arguments.trace_in),
    )
    if arguments.advise:
        from ppt_gpu.commands.studies import options_of  # as the next: other predictions than this one
        from ppt_gpu.explore.advice import advised, check_advisable

        check_advisable(workload)
    result = predict(
        workload,
        arguments.gpu,
        overrides=arguments.set,
        level=arguments.level,
        blocks=arguments.blocks,
        policy=arguments.policy,
        approximate=arguments.approximate,
        strict=arguments.strict,
        assume=arguments.assume,
        budget=Budget(**{name: limit for name, limit in limits.items() if limit is not None}),
        cache=not arguments.no_cache,
        trace_in=arguments.trace_in,
        trace_out=arguments.trace_out,
        window=outputs.window if outputs else None,
    )
    if arguments.advise:
        result = advised(result, workload, arguments.gpu, arguments.set, options_of(arguments))
    if outputs:
        outputs.write(result)
    if arguments.json:
        from ppt_gpu.report.json import to_json

        return to_json(result) + "\n"
    from ppt_gpu.report.text.text import render

    return render(result, **terminal(), more=outputs.sections if outputs else ())
