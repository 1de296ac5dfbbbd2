"""Kernel traces of Accel-Sim's NVBit tracer, `*.traceg`: opening them, compressed or not, and their headers.

A header is a line "-key = value" each, up to the line that begins with "#". Format: trace_parser.cc and
tracer_tool.cu of accel-sim-framework, tracer versions 1 to 5.
"""

from __future__ import annotations

import gzip
import io
import lzma
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ppt_gpu.common.errors import PptError, nearest
from ppt_gpu.sass.machine import ARCHS
from ppt_gpu.workload.workload import Dim3

SUFFIXES = (".traceg", ".traceg.xz", ".traceg.gz")
#: tracer versions that are read; before `GROUPED` each line repeats its block and warp
VERSIONS = range(1, 6)
GROUPED = 3
_KEY = re.compile(r"-\s*([\w ]+?)\s*=\s*(.*?)\s*$")
_DIM = re.compile(r"\((\d+),\s*(\d+),\s*(\d+)\)$")
_NEEDED = ("kernel name", "grid dim", "block dim", "shmem", "nregs", "binary version")
_KNOWN = (*_NEEDED, "accelsim tracer version", "enable lineinfo", "shmem base_addr", "local mem base_addr")


@dataclass(frozen=True)
class TraceHeader:
    """What a kernel trace says of its launch."""

    path: str
    kernel: str
    grid: Dim3
    block: Dim3
    shared: int  # B a block, static and dynamic
    registers: int  # a thread
    arch: int  # 80 for sm_80
    version: int  # of the tracer
    lines: bool  # instructions begin with a source line
    shared_base: int  # where generic addresses see shared memory; 0: unknown
    local_base: int
    end: int  # number of the last line of the header


def is_trace(path: str | Path) -> bool:
    """Is `path` named like a kernel trace?"""
    return str(path).endswith(SUFFIXES)


class TraceLines:
    """The lines of a trace, numbered from 1, without line ends. PptError when it cannot be read or is cut."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        try:
            with _opened(self.path) as stream:
                for line in io.TextIOWrapper(stream, encoding="utf-8"):
                    self.number += 1
                    yield line.rstrip("\n")
        except UnicodeDecodeError:
            raise PptError("not a text file", path=self.path, line=self.number + 1) from None
        except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
            raise PptError(f"the compressed file is damaged or cut: {error}", path=self.path) from None
        except OSError as error:
            raise PptError(f"cannot read the trace: {error.strerror or error}", path=self.path) from None

    def bad(self, message: str, hint: str | None = None) -> PptError:
        """An error on the line that was read last."""
        return PptError(message, path=self.path, line=self.number or None, hint=hint)


def _opened(path: str) -> IO[bytes]:
    """The file, decompressed by what its first bytes say."""
    with open(path, "rb") as stream:
        magic = stream.read(6)
    if magic.startswith(b"\xfd7zXZ"):
        return lzma.open(path, "rb")
    return gzip.open(path, "rb") if magic.startswith(b"\x1f\x8b") else open(path, "rb")  # type: ignore[return-value]


def read_header(lines: TraceLines, source: Iterator[str]) -> TraceHeader:
    """The header at the beginning of `source`, which iterates over `lines`. PptError for whatever is wrong with it."""
    found: dict[str, tuple[str, int]] = {}
    for line in source:
        if not line.strip():
            continue
        if line.startswith("#"):
            break
        key = _KEY.match(line)
        if not key:
            raise lines.bad(f"expected a header line such as -grid dim = (1,1,1), not '{line[:40]}'")
        if key[1] in found:
            raise lines.bad(f"'-{key[1]}' stands here a second time: two traces in one file?")
        found[key[1]] = (key[2], lines.number)
    for name in _NEEDED:
        if name not in found:
            near = nearest(name, [each for each in found if each not in _KNOWN])
            hint = f"did you mean '{name}' by '{near}'?" if near else "is the file cut?"
            raise lines.bad(f"the header has no line '-{name} = ...'", hint)
    return _Values(found, lines).header()


class _Values:
    def __init__(self, found: dict[str, tuple[str, int]], lines: TraceLines) -> None:
        self.found, self.lines = found, lines

    def header(self) -> TraceHeader:
        version = self.number("accelsim tracer version", 1) if "accelsim tracer version" in self.found else 1
        if version not in VERSIONS:
            hint = f"versions {VERSIONS.start} to {VERSIONS.stop - 1} are read"
            raise self.bad("accelsim tracer version", f"unknown tracer version {version}", hint)
        arch = self.number("binary version")
        if arch not in ARCHS:
            raise self.bad("binary version", f"unknown binary version {arch}", "such as 70 for sm_70, 80 for sm_80")
        grid, block = self.dim("grid dim"), self.dim("block dim")
        if block[0] * block[1] * block[2] > 1024:
            raise self.bad("block dim", "a block has at most 1024 threads")
        return TraceHeader(
            path=self.lines.path,
            kernel=self.found["kernel name"][0] or "kernel",
            grid=grid,
            block=block,
            shared=self.number("shmem"),
            registers=self.number("nregs", least=1),
            arch=arch,
            version=version,
            lines=bool(self.number("enable lineinfo")),
            shared_base=self.number("shmem base_addr"),
            local_base=self.number("local mem base_addr"),
            end=self.lines.number,
        )

    def bad(self, key: str, message: str, hint: str | None = None) -> PptError:
        return PptError(message, path=self.lines.path, line=self.found[key][1], hint=hint)

    def number(self, key: str, least: int = 0) -> int:
        text = self.found.get(key, ("0", 0))[0]
        try:
            value = int(text, 0)
        except ValueError:
            value = least - 1
        if value < least:
            raise self.bad(key, f"-{key} = {text}: expected a number of {least} or more")
        return value

    def dim(self, key: str) -> Dim3:
        match = _DIM.match(self.found[key][0])
        if not match or not all(map(int, match.groups())):
            raise self.bad(key, f"-{key} = {self.found[key][0]}: expected three positive numbers, such as (64,1,1)")
        return int(match[1]), int(match[2]), int(match[3])


def trace_header(path: str | Path) -> TraceHeader:
    """The header of the kernel trace `path`."""
    lines = TraceLines(path)
    return read_header(lines, iter(lines))
