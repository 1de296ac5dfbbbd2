"""What the commands with many predictions make of the arguments that they share."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ppt_gpu.commands.opened import gpu_files, open_from
from ppt_gpu.common.outputs import check_outputs
from ppt_gpu.explore.case import Options
from ppt_gpu.explore.space import Space, make_space
from ppt_gpu.explore.sweep import Run
from ppt_gpu.explore.workers import check_processes
from ppt_gpu.inputs import files_of
from ppt_gpu.spec import load_gpu
from ppt_gpu.workload.workload import Workload


@dataclass(frozen=True)
class Study:
    workload: Workload
    space: Space


def options_of(arguments: argparse.Namespace) -> Options:
    """How predictions of the workload are made, beside its GPU."""
    return Options(
        arguments.level,
        arguments.blocks,
        arguments.policy,
        tuple(arguments.assume),
        approximate=arguments.approximate,
    )


def read_study(arguments: argparse.Namespace, *outputs: str | Path | None) -> Study:
    """The workload, and the space of its configurations. PptError for bad input, and for outputs that cannot be."""
    workload = open_from(arguments)
    check_outputs(outputs, lambda: (*files_of(workload), *gpu_files(arguments)))
    gpu = load_gpu(arguments.gpu)
    return Study(workload, make_space(arguments.set, arguments.let, arguments.where, gpu, workload))


def run_of(arguments: argparse.Namespace, mpi: Any = None, journal: Path | None = None) -> Run:
    """What `add_run` read."""
    check_processes(arguments.processes, mpi)
    return Run(options_of(arguments), arguments.processes, mpi, journal)
