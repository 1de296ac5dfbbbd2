"""Registers and static shared memory of a workload's launches, from ptxas where they are to come from there."""

from __future__ import annotations

from dataclasses import replace

from ppt_gpu.common.errors import PptError
from ppt_gpu.frontends.arch import of_capability
from ppt_gpu.frontends.ptxas import NO_PTXAS, Resources, find_ptxas, ptxas_arch, resources
from ppt_gpu.ptx.module import Module
from ppt_gpu.workload.workload import Launch, Workload


def with_registers(
    workload: Workload, module: Module, capability: tuple[int, int], compiled: bool
) -> tuple[Workload, tuple[str, ...]]:
    """`workload` with what ptxas says of its kernels, and notes on that.

    The rule, so that a prediction of PTX or of a shipped sample is the same on every machine: ptxas runs when asked
    (registers "ptxas"), and by itself only for a kernel that a compiler of this machine made just now (`compiled`).
    Raises PptError when it is asked for and there is none, or it refuses the PTX.
    """
    wanted = [launch for launch in workload.launches if _wants_ptxas(launch, compiled)]
    if not wanted:
        return workload, ()
    try:
        found, title, arch = _assembled(module, capability)
    except PptError as error:
        if any(launch.registers_from == "ptxas" for launch in wanted):
            raise
        return workload, () if error.hint == NO_PTXAS else (f"registers are an estimate: {_one_line(error)}",)
    launches = tuple(_with(launch, found, f"{title} -arch sm_{arch}", compiled) for launch in workload.launches)
    own = of_capability(capability)
    notes = [] if arch.rstrip("af") == own else [f"registers are those that {title} gives for sm_{arch}, not sm_{own}"]
    notes += [text for launch in wanted if (text := _spills(launch.kernel, found.get(launch.kernel)))]
    return replace(workload, launches=launches), tuple(dict.fromkeys(notes))


def with_at_most(launch: Launch, module: Module, capability: tuple[int, int], most: int) -> tuple[Launch, Resources]:
    """`launch` as ptxas makes it with at most `most` registers a thread, and what it says of that.

    Raises PptError where there is no ptxas, or it refuses.
    """
    found, title, arch = _assembled(module, capability, most)
    kernel = found[launch.kernel]
    source = f"{title} -arch sm_{arch} -maxrregcount={most}"
    made = replace(launch, registers=kernel.registers, register_source=source, static_shared=kernel.shared)
    return made, kernel


def _assembled(
    module: Module, capability: tuple[int, int], most: int | None = None
) -> tuple[dict[str, Resources], str, str]:
    """(resources of each kernel, title of the ptxas, architecture), from the first ptxas that takes the PTX."""
    refused = PptError("no ptxas found on this machine, which registers are to come from", hint=NO_PTXAS)
    for tool in find_ptxas():
        arch = ptxas_arch(tool, module, capability)
        try:
            return resources(tool, module, arch, most), tool.title, arch
        except PptError as error:
            refused = error
    raise refused


def _one_line(error: PptError) -> str:
    return " ".join(error.message.split())


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
