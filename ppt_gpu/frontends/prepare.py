"""A workload ready to run on one GPU: its source compiled to a module, its kernels named, its registers known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ppt_gpu.errors import PptError
from ppt_gpu.exec.workload import Launch, Workload
from ppt_gpu.exec.workload_bind import bind_workload
from ppt_gpu.frontends.arch import DEFAULT_CAPABILITY
from ppt_gpu.frontends.cuda_source import SUFFIXES, compile_cuda
from ppt_gpu.frontends.ptxas import NO_PTXAS, Resources, find_ptxas, ptxas_arch, resources
from ppt_gpu.ptx.module import Module
from ppt_gpu.ptx.parser import load_module, parse_module


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

    `assume`: instructions that are timed and not executed, as `ppt_gpu.ptx.parser.parse_module` takes them.

    Raises PptError or InputErrors when it does not compile, is no valid PTX, or does not fit the launches.
    """
    read = read_module(workload, capability, assume)
    compiled = bool(workload.notes) or Path(workload.ptx_path).suffix in SUFFIXES
    bound = bind_workload(workload, read.module)
    assembled, more = _assembled(bound, read.module, capability, compiled)
    return Prepared(assembled, read.module, (*read.notes, *more))


def read_module(
    workload: Workload, capability: tuple[int, int] = DEFAULT_CAPABILITY, assume: Sequence[str] = ()
) -> Prepared:
    """The module of `workload`, which is not bound to it: parsed, or compiled for `capability` first."""
    if workload.ptx_text:
        return Prepared(workload, parse_module(workload.ptx_text, workload.ptx_path, assume), workload.notes)
    if Path(workload.ptx_path).suffix not in SUFFIXES:
        return Prepared(workload, load_module(workload.ptx_path, assume), workload.notes)
    ptx = compile_cuda(Path(workload.ptx_path), capability, workload.compiler_options)
    return Prepared(workload, parse_module(ptx.text, ptx.path, assume), (*workload.notes, *ptx.notes))


def _assembled(
    workload: Workload, module: Module, capability: tuple[int, int], compiled: bool
) -> tuple[Workload, tuple[str, ...]]:
    """`workload` with the registers of its launches from ptxas, where they are to come from there.

    The rule, so that a prediction of PTX or of a shipped sample is the same on every machine: ptxas runs when asked
    (registers "ptxas"), and by itself only for a kernel that a compiler of this machine made just now.
    """
    asked = any(launch.registers_from == "ptxas" for launch in workload.launches)
    wanted = [launch for launch in workload.launches if _wants_ptxas(launch, compiled)]
    tool = find_ptxas() if wanted else None
    if tool is None:
        if asked:
            raise PptError("no ptxas found on this machine, which registers are to come from", hint=NO_PTXAS)
        return workload, ()
    arch = ptxas_arch(tool, module, capability)
    try:
        found = resources(tool, module, arch)
    except PptError as error:
        if asked:
            raise
        return workload, (f"registers are an estimate: {error.message.splitlines()[0]}",)
    source = f"{tool.title} -arch sm_{arch}"
    launches = tuple(_with(launch, found, source, compiled) for launch in workload.launches)
    own = f"{capability[0]}{capability[1]}"
    notes = [] if arch == own else [f"registers are those of sm_{arch}: {tool.title} cannot make sm_{own} of this PTX"]
    notes += [text for launch in wanted if (text := _spills(launch.kernel, found.get(launch.kernel)))]
    return replace(workload, launches=launches), tuple(dict.fromkeys(notes))


def _wants_ptxas(launch: Launch, compiled: bool) -> bool:
    if launch.registers is not None:
        return False
    return launch.registers_from == "ptxas" or (compiled and not launch.registers_from)


def _with(launch: Launch, found: dict[str, Resources], source: str, compiled: bool) -> Launch:
    if not _wants_ptxas(launch, compiled) or launch.kernel not in found:
        return launch
    kernel = found[launch.kernel]
    return replace(launch, registers=kernel.registers, register_source=source, static_shared=kernel.shared)


def _spills(kernel: str, found: Resources | None) -> str | None:
    if found is None or not found.spill_stores + found.spill_loads:
        return None
    return (
        f"ptxas spills {found.spill_stores} B of stores and {found.spill_loads} B of loads a thread of '{kernel}' to "
        "local memory, which is not simulated"
    )
