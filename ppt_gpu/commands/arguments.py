"""Arguments that several commands share, and how a command is added to the program."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ppt_gpu.common.errors import PptError

if TYPE_CHECKING:
    from ppt_gpu.explore.case import Options


class AddCommand(Protocol):
    """Adds a command of the given name, run by a function that returns what is printed, with one line of help."""

    def __call__(self, name: str, run: Callable[[argparse.Namespace], str], text: str) -> argparse.ArgumentParser: ...


def blocks(text: str) -> str | int:
    if text in ("sample", "all"):
        return text
    if not text.isdecimal() or int(text) < 1:
        raise PptError(f"--blocks {text}: expected sample, all or a positive number")
    return int(text)


def count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise PptError(f"'{text}' is not a positive number")
    return int(text)


def natural(text: str) -> int:
    if not text.isdecimal():
        raise PptError(f"'{text}' is not a whole number of 0 or more")
    return int(text)


def size(text: str) -> int:
    from ppt_gpu.common.units import parse_quantity

    try:
        return int(parse_quantity(text, "bytes"))
    except ValueError as error:
        raise PptError(str(error)) from None


def add_workload(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("workload", help="a sample's name, or a .toml, .ptx, .cu, .tl, .traceg or .g file")
    add_workload_options(parser)


def add_workload_options(parser: argparse.ArgumentParser) -> None:
    """What `open_from` reads beside the workload itself."""
    parser.add_argument("--kernel", metavar="NAME", help="kernel of a file with several, as in C++ or as in PTX")
    parser.add_argument("--grid", metavar="X[,Y[,Z]]", help="blocks in the grid (.ptx, .cu and .tl files)")
    parser.add_argument("--block", metavar="X[,Y[,Z]]", help="threads in a block (.ptx and .cu files)")
    parser.add_argument("--cluster", metavar="X[,Y[,Z]]", help="blocks in a cluster (.ptx and .cu files)")
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="TYPE[COUNT]=INIT",
        help="kernel argument, in order: 'f32[1048576]=random', 'f32[64]=npy:x.npy', 1024, f32=2.5",
    )
    parser.add_argument(
        "--dynamic-shared", type=natural, default=0, metavar="BYTES", help="dynamic shared memory of a block"
    )
    parser.add_argument(
        "--assume",
        action="append",
        default=[],
        metavar="OPCODE=CLASS",
        help="time a PTX instruction as fp32, tensor, ... without executing it",
    )
    parser.add_argument(
        "--registers",
        metavar="N|ptxas|estimate",
        help="registers per thread (default: the workload's; of a .cu from ptxas if there is one; else an estimate)",
    )
    parser.add_argument(
        "--seed", type=natural, default=0, metavar="N", help="other random contents of buffers (default: as they are)"
    )
    parser.add_argument(
        "--nvcc-option",
        action="append",
        default=[],
        metavar="OPTION",
        help="option for the compiler of a .cu file, such as --nvcc-option=-DTILE=32",
    )


def add_gpu(parser: argparse.ArgumentParser, required: bool = True) -> None:
    parser.add_argument("--gpu", required=required, help="a shipped GPU's name or a TOML file")
    add_set(parser)


def add_approximate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--approximate",
        action="store_true",
        help="do not simulate all of loops that go alike: faster, near, and said in the result",
    )


def add_threads(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threads",
        dest="working_threads",
        type=threads,
        metavar="N",
        help="simulate in N threads (default: PPT_GPU_THREADS, else one a processor); the result is the same",
    )


def threads(text: str) -> int:
    from ppt_gpu.common.threads import checked

    return checked(text, "--threads")


def add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change one number, such as sm.count=30"
    )


def open_from(arguments: argparse.Namespace) -> Any:
    from ppt_gpu.inputs import open_workload

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
    from ppt_gpu.spec.files import files_of

    return files_of("gpus", arguments.gpu, arguments.set)


def options_of(arguments: argparse.Namespace) -> Options:
    """How predictions of the workload are made, beside its GPU."""
    from ppt_gpu.explore.case import Options

    return Options(
        arguments.level,
        arguments.blocks,
        arguments.policy,
        tuple(arguments.assume),
        approximate=arguments.approximate,
    )


def terminal() -> dict[str, Any]:
    """Colours and the terminal's width when a person looks, a plain page when a program does: 120, or COLUMNS, wide."""
    import shutil

    person = sys.stdout.isatty()
    width = shutil.get_terminal_size((120, 24)).columns if person else _columns(120)
    return {"width": max(60, min(160, width)), "color": person and not os.environ.get("NO_COLOR")}


def _columns(usual: int) -> int:
    """COLUMNS, where somebody has set it to a number."""
    found = os.environ.get("COLUMNS", "")
    return int(found) if found.isdecimal() and found.isascii() else usual
