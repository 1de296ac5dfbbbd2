"""PTX to machine code and its disassembly, where ptxas and nvdisasm are on the machine."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ppt_gpu.common.errors import PptError
from ppt_gpu.frontends.compiled_text import content_key, kept
from ppt_gpu.frontends.ptxas import NO_PTXAS, assemble, find_ptxas
from ppt_gpu.frontends.tools import Tool, find, run_tool
from ppt_gpu.ptx.module import Module
from ppt_gpu.sass.disassembly import Disassembly, read_disassembly

NO_NVDISASM = "put nvdisasm of a CUDA toolkit on PATH, or: pip install nvidia-cuda-nvdisasm (Triton brings one too)"
#: the first bytes of a cubin
ELF = b"\x7fELF"
_ELF_HEADER = 64  # B, of 64 bits
_CUDA = 190  # e_machine
_WIDE_FLAGS = 8  # EI_ABIVERSION from which on the architecture stands in bits 8 to 15 of e_flags, not in 0 to 7
_PREFIX = re.compile(r"^\w+ (fatal|error)\s*:\s*")
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
    arch = cubin_architecture(data, path)
    tools = find("nvdisasm") or find("cuobjdump")
    if not tools:
        raise PptError(
            "no nvdisasm and no cuobjdump on this machine: a cubin cannot be read", path=path, hint=NO_NVDISASM
        )
    return read_disassembly(view(tools[0], path, path, arch), path)


def view(tool: Tool, cubin: Path, path: str | Path, arch: str = "") -> str:
    """What nvdisasm or cuobjdump print of `cubin`; `path` and the architecture are named when they refuse."""
    done = run_tool([tool.path, *(("-c", "-hex") if tool.name == "nvdisasm" else ("-sass",)), str(cubin)])
    if done.returncode:
        said = "; ".join((done.stderr or done.stdout).strip().splitlines()[:3]).replace(str(cubin), str(path))
        said = _PREFIX.sub("", said)
        what = f"machine code of {arch}" if arch else "this"
        hint = "the tool of another CUDA toolkit may know the architecture" if arch else ""
        raise PptError(f"{tool.title} cannot read {what}: {said}", path=path, hint=hint)
    return done.stdout


def cubin_architecture(data: bytes, path: str | Path) -> str:
    """The architecture, such as "sm_90", of the ELF file `data`. PptError when it is cut short or no cubin."""
    if len(data) < _ELF_HEADER:
        raise PptError(f"a cubin that is cut short: {len(data)} bytes, not even its header", path=path)
    machine = int.from_bytes(data[18:20], "little")
    if data[4:6] != b"\x02\x01" or machine != _CUDA:
        raise PptError(f"an ELF file of another machine ({machine}), not a cubin ({_CUDA})", path=path)
    sections, flags = int.from_bytes(data[40:48], "little"), int.from_bytes(data[48:52], "little")
    end = sections + int.from_bytes(data[58:60], "little") * int.from_bytes(data[60:62], "little")
    if end > len(data):
        raise PptError(f"a cubin that is cut short: {len(data):,} bytes of at least {end:,}", path=path)
    return f"sm_{(flags >> 8 if data[8] >= _WIDE_FLAGS else flags) & 0xFF}"
