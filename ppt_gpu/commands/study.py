"""study: how far the analytical models are from the simulation, and how that moves with the machine."""

from __future__ import annotations

import argparse

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.outputs import check_outputs
from ppt_gpu.report.figures.common import check_target
from ppt_gpu.validate.models import figures
from ppt_gpu.validate.models import study as model_study
from ppt_gpu.validate.models import text as model_text
from ppt_gpu.validate.models.speed import speeds

WITHOUT_FIGURE = ("representative", "speed")


def run(arguments: argparse.Namespace) -> str:
    part, texts, plot = arguments.part, arguments.case, arguments.plot
    if plot:
        if part in WITHOUT_FIGURE:
            raise PptError(f"{part} has no figure", hint="without --plot")
        check_target(plot)
        check_outputs([plot])
    if part == "speed":
        measured = speeds(texts)
        return model_text.speed_json(measured) if arguments.json else model_text.speed_text(measured)
    if part == "representative":
        ways = model_study.representatives(texts)
        return model_text.representatives_json(ways) if arguments.json else model_text.representatives_text(ways)

    if part == "accuracy":
        rows = model_study.accuracy(texts)
        if plot:
            figures.draw_accuracy(rows, plot)
        return model_text.accuracy_json(rows) if arguments.json else model_text.accuracy_text(rows)
    if part == "stacks":
        stacks = model_study.stacks(texts)
        if plot:
            figures.draw_stacks(stacks, plot)
        return model_text.stacks_json(stacks) if arguments.json else model_text.stacks_text(stacks)
    swept = model_study.sweep(part, texts)
    if plot:
        figures.draw_sweep(part, swept, plot)
    return model_text.sweep_json(part, swept) if arguments.json else model_text.sweep_text(part, swept)
