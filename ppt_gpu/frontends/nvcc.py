"""CUDA C++ to PTX by nvcc."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ppt_gpu.common.errors import PptError
from ppt_gpu.frontends.tools import Tool, run_tool

_PLACE = re.compile(r"^(?P<path>[^\s:(][^:(]*)\((?P<line>\d+)\): (?:catastrophic |fatal )?error\b")
_WARNING = re.compile(r"^[^\s:(][^:(]*\(\d+\): warning\b")
_ARCH = re.compile(r"(--?gpu-architecture|-arch|--?gpu-code|-code|--?generate-code|-gencode)\b")
SHOWN_LINES = 24


def compile_nvcc(tool: Tool, source: Path, arch: str, options: Sequence[str]) -> str:
    """The PTX of CUDA file `source` for `arch` ("80"). PptError with nvcc's own messages when it does not compile.

    An architecture among `options` goes before `arch`.
    """
    own = [] if names_arch(options) else [f"-arch=sm_{arch}"]
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "kernel.ptx"
        command = [tool.path, "-ptx", *own, *options, "-o", str(made), str(source)]
        done = run_tool(command)
        if done.returncode or not made.is_file():
            raise compile_error(tool.title, source, done.stderr + done.stdout, arch if own else "")
        return made.read_text("utf-8", errors="surrogateescape")


def names_arch(options: Sequence[str]) -> bool:
    """Whether compiler options choose the architecture themselves."""
    return any(_ARCH.match(option) for option in options)


def compile_error(compiler: str, source: Path, output: str, arch: str = "") -> PptError:
    """One error at the first place that the compiler names, with its own lines, those of warnings left out.

    `arch`: what it compiled for, where nobody asked for that.
    """
    lines = _without_warnings([line.rstrip() for line in output.splitlines() if line.strip()])
    first = next((match for line in lines if (match := _PLACE.match(line))), None)
    shown = lines[:SHOWN_LINES]
    if len(lines) > len(shown):
        shown.append(f"... {len(lines) - len(shown)} more lines")
    text = "\n".join(f"    {line}" for line in shown) or "    (it said nothing)"
    return PptError(
        f"{compiler} cannot compile this{f' for sm_{arch}' if arch else ''}:\n{text}",
        path=first["path"] if first else source,
        line=int(first["line"]) if first else None,
    )


def _without_warnings(lines: Sequence[str]) -> list[str]:
    """The messages but for warnings: a message is a line that names a place, and the indented lines behind it."""
    kept, warns = [], False
    for line in lines:
        if not line[0].isspace() and not line.startswith("Remark"):
            warns = _WARNING.match(line) is not None
        if not warns:
            kept.append(line)
    return kept
