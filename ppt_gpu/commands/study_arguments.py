"""Arguments that the commands with many predictions share: sweep, what-if, tune and design."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppt_gpu.commands.arguments import add_approximate, add_threads, blocks, count, gpu_files, open_from, options_of
from ppt_gpu.common.policies import POLICIES

if TYPE_CHECKING:
    from ppt_gpu.explore.space import Space
    from ppt_gpu.explore.sweep import Run
    from ppt_gpu.workload.workload import Workload


@dataclass(frozen=True)
class Study:
    workload: Workload
    space: Space


def add_choices(parser: argparse.ArgumentParser, text: str) -> None:
    """The GPU and the parameters that vary."""
    parser.add_argument("--gpu", required=True, help="a shipped GPU's name or a TOML file")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUES", help=text)
    parser.add_argument(
        "--let",
        action="append",
        default=[],
        metavar="KEY=EXPRESSION",
        help="a parameter that follows from others: 'grid.x=ceil(arguments[3]/block.x)'",
    )
    parser.add_argument(
        "--where", action="append", default=[], metavar="EXPRESSION", help="only where it holds: 'sm.count*4 <= 256'"
    )


def add_run(parser: argparse.ArgumentParser) -> None:
    """How predictions are made."""
    parser.add_argument(
        "--processes", type=count, default=1, metavar="N", help="predict in N processes, which share the threads"
    )
    add_threads(parser)
    parser.add_argument(
        "--level", choices=("steady", "workload", "grid"), default="steady", help="fidelity (default: steady)"
    )
    parser.add_argument(
        "--blocks", type=blocks, default="sample", metavar="sample|all|N", help="blocks run to see whether they differ"
    )
    parser.add_argument("--policy", choices=POLICIES, help="warp scheduler policy")
    add_approximate(parser)


def read_study(arguments: argparse.Namespace, *outputs: str | Path | None) -> Study:
    """The workload, and the space of its configurations. PptError for bad input, and for outputs that cannot be."""
    from ppt_gpu.common.outputs import check_outputs
    from ppt_gpu.explore.space import make_space
    from ppt_gpu.inputs import files_of
    from ppt_gpu.spec import load_gpu

    workload = open_from(arguments)
    check_outputs(outputs, lambda: (*files_of(workload), *gpu_files(arguments)))
    gpu = load_gpu(arguments.gpu)
    return Study(workload, make_space(arguments.set, arguments.let, arguments.where, gpu, workload))


def run_of(arguments: argparse.Namespace, mpi: Any = None, journal: Path | None = None) -> Run:
    """What `add_run` read."""
    from ppt_gpu.explore.sweep import Run
    from ppt_gpu.explore.workers import check_processes

    check_processes(arguments.processes, mpi)
    return Run(options_of(arguments), arguments.processes, mpi, journal)
