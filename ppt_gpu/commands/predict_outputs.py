"""What predict writes beside its report: files, and sections that are shown when asked for."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ppt_gpu.common.errors import PptError

if TYPE_CHECKING:
    from ppt_gpu.report.result.result import Result
    from ppt_gpu.report.text.sections import Section
    from ppt_gpu.sm.reference.recording import Window


def add_outputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--html", metavar="FILE", help="write the report as one page for a browser (.html)")
    parser.add_argument(
        "--timeline",
        metavar="FILE",
        help="write what one SM does, cycle by cycle, for a trace viewer (.json, .json.gz)",
    )
    parser.add_argument("--plot", metavar="FILE", help="draw roofline and CPI stacks: .png, .svg or .pdf")
    parser.add_argument("--warps", action="store_true", help="show what warps do over time, a letter a stall reason")
    parser.add_argument("--pressure", action="store_true", help="show how each line occupies the execution pipes")
    parser.add_argument(
        "--explain", action="append", default=[], metavar="METRIC", help="say how this number comes about; repeatable"
    )
    parser.add_argument(
        "--window",
        metavar="FIRST:CYCLES",
        help="cycles of the simulated SM that timelines show (default: 0:2000)",
    )


def check_kinds(arguments: argparse.Namespace) -> None:
    """PptError for files and sections of kinds that there are not."""
    if arguments.html:
        from ppt_gpu.report.html import page

        page.check_target(arguments.html)
    if arguments.plot:
        from ppt_gpu.report.figures import common as figures

        figures.check_target(arguments.plot)
    if arguments.timeline:
        from ppt_gpu.report.timeline import trace_events

        trace_events.check_target(arguments.timeline)
    if arguments.json and (arguments.warps or arguments.pressure or arguments.explain):
        raise PptError("--json has no sections", hint="it holds all metrics, and lines and pipes of every launch")
    sections_of(arguments)
    if arguments.window and not _records(arguments):
        raise PptError(f"--window {arguments.window}: nothing shows a timeline", hint="such as --timeline sm.json.gz")


def window_of(arguments: argparse.Namespace) -> Window | None:
    """The window to record, None where nothing shows it. PptError for a bad one."""
    if not _records(arguments):
        return None
    from ppt_gpu.sm.reference.recording import Window

    if not arguments.window:
        return Window()
    first, colon, cycles = arguments.window.partition(":")
    if not (colon and first.isdecimal() and cycles.isdecimal()):
        raise PptError(f"--window {arguments.window}: expected FIRST:CYCLES", hint="such as 10000:2000")
    return Window(int(first), int(cycles))


def _records(arguments: argparse.Namespace) -> bool:
    return bool(arguments.timeline or arguments.html or arguments.warps)


def sections_of(arguments: argparse.Namespace) -> list[Section]:
    """The sections that were asked for. PptError for an unknown metric."""
    if not (arguments.warps or arguments.pressure or arguments.explain):
        return []
    from ppt_gpu.report.text import sections

    chosen = [sections.pressure] if arguments.pressure else []
    chosen += [sections.warps] if arguments.warps else []
    return [*chosen, *(sections.explained(tag) for tag in arguments.explain)]


def write_outputs(arguments: argparse.Namespace, result: Result) -> None:
    """Write the files that were asked for. PptError where one cannot be written."""
    if arguments.html:
        from ppt_gpu.common.outputs import write_whole
        from ppt_gpu.report.html.page import to_html

        write_whole(arguments.html, to_html(result).encode())
    if arguments.plot:
        from ppt_gpu.report.figures import common as figures
        from ppt_gpu.report.figures.prediction import prediction_figure

        figures.save(prediction_figure(result), arguments.plot)
    if arguments.timeline:
        from ppt_gpu.report.timeline import trace_events
        from ppt_gpu.report.timeline.timeline import about, timeline

        trace_events.write(arguments.timeline, timeline(result), about(result))
