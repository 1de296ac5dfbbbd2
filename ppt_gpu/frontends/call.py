"""A kernel called from Python: any source, NumPy arrays as arguments, no workload file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import index
from pathlib import Path
from typing import Any, TypedDict

from numpy.typing import NDArray

from ppt_gpu.common.errors import InputErrors, PptError
from ppt_gpu.frontends.arrays import Arrays, arguments_for
from ppt_gpu.frontends.compiled_text import KernelSource, content_key, kept
from ppt_gpu.frontends.cuda_source import SUFFIXES
from ppt_gpu.frontends.numba_kernel import compile_numba, is_numba_kernel
from ppt_gpu.frontends.prepare import read_module
from ppt_gpu.frontends.triton_kernel import compile_triton, is_triton_kernel
from ppt_gpu.workload.arguments import dim3, shape_errors
from ppt_gpu.workload.binding import chosen_kernel
from ppt_gpu.workload.workload import Launch, Workload

#: options that only Triton kernels take
TRITON_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


class CallOptions(TypedDict, total=False):
    """How a kernel is launched. Sources: a Triton or numba-cuda kernel, PTX text, or a .ptx or .cu file."""

    grid: int | Sequence[int] | Callable[[Mapping[str, Any]], Sequence[int]]  # blocks; Triton's may be a function
    block: int | Sequence[int]  # threads; not for Triton
    args: Sequence[Any] | Mapping[str, Any]  # arrays, numbers, struct bytes, text forms; by name for Triton
    kernel: str  # which one of a file, as in C++ or in PTX
    dynamic_shared: int  # B a block
    registers: int | str  # a thread: a number, "ptxas" or "estimate"
    compiler_options: Sequence[str]  # for a .cu file
    num_warps: int  # Triton
    num_stages: int  # Triton
    num_ctas: int  # Triton
    maxnreg: int  # Triton


@dataclass(frozen=True)
class Call:
    """A workload of one launch, and the arrays that are its buffers."""

    workload: Workload
    contents: Mapping[str, NDArray]


def is_kernel(source: object) -> bool:
    """Whether `source` can only be called: a kernel object, or PTX text."""
    return is_numba_kernel(source) or is_triton_kernel(source) or _is_text(source)


def file_of(kernel: object) -> list[Path]:
    """The Python file that a kernel object is written in, if it is known."""
    try:
        found = inspect.getsourcefile(getattr(kernel, "py_func", None) or getattr(kernel, "fn", None))  # type: ignore[arg-type]
    except TypeError:
        return []
    return [Path(found)] if found else []


def open_call(source: object, capability: tuple[int, int], options: CallOptions) -> Call:
    """The workload of one launch of `source` on a GPU of compute capability `capability`.

    Raises PptError for a source that is no kernel, missing or surplus options, and what does not compile.
    """
    unknown = [name for name in options if name not in CallOptions.__annotations__]
    if unknown:
        raise TypeError(f"unknown launch options: {', '.join(unknown)}")
    arrays = Arrays()
    if is_triton_kernel(source):
        made = _of_triton(source, capability, options, arrays)
    elif is_numba_kernel(source):
        _refuse(options, "a numba kernel", *TRITON_OPTIONS, "kernel", "compiler_options")
        made = compile_numba(source, _in_order(options, "a numba kernel"), capability, arrays)
    else:
        return _of_ptx(source, capability, options, arrays)
    key = content_key(made.text)
    kept(key, ".ptx", lambda: made.text)  # so that messages name a file that can be read
    workload = Workload(made.name, made.name, f"<PTX of {made.name}>", (), ptx_text=made.text, notes=made.notes)
    return _call(workload, made, capability, options, arrays)


def _of_triton(source: Any, capability: tuple[int, int], options: CallOptions, arrays: Arrays) -> KernelSource:
    _refuse(options, "a Triton kernel", "block", "kernel", "compiler_options", hint="its block is 32 num_warps threads")
    if "grid" not in options:
        raise PptError("a Triton kernel needs grid", hint="such as grid=(64, 64), num_warps=4")
    grid = options["grid"]
    own = {name: options[name] for name in TRITON_OPTIONS if name in options}  # type: ignore[literal-required]
    extents = (grid,) if isinstance(grid, int) else grid
    return compile_triton(source, options.get("args", ()), extents, capability, arrays, own)


def _of_ptx(source: object, capability: tuple[int, int], options: CallOptions, arrays: Arrays) -> Call:
    """PTX text, or a .ptx or .cu file."""
    compiled = isinstance(source, str | Path) and Path(source).suffix in SUFFIXES
    _refuse(options, "this kernel", *TRITON_OPTIONS, *([] if compiled else ["compiler_options"]))
    if _is_text(source):
        workload = Workload("kernel", "<ptx>", "<ptx>", (), ptx_text=str(source))
    elif isinstance(source, str | Path) and Path(source).suffix in (".ptx", *SUFFIXES):
        path = str(source)
        compiler = tuple(options.get("compiler_options", ()))
        workload = Workload(Path(source).stem, path, path, (), compiler_options=compiler)
    else:
        shown = f"'{source}'" if isinstance(source, str | Path) else f"a {type(source).__name__}"
        hint = "a Triton or numba-cuda kernel, PTX text, or the path of a .ptx or .cu file takes grid, block and args"
        raise PptError(f"{shown} is not a kernel to launch", hint=hint)
    made = KernelSource(workload.name, "", _in_order(options, "this kernel"), options.get("kernel", ""))
    return _call(workload, made, capability, options, arrays)


def _call(
    workload: Workload, made: KernelSource, capability: tuple[int, int], options: CallOptions, arrays: Arrays
) -> Call:
    module = read_module(workload, capability).module
    launch = _launch(made, options)
    kernel = module.kernels[chosen_kernel(workload, module, made.kernel)]
    arguments = arguments_for(kernel.params, made.values, arrays)
    launch = replace(launch, kernel=kernel.name, arguments=arguments)
    described = replace(workload, launches=(launch,), buffers=tuple(arrays.buffers), textures=tuple(arrays.textures))
    return Call(described, arrays.contents)


def _launch(made: KernelSource, options: CallOptions) -> Launch:
    """The launch without its arguments."""
    missing = [name for name in ("grid", "block") if not getattr(made, name) and name not in options]
    if missing:
        raise PptError(f"'{made.name}' needs {' and '.join(missing)}", hint="such as grid=(64, 64), block=(16, 16)")
    registers = options.get("registers")
    launch = Launch(
        kernel=made.kernel,
        grid=dim3(made.grid or _extents("grid", options.get("grid"))),
        block=dim3(made.block or _extents("block", options.get("block"))),
        arguments=(),
        dynamic_shared=made.dynamic_shared + options.get("dynamic_shared", 0),
        registers=registers if isinstance(registers, int) else None,
        registers_from=registers if isinstance(registers, str) else "",
    )
    if launch.registers_from not in ("", "ptxas", "estimate"):
        raise PptError(f"registers={registers!r}: expected a positive number, 'ptxas' or 'estimate'")
    errors = shape_errors(launch)
    if errors:
        raise InputErrors(errors)
    return launch


def _extents(name: str, value: Any) -> tuple[int, ...]:
    try:
        return tuple(index(extent) for extent in (value if isinstance(value, Sequence) else [value]))
    except TypeError:
        raise PptError(f"{name}={value!r}: expected one to three integers", hint=f"such as {name}=(64, 64)") from None


def _in_order(options: CallOptions, what: str) -> Sequence[Any]:
    values = options.get("args", ())
    if isinstance(values, Mapping | str):
        raise PptError(f"the arguments of {what} are a list, in order", hint="such as args=[x, y, 1024]")
    return values


def _refuse(options: CallOptions, what: str, *names: str, hint: str | None = None) -> None:
    surplus = [name for name in names if name in options]
    if surplus:
        raise PptError(f"{what} takes no {', '.join(surplus)}", hint=hint)


def _is_text(source: object) -> bool:
    return isinstance(source, str) and "\n" in source
