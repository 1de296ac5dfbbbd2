"""PTX to machine code and its disassembly, where ptxas and nvdisasm are on the machine."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ppt_gpu.errors import PptError
from ppt_gpu.frontends.compiled_text import content_key, kept
from ppt_gpu.frontends.ptxas import NO_PTXAS, assemble, find_ptxas
from ppt_gpu.frontends.tools import Tool, find, run_tool
from ppt_gpu.ptx.module import Module
from ppt_gpu.sass.disassembly import Disassembly, read_disassembly

NO_NVDISASM = "put nvdisasm of a CUDA toolkit on PATH, or: pip install nvidia-cuda-nvdisasm (Triton brings one too)"
#: the first bytes of a cubin
ELF = b"\x7fELF"
_SIZE = re.compile(r"^\s*\.address_size\s+\d+.*$", re.M)


@dataclass(frozen=True)
class Disassembler:
    """What makes disassembly out of PTX."""

    ptxas: Tool
    nvdisasm: Tool

    @property
    def title(self) -> str:
        return f"{self.ptxas.title}, {self.nvdisasm.title}"


def disassembler(arch: str) -> Disassembler:
    """The tools of this machine that know `arch` ("80"). PptError that says which is missing and how to get it."""
    assemblers, viewers = find_ptxas(), find("nvdisasm")
    if not assemblers or not viewers:
        missing = [name for name, found in (("ptxas", assemblers), ("nvdisasm", viewers)) if not found]
        hints = {"ptxas": NO_PTXAS, "nvdisasm": NO_NVDISASM}
        hint = "; ".join(hints[name] for name in missing)
        raise PptError(f"no {' and no '.join(missing)} on this machine: machine code cannot be looked at", hint=hint)
    able = [tool for tool in assemblers if arch in tool.archs]
    if not able:
        known = ", ".join(f"sm_{each}" for each in assemblers[0].archs)
        raise PptError(f"{assemblers[0].title} does not make code for sm_{arch}", hint=f"it knows {known}")
    return Disassembler(able[0], viewers[0])


def disassemble(tools: Disassembler, module: Module, arch: str, *, unroll: bool = True) -> Disassembly:
    """The disassembly of `module` compiled for sm_`arch`, with encodings.

    unroll: let ptxas unroll loops; else every loop gets the PTX pragma "nounroll".
    Raises PptError when ptxas refuses the PTX or nvdisasm its output.
    """
    text = "\n".join(module.lines)
    if not unroll:
        text = _SIZE.sub(lambda found: f'{found[0]}\n.pragma "nounroll";', text, count=1)
    key = content_key("disassembly", tools.title, arch, text)
    made = kept(key, ".sass", lambda: _disassemble(tools, text, arch, module.path))
    return read_disassembly(made, module.path)


def _disassemble(tools: Disassembler, text: str, arch: str, path: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        cubin, _ = assemble(tools.ptxas, text, arch, path, folder)
        return view(tools.nvdisasm, cubin, path)


def open_code(path: Path) -> Disassembly:
    """The code in a disassembly (.sass) or a cubin, which takes nvdisasm or cuobjdump. PptError when it is neither."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PptError(f"cannot read the code: {error.strerror}", path=path) from None
    if not data.startswith(ELF):
        try:
            return read_disassembly(data.decode("utf-8"), path)
        except UnicodeDecodeError:
            raise PptError("neither a cubin nor the text of a disassembly", path=path) from None
    tools = find("nvdisasm") or find("cuobjdump")
    if not tools:
        raise PptError(
            "no nvdisasm and no cuobjdump on this machine: a cubin cannot be read", path=path, hint=NO_NVDISASM
        )
    return read_disassembly(view(tools[0], path, path), path)


def view(tool: Tool, cubin: Path, path: str | Path) -> str:
    """What nvdisasm or cuobjdump print of `cubin`; `path` is named in the message when they refuse."""
    done = run_tool([tool.path, *(("-c", "-hex") if tool.name == "nvdisasm" else ("-sass",)), str(cubin)])
    if done.returncode:
        said = "; ".join((done.stderr or done.stdout).strip().splitlines()[:3]).replace(str(cubin), str(path))
        raise PptError(f"{tool.title} cannot read this: {said}", path=path)
    return done.stdout
