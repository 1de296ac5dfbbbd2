"""What commands make of the arguments that they share: the workload, and the files of its GPU."""

from __future__ import annotations

import argparse
from pathlib import Path

from ppt_gpu.inputs import open_workload
from ppt_gpu.spec.files import files_of as hardware_files
from ppt_gpu.workload.workload import Workload


def open_from(arguments: argparse.Namespace) -> Workload:
    """The workload that the arguments name. PptError for bad input."""
    return open_workload(
        arguments.workload,
        kernel=arguments.kernel,
        grid=arguments.grid,
        block=arguments.block,
        cluster=arguments.cluster,
        args=arguments.arg,
        dynamic_shared=arguments.dynamic_shared,
        registers=arguments.registers,
        compiler_options=arguments.nvcc_option,
        seed=arguments.seed,
    )


def gpu_files(arguments: argparse.Namespace) -> list[Path]:
    """The files that the GPU of a command is read from."""
    return hardware_files("gpus", arguments.gpu, arguments.set)
