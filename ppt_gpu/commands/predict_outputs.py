"""What predict writes beside its report: files, and sections that are shown when asked for."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.outputs import write_whole
from ppt_gpu.report.figures import common as figures
from ppt_gpu.report.figures.prediction import prediction_figure
from ppt_gpu.report.html import page
from ppt_gpu.report.result.result import Result
from ppt_gpu.report.text import sections
from ppt_gpu.report.timeline import trace_events
from ppt_gpu.report.timeline.timeline import about, timeline
from ppt_gpu.sm.reference.recording import Window


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
