"""numba-cuda kernels: compiled for the types of the arguments, which expand to the parameters of numba's ABI.

Every array is 5 + 2 n parameters, n being its dimensions: two object pointers (null), the number of elements, the bytes
of an element, the data, the extents and the strides in bytes. Tuples give their members, complex numbers two floats,
records a pointer.

What a numba-cuda kernel calls and its PTX lacks, and numba's linker would add.

Functions of numba's in CUDA C++ (half precision) are compiled here; the barrier of a grid, which is in CUDA's device
runtime, is written in PTX.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pkgutil import resolve_name
from threading import RLock
from types import SimpleNamespace
from typing import Any

import numpy as np

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.host.host_calls import HOST_CALLS
from ppt_gpu.frontends import arch as archs
from ppt_gpu.frontends.arrays import Arrays
from ppt_gpu.frontends.compiled_text import KernelSource
from ppt_gpu.frontends.cuda_source import compile_functions

_EXTERN = re.compile(r"^\s*\.extern\s+\.func\s+(?:\([^()]*\)\s*)?([\w$]+)", re.MULTILINE)
_HEAD = re.compile(r"^\s*\.(?:version|target|address_size)\b.*$", re.MULTILINE)
_GRID = ("cudaCGGetIntrinsicHandle", "cudaCGSynchronize")
#: Every block adds to a word, all together 2^31: its highest bit changes when the last one has come, as it does in the
#: barrier of cooperative_groups.h.
_GRID_BARRIER = """
.global .align 4 .u32 cudaCGBarrier;
.visible .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
    st.param.b64 [handle], 1;
    ret;
}
.visible .func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
    .reg .pred %p; .reg .b32 %r<8>;
    bar.sync 0;
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;
    or.b32 %r1, %r1, %r2; or.b32 %r1, %r1, %r3;
    setp.ne.u32 %p, %r1, 0;
    @%p bra together;
    mov.u32 %r1, %nctaid.x; mov.u32 %r2, %nctaid.y; mov.u32 %r3, %nctaid.z;
    mul.lo.u32 %r1, %r1, %r2; mul.lo.u32 %r1, %r1, %r3;
    sub.u32 %r4, 0x80000001, %r1;
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;
    or.b32 %r1, %r1, %r2; or.b32 %r1, %r1, %r3;
    setp.eq.u32 %p, %r1, 0;
    selp.b32 %r4, %r4, 1, %p;
    membar.gl;
    atom.global.add.u32 %r5, [cudaCGBarrier], %r4;
again:
    ld.volatile.global.u32 %r6, [cudaCGBarrier];
    xor.b32 %r7, %r5, %r6;
    setp.ge.s32 %p, %r7, 0;
    @%p bra again;
    membar.gl;
