"""what-if: which single change of the GPU helps most."""

from __future__ import annotations

import argparse

from ppt_gpu.commands.opened import open_from
from ppt_gpu.commands.options.arguments import terminal
from ppt_gpu.commands.studies import run_of
from ppt_gpu.common.errors import PptError
from ppt_gpu.explore.hardware_keys import shown_value
from ppt_gpu.explore.what_if import what_if
from ppt_gpu.report.commands.what_if import Line, render, to_json


def run(arguments: argparse.Namespace) -> str:
    if not 1 < arguments.factor <= 100:
        raise PptError(f"--factor {arguments.factor:g}: expected more than 1 and at most 100")
    if not 0.001 <= arguments.step <= 1:
        raise PptError(f"--step {arguments.step:g}: expected 0.001 to 1")
    found = what_if(
        open_from(arguments),
        arguments.gpu,
        arguments.set,
        run_of(arguments),
        only=arguments.parameter,
        factor=arguments.factor,
        step=arguments.step,
    )
    lines = [
        Line(
            effect.change.key,
            shown_value(effect.change.key, effect.change.before),
            shown_value(effect.change.key, effect.change.after),
            (effect.change.before, effect.change.after),
            effect.time,
            effect.speedup,
            effect.elasticity,
        )
        for effect in found.effects
    ]
    if arguments.json:
        return to_json(found.workload, found.gpu, found.time, lines, found.fixed)
    return render(found.workload, found.gpu, found.time, lines, found.fixed, **terminal())
