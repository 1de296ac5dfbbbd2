"""darksilicon --figure 4.16, 4.17, 4.18 or 5.6: symmetric chips of cores that exist, for kernels of one's own."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from ppt_gpu.multicore.dark_silicon.chip import parse_budget
from ppt_gpu.multicore.dark_silicon.known_cores import load_known_cores
from ppt_gpu.multicore.dark_silicon.study import load_study
from ppt_gpu.programs import KERNELS, programs_of, project_figure
from ppt_gpu.report.commands.known_cores import counts_document, counts_text, known_document, known_text
from ppt_gpu.report.figures.common import save
from ppt_gpu.report.figures.known_cores import core_counts, projections

if TYPE_CHECKING:
    from ppt_gpu.multicore.base.device_scaling import DeviceScaling

FIGURES = ("4.16", "4.17", "4.18", "5.6")


def run(arguments: argparse.Namespace, tables: list[DeviceScaling]) -> str:
    """The text or JSON of a figure; draws it too when wanted."""
    known = load_known_cores(arguments.cores)
    if arguments.budget:
        known = replace(known, budget=parse_budget(arguments.budget, known.budget))
    if arguments.figure == "4.16":
        text = (counts_document if arguments.json else counts_text)(known, tables)
        _draw(arguments, lambda: core_counts(known, tables))
        return text
    study = load_study(arguments.study, arguments.set)
    found = project_figure(arguments.figure, known, tables, programs_of(arguments.kernel or KERNELS), study)
    _draw(arguments, lambda: projections(found))
    return (known_document if arguments.json else known_text)(found)


def _draw(arguments: argparse.Namespace, figure: object) -> None:
    if arguments.plot:
        assert callable(figure)
        save(figure(), arguments.plot)