together:
    bar.sync 0;
    st.param.b32 [error], 0;
    ret;
}
"""


def linked(text: str, sources: Callable[[], Sequence[tuple[str, str]]], capability: tuple[int, int]) -> str:
    """The PTX with the functions that it calls. `sources` are (name, CUDA C++) of those that numba has.

    PptError when they do not compile, or no CUDA compiler is there.
    """
    missing = {name for name in _EXTERN.findall(text) if name not in HOST_CALLS}
    if missing.intersection(_GRID):
        text += _GRID_BARRIER
    if missing.difference(_GRID):
        for name, source in sources():
            text += "\n" + _HEAD.sub("", compile_functions(source, name, capability))
    return text


def sources_of(
    function: Any, signature: Any, capability: tuple[int, int], options: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """(name, CUDA C++) of what a function of this signature calls: what numba's compile_all gives to NVRTC.

    numba itself would ask the driver whether it can load what NVRTC makes.
    """
    from numba import cuda

    compile_all = getattr(cuda, "compile_all", None)
    found: list[tuple[str, str]] = []

    def take(source: str | bytes, name: str, *_: Any, **__: Any) -> tuple[str, str]:
        found.append((name, source.decode() if isinstance(source, bytes) else source))
        return "", ""

    if compile_all is not None:  # else numba has no functions in CUDA C++ yet
        with _instead_of_nvrtc(take):
            compile_all(function, signature, cc=capability, device=False, abi="numba", output="ptx", **options)
    return found


@contextmanager
def _instead_of_nvrtc(compiler: Callable[..., tuple[str, str]]) -> Iterator[None]:
    from numba.cuda.cudadrv import nvrtc

    own = nvrtc.compile
    nvrtc.compile = compiler
    try:
        yield
    finally:
        nvrtc.compile = own


#: options of @cuda.jit that change the code and that numba.cuda.compile_ptx takes too
_OPTIONS = ("debug", "lineinfo", "fastmath", "opt", "launch_bounds", "forceinline")

_COMPILING = RLock()


def is_numba_kernel(source: object) -> bool:
    """Whether `source` is what @numba.cuda.jit makes."""
    return type(source).__module__.startswith("numba.cuda") and hasattr(source, "py_func")


def compile_numba(kernel: Any, values: Sequence[Any], capability: tuple[int, int], arrays: Arrays) -> KernelSource:
    """The PTX of `kernel` for arguments of the types of `values`, and the expanded arguments.

    Raises PptError with numba's own message when the function does not compile for these types.
    """
    import numba
    from numba import cuda

    function = kernel.py_func
    _check_count(function, values)
    arch = archs.choose(capability, _known())
    try:
        types = tuple(numba.typeof(value) for value in values)
        chosen = kernel.targetoptions
        accepted = inspect.signature(cuda.compile_ptx).parameters
        options = {key: chosen[key] for key in _OPTIONS if chosen.get(key) and key in accepted}
        gpu = (int(arch[:-1]), int(arch[-1]))
        with _device_functions_for(gpu):
            signature = numba.types.void(*types)
            text, _ = cuda.compile_ptx(function, signature, cc=gpu, device=False, **options)
            text = linked(text, partial(sources_of, function, signature, gpu, options), gpu)
    except PptError:
        raise
    except Exception as error:  # numba's errors have no common base with those of the libraries below it
        lines = [line for line in str(error).splitlines() if line.strip()]
        message = "\n".join(f"    {line}" for line in lines[:16])
        raise PptError(f"numba cannot compile '{function.__name__}' for these arguments:\n{message}") from None
    names = list(inspect.signature(function).parameters)
    flat: list[Any] = []
    for name, value in zip(names, values, strict=True):
        flat += _expanded(value, name, arrays)
    compiler = f"numba-cuda {_version()}"
    notes = [f"{function.__name__} was compiled by {compiler}"]
    differs = archs.note(compiler, arch, capability)
    return KernelSource(function.__name__, text, flat, notes=(*notes, *([differs] if differs else [])))


@contextmanager
def _device_functions_for(capability: tuple[int, int]) -> Iterator[None]:
    """Functions that the kernel calls are compiled for this GPU: numba would ask the driver for the one it finds."""
    from numba.cuda import dispatcher

    with _COMPILING:
        asked = getattr(dispatcher, "get_current_device", None)
        dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
        try:
            yield
        finally:
            dispatcher.get_current_device = asked


def _check_count(function: Any, values: Sequence[Any]) -> None:
    names = list(inspect.signature(function).parameters)
    if len(names) != len(values):
        given = f"{len(values)} argument{'s' * (len(values) != 1)} given"
        raise PptError(f"kernel '{function.__name__}' takes {len(names)} ({', '.join(names)}), {given}")


def _expanded(value: Any, name: str, arrays: Arrays) -> list[Any]:
    if isinstance(value, np.ndarray):
        data = arrays.pointer(value, name)
        return [0, 0, value.size, value.itemsize, data, *value.shape, *value.strides]
    if isinstance(value, tuple):
        return [part for item in value for part in _expanded(item, name, arrays)]
    if isinstance(value, np.void):
        return [arrays.pointer(np.array(value), name)]
    if isinstance(value, complex | np.complexfloating):
        return [value.real, value.imag]
    return [value]


def _known() -> tuple[str, ...]:
    """Architectures that the installed compiler knows; empty when this version of numba-cuda does not tell."""
    for name in ("nvvm", "nvrtc"):  # it was moved
        try:
            capabilities = resolve_name(f"numba.cuda.cudadrv.{name}").get_supported_ccs()
        except (ImportError, AttributeError):
            continue
        except Exception as error:  # of the package that looks for the compiler
            lines = str(error).splitlines() or [type(error).__name__]
            hint = "pip install 'ppt_gpu[numba]' brings it, numba-cuda alone does not"
            raise PptError(f"numba-cuda does not find its compiler: {lines[0]}", hint=hint) from None
        return tuple(f"{major}{minor}" for major, minor in capabilities)
    return ()


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("numba-cuda")
    except PackageNotFoundError:
        return version("numba")
