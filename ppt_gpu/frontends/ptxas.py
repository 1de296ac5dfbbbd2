"""ptxas: the exact registers, shared memory and spills of a kernel, where the program is on the machine."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ppt_gpu.common.errors import PptError
from ppt_gpu.frontends import arch as archs
from ppt_gpu.frontends.compiled_text import content_key, kept
from ppt_gpu.frontends.tools import Tool, find, run_tool
from ppt_gpu.ptx.module import Module

NO_PTXAS = "put ptxas of a CUDA toolkit on PATH, or: pip install nvidia-cuda-nvcc (Triton brings one too)"

_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '(sm_\w+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")
_SHARED = re.compile(r"(\d+)(?:\+(\d+))? bytes smem")


@dataclass(frozen=True)
class Resources:
    """What ptxas says of one kernel."""

    registers: int  # a thread
    shared: int  # B, static, a block
    stack: int  # B a thread
    spill_stores: int  # B a thread
    spill_loads: int  # B a thread


def find_ptxas() -> list[Tool]:
    """Every ptxas of this machine, the preferred one first. An old one refuses PTX that a newer compiler made."""
    return find("ptxas")


def ptxas_arch(tool: Tool, module: Module, capability: tuple[int, int]) -> str:
    """The architecture to assemble for: the GPU's or one like it, but what the module's .target needs."""
    target = module.target.removeprefix("sm_")
    if not target.isdigit():  # "90a": for exactly that GPU
        return target
    chosen = archs.choose_for_registers(capability, tool.archs)
    return max(chosen, target, key=archs.number)


def resources(tool: Tool, module: Module, arch: str, most: int | None = None) -> dict[str, Resources]:
    """What each kernel of `module` takes when assembled for `arch` ("80"), with at most `most` registers a thread.

    PptError when ptxas refuses it.
    """
    text = "\n".join(module.lines)
    options = [] if most is None else [f"-maxrregcount={most}"]
    key = content_key(tool.title, arch, *options, text)
    found = json.loads(kept(key, ".json", lambda: _assemble(tool, text, arch, module.path, options)))
    return {name: Resources(**values) for name, values in found.items()}


def _assemble(tool: Tool, text: str, arch: str, path: str, options: Sequence[str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        _, said = assemble(tool, text, arch, path, folder, options)
    return json.dumps({name: asdict(found) for name, found in read_report(said).items()}) + "\n"


def assemble(tool: Tool, text: str, arch: str, path: str, folder: str, options: Sequence[str] = ()) -> tuple[Path, str]:
    """The cubin of PTX `text`, in `folder`, and what ptxas said. PptError, naming `path`, when it refuses the PTX."""
    source, cubin = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
    source.write_bytes(text.encode("utf-8", "surrogateescape"))
    done = run_tool([tool.path, "-v", f"-arch=sm_{arch}", *options, str(source), "-o", str(cubin)])
    said = done.stderr + done.stdout
    if done.returncode:
        lines = "\n".join(f"    {line.replace(str(source), path)}" for line in said.splitlines()[:8] if line.strip())
        raise PptError(f"{tool.title} -arch sm_{arch} refuses this PTX:\n{lines}", path=path)
    return cubin, said


def read_report(text: str) -> dict[str, Resources]:
    """The kernels in what `ptxas -v` prints."""
    found: dict[str, Resources] = {}
    name = described = ""
    stack = (0, 0, 0)
    for line in text.splitlines():
        if match := _ENTRY.search(line):
            name, stack = match[1], (0, 0, 0)
        elif match := _PROPERTIES.search(line):
            described = match[1]
        elif (match := _SPILLS.search(line)) and described == name:
            stack = (int(match[1]), int(match[2]), int(match[3]))
        elif (match := _USED.search(line)) and name:
            shared = _SHARED.search(match[2])
            size = sum(int(part) for part in shared.groups() if part) if shared else 0
            found.setdefault(name, Resources(int(match[1]), size, *stack))
            name = ""
    return found
