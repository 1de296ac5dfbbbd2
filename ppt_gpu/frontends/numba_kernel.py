"""numba-cuda kernels: compiled for the types of the arguments, which expand to the parameters of numba's ABI.

Every array is 5 + 2 n parameters, n being its dimensions: two object pointers (null), the number of elements, the bytes
of an element, the data, the extents and the strides in bytes. Tuples give their members, complex numbers two floats,
records a pointer.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pkgutil import resolve_name
from threading import RLock
from types import SimpleNamespace
from typing import Any

import numpy as np

from ppt_gpu.common.errors import PptError
from ppt_gpu.frontends import arch as archs
from ppt_gpu.frontends.arrays import Arrays
from ppt_gpu.frontends.numba_link import linked, sources_of
from ppt_gpu.frontends.source import KernelSource

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
