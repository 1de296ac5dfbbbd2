"""A workload ready to run on one GPU: its source compiled to a module, its kernels named, its registers known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from ppt_gpu.common.errors import PptError
from ppt_gpu.frontends.arch import DEFAULT_CAPABILITY
from ppt_gpu.frontends.compiled_text import content_key, label
from ppt_gpu.frontends.cuda_source import SUFFIXES, compile_cuda
from ppt_gpu.frontends.registers import with_registers
from ppt_gpu.ptx.module import Module
from ppt_gpu.ptx.parsing.parser import parse_module, read_text
from ppt_gpu.workload.binding import bind_workload
from ppt_gpu.workload.workload import Workload

#: characters of a text whose module is kept: it takes some hundred times as much memory
KEPT_TEXT = 1 << 20


@dataclass(frozen=True)
class Prepared:
    """A workload bound to its module, and what is to be said about how it came to be."""

    workload: Workload
    module: Module
    notes: tuple[str, ...] = ()


def prepare(
    workload: Workload, capability: tuple[int, int] = DEFAULT_CAPABILITY, assume: Sequence[str] = ()
) -> Prepared:
    """Read or compile the module of `workload` for a GPU of compute capability `capability`, and bind it.

    `assume`: instructions that are timed and not executed, as `ppt_gpu.ptx.parsing.parser.parse_module` takes them.

    Raises PptError or InputErrors when it does not compile, is no valid PTX, or does not fit the launches.
    """
    read = read_module(workload, capability, assume)
    compiled = bool(workload.notes) or Path(workload.ptx_path).suffix in SUFFIXES
    bound = bind_workload(workload, read.module)
    assembled, more = with_registers(bound, read.module, capability, compiled)
    return Prepared(assembled, read.module, (*read.notes, *more))


def read_module(
    workload: Workload, capability: tuple[int, int] = DEFAULT_CAPABILITY, assume: Sequence[str] = ()
) -> Prepared:
    """The module of `workload`, which is not bound to it: parsed, or compiled for `capability` first."""
    if workload.machine_path:
        hint = "predict, compare and translate take traces of machine code"
        raise PptError("a trace of machine code has no PTX", path=workload.machine_path, hint=hint)
    if workload.ptx_text:
        return Prepared(workload, _of_text(workload, assume), workload.notes)
    if Path(workload.ptx_path).suffix not in SUFFIXES:
        return Prepared(workload, _parsed(read_text(workload.ptx_path), workload.ptx_path, assume), workload.notes)
    ptx = compile_cuda(Path(workload.ptx_path), capability, workload.compiler_options)
    return Prepared(workload, _parsed(ptx.text, ptx.path, assume, ptx.title), (*workload.notes, *ptx.notes))


def _of_text(workload: Workload, assume: Sequence[str]) -> Module:
    """The module of PTX that a front end made, or a user gave as text."""
    text, title = workload.ptx_text, workload.ptx_path
    return _parsed(text, label(content_key(text), ".ptx", title), assume, title)


def _parsed(text: str, path: str, assume: Sequence[str], title: str = "") -> Module:
    """As `parse_module`; the module of the last text is kept, which the next launch of the same file needs again."""
    module = (_last_parsed if len(text) <= KEPT_TEXT else parse_module)(text, path, tuple(assume))
    return replace(module, title=title) if title else module


@lru_cache(maxsize=1)
def _last_parsed(text: str, path: str, assume: tuple[str, ...]) -> Module:
    return parse_module(text, path, assume)
