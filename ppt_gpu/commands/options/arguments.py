"""Arguments that several commands share, and how a command is added to the program."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, Protocol

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.policies import POLICIES
from ppt_gpu.common.threads import checked
from ppt_gpu.common.units import parse_quantity


class AddCommand(Protocol):
    """Adds a command of the given name with one line of help.

    `run`: "MODULE:FUNCTION" in ppt_gpu.commands, which returns what is printed."""

    def __call__(self, name: str, run: str, text: str) -> argparse.ArgumentParser: ...


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
    return checked(text, "--threads")


def add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change one number, such as sm.count=30"
    )


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
