"""CUDA C++ to PTX, by nvcc where there is one, else by NVRTC; kept on disk by content.

CUDA C++ to PTX by NVRTC, the compiler as a library: the Python package nvidia-cuda-nvrtc, called with ctypes.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ppt_gpu.common.errors import PptError
from ppt_gpu.frontends import arch as archs
from ppt_gpu.frontends.compiled_text import content_key, kept, label
from ppt_gpu.frontends.includes import included_text
from ppt_gpu.frontends.nvcc import compile_error, compile_nvcc, names_arch
from ppt_gpu.frontends.tools import find, wheel_files

#: where the wheels of CUDA 12 and 13 keep the library and the headers
LIBRARIES = ("nvidia/*/lib/libnvrtc.so.*", "nvidia/*/bin/nvrtc64_*.dll", "nvidia/*/bin/x86_64/nvrtc64_*.dll")
HEADERS = ("nvidia/*/include/cuda_fp16.h",)


@dataclass(frozen=True)
class Nvrtc:
    """The library, loaded."""

    library: Any
    version: str  # "13.0"
    archs: tuple[str, ...]  # "75", "80", ...

    @property
    def title(self) -> str:
        return f"NVRTC {self.version}"


@lru_cache(maxsize=1)
def find_nvrtc() -> Nvrtc | None:
    """NVRTC from the installed Python packages; None where there is none."""
    for path in wheel_files(*LIBRARIES):
        if ".alt." in path.name or "builtins" in path.name:
            continue
        try:
            for companion in sorted(path.parent.glob("*nvrtc-builtins*")):  # it looks for this one by name only
                if ".alt." not in companion.name:
                    ctypes.CDLL(str(companion))
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        major, minor, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        if library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)):
            continue
        library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        archs = (ctypes.c_int * count.value)()
        library.nvrtcGetSupportedArchs(archs)
        return Nvrtc(library, f"{major.value}.{minor.value}", tuple(str(arch) for arch in archs))
    return None


def compile_nvrtc(nvrtc: Nvrtc, source: Path, arch: str, options: Sequence[str]) -> str:
    """The PTX of CUDA file `source` for `arch` ("80"). PptError with NVRTC's own messages when it does not compile."""
    own = [] if names_arch(options) else [f"--gpu-architecture=compute_{arch}"]
    folders = [str(source.parent), *(str(header.parent) for header in wheel_files(*HEADERS))]
    folders += [str(Path(folder) / "cccl") for folder in folders[1:]]
    every = [*own, *options, *(f"--include-path={folder}" for folder in folders)]
    program = ctypes.c_void_p()
    text = source.read_bytes()
    code = nvrtc.library.nvrtcCreateProgram(ctypes.byref(program), text, os.fsencode(source), 0, None, None)
    _must(nvrtc, code, source)
    try:
        code = nvrtc.library.nvrtcCompileProgram(
            program, len(every), (ctypes.c_char_p * len(every))(*(os.fsencode(option) for option in every))
        )
        if code:
            log = _text(nvrtc, program, "ProgramLog")
            raise compile_error(nvrtc.title, source, log or _message(nvrtc, code), arch if own else "")
        return _text(nvrtc, program, "PTX")
    finally:
        nvrtc.library.nvrtcDestroyProgram(ctypes.byref(program))


def _text(nvrtc: Nvrtc, program: ctypes.c_void_p, what: str) -> str:
    size = ctypes.c_size_t()
    getattr(nvrtc.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(max(size.value, 1))
    getattr(nvrtc.library, f"nvrtcGet{what}")(program, buffer)
    return buffer.value.decode("utf-8", errors="replace")


def _message(nvrtc: Nvrtc, code: int) -> str:
    nvrtc.library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return bytes(nvrtc.library.nvrtcGetErrorString(code)).decode()


def _must(nvrtc: Nvrtc, code: int, source: Path) -> None:
    if code:
        raise PptError(f"{nvrtc.title}: {_message(nvrtc, code)}", path=source)


#: names of CUDA C++ files
SUFFIXES = (".cu", ".cuh")
NO_COMPILER = (
    "put nvcc on PATH, or set CUDA_HOME, or: "
    "pip install nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-cccl nvidia-cuda-crt"
)


@dataclass(frozen=True)
class Ptx:
    """PTX text, where it can be read, and how it was made."""

    text: str
    path: str  # for errors: of what is kept, if it is
    title: str  # for results, which do not depend on that
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Compiler:
    title: str
    archs: tuple[str, ...]
    run: Callable[[Path, str, Sequence[str]], str]


def compile_cuda(source: Path, capability: tuple[int, int], options: Sequence[str] = ()) -> Ptx:
    """The PTX of CUDA file `source` for a GPU of `capability`, compiled with the further `options`.

    Raises PptError when no compiler is found, and with the compiler's messages when it does not compile.
    """
    compiler = _compiler()
    if compiler is None:
        raise PptError("no CUDA compiler found on this machine", path=source, hint=NO_COMPILER)
    arch, title = archs.choose(capability, compiler.archs), f"<PTX of {source}>"
    try:
        text = included_text(source, options)
    except OSError as error:
        raise PptError(f"cannot read the file: {error.strerror}", path=source) from None
    if text is None:
        ptx, path = compiler.run(source, arch, options), title
    else:
        key = content_key(compiler.title, arch, *options, text)
        ptx = kept(key, ".ptx", lambda: compiler.run(source, arch, options))
        path = label(key, ".ptx", title)
    if ".entry" not in ptx:
        hint = "a template needs an explicit instantiation, such as: template __global__ void f<float>(float *);"
        raise PptError("no __global__ function is compiled here", path=source, hint=hint)
    notes = [f"{source.name} was compiled by {compiler.title}" + (f" {' '.join(options)}" if options else "")]
    differs = None if names_arch(options) else archs.note(compiler.title, arch, capability)
    return Ptx(ptx, path, title, (*notes, *([differs] if differs else [])))


def compile_functions(text: str, name: str, capability: tuple[int, int]) -> str:
    """The PTX of device functions in CUDA C++, which kernels of another compiler call. Raises as `compile_cuda`."""
    compiler = _compiler()
    if compiler is None:
        raise PptError(f"no CUDA compiler found on this machine for '{name}', which the kernel calls", hint=NO_COMPILER)
    arch = archs.choose(capability, compiler.archs)

    def make() -> str:
        with TemporaryDirectory() as folder:
            source = Path(folder) / "functions.cu"
            source.write_text(text, "utf-8")
            return compiler.run(source, arch, ["--relocatable-device-code=true"])

    return kept(content_key(compiler.title, arch, "functions", text), ".ptx", make)


def _compiler() -> _Compiler | None:
    found = find("nvcc")
    if found:
        return _Compiler(found[0].title, found[0].archs, partial(compile_nvcc, found[0]))
    nvrtc = find_nvrtc()
    return None if nvrtc is None else _Compiler(nvrtc.title, nvrtc.archs, partial(compile_nvrtc, nvrtc))
