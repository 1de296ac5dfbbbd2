"""CUDA C++ to PTX by NVRTC, the compiler as a library: the Python package nvidia-cuda-nvrtc, called with ctypes."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ppt_gpu.common.errors import PptError
from ppt_gpu.frontends.nvcc import compile_error, names_arch
from ppt_gpu.frontends.tools import wheel_files

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
