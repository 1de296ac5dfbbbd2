"""CUDA C++ to PTX, by nvcc where there is one, else by NVRTC; kept on disk by content."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from ppt_gpu.common.errors import PptError
from ppt_gpu.frontends import arch as archs
from ppt_gpu.frontends.compiled_text import content_key, kept, label
from ppt_gpu.frontends.includes import included_text
from ppt_gpu.frontends.nvcc import compile_nvcc, names_arch
from ppt_gpu.frontends.nvrtc import compile_nvrtc, find_nvrtc
from ppt_gpu.frontends.tools import find

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
