"""Triton kernels: compiled without torch and without a driver, specialised on the arguments as a launch would be.

A launch of Triton's specialises integers: 1 becomes a constant, multiples of 16 are marked divisible; pointers are
aligned to 16 bytes, as all buffers are here. The PTX has the other arguments as parameters, in order, then hidden
pointers to scratch memory. The block has 32 threads a warp, shared memory is dynamic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.frontends import arch as archs
from ppt_gpu.frontends.arrays import Arrays
from ppt_gpu.frontends.compiled_text import KernelSource

Grid = Sequence[int] | Callable[[Mapping[str, Any]], Sequence[int]]

#: architectures that Triton's NVIDIA backend compiles for
_KNOWN = ("75", "80", "86", "87", "89", "90", "100", "103", "110", "120", "121")
_TYPES = {
    "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "int8": "i8", "int16": "i16",
    "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "i1",
    "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5",
}  # fmt: skip


def is_triton_kernel(source: object) -> bool:
    """Whether `source` is what @triton.jit makes, or a tuner around it."""
    return type(source).__module__.startswith("triton.runtime") and hasattr(source, "fn")


def compile_triton(
    kernel: Any,
    values: Sequence[Any] | Mapping[str, Any],
    grid: Grid,
    capability: tuple[int, int],
    arrays: Arrays,
    options: Mapping[str, Any],
) -> KernelSource:
    """The PTX of `kernel` for `values`, constexprs among them (in order, or by name), and its launch.

    `options` are Triton's: num_warps, num_stages, num_ctas, maxnreg. `grid` may be a function of the arguments by
    name. Raises PptError with Triton's own message when it does not compile.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    if type(kernel).__name__ != "JITFunction":
        hint = "give kernel.fn, with one configuration's constexprs among the arguments, num_warps and num_stages"
        raise PptError(f"a Triton {type(kernel).__name__} has no one kernel", hint=hint)
    bound = _bound(kernel, values)
    signature: dict[str, str] = {}
    constants: dict[tuple[int, ...], Any] = {}
    attributes: dict[tuple[int, ...], Any] = {}
    for position, param in enumerate(kernel.params):
        kind = _type(param, bound[param.name])
        signature[param.name] = kind
        if kind == "constexpr":
            constants[(position,)] = bound[param.name]
        elif _divisible(param, bound[param.name]):
            attributes[(position,)] = [["tt.divisibility", 16]]
    arch = archs.choose(capability, _KNOWN)
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attributes)
    try:
        made = triton.compile(
            source, target=GPUTarget("cuda", int(arch), 32), options={"enable_fp_fusion": True, **options}
        )
    except Exception as error:  # Triton's errors are of many kinds, down to its own copy of LLVM
        lines = [line for line in str(error).splitlines() if line.strip()]
        message = "\n".join(f"    {line}" for line in lines[:16])
        raise PptError(f"Triton cannot compile '{kernel.__name__}' for these arguments:\n{message}") from None
    blocks = _grid(grid, bound, int(getattr(made.metadata, "num_ctas", 1)))
    passed = [_value(bound[name], name, arrays) for name, kind in signature.items() if kind != "constexpr"]
    passed += _scratch(made.asm["ptx"], made.metadata, len(passed), math.prod(blocks), arrays)
    compiler = f"Triton {triton.__version__}"
    notes = [f"{kernel.__name__} was compiled by {compiler} with {made.metadata.num_warps} warps a block"]
    differs = archs.note(compiler, arch, capability)
    return KernelSource(
        name=kernel.__name__,
        text=made.asm["ptx"],
        values=passed,
        kernel=made.metadata.name,
        grid=blocks,
        block=(32 * made.metadata.num_warps,),
        dynamic_shared=made.metadata.shared,
        notes=(*notes, *([differs] if differs else [])),
    )


def _bound(kernel: Any, values: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by name, defaults filled in. PptError for unknown, missing or surplus ones."""
    names = list(kernel.arg_names)
    if not isinstance(values, Mapping) and len(values) > len(names):
        raise PptError(f"kernel '{kernel.__name__}' takes {len(names)} ({', '.join(names)}), {len(values)} given")
    bound = dict(values) if isinstance(values, Mapping) else dict(zip(names, values, strict=False))
    unknown = [name for name in bound if name not in names]
    if unknown:
        raise PptError(f"kernel '{kernel.__name__}' has no '{unknown[0]}'", hint=did_you_mean(unknown[0], names))
    defaults = {param.name: param.default for param in kernel.params if param.has_default}
    missing = [name for name in names if name not in bound and name not in defaults]
    if missing:
        hint = f"it takes {', '.join(names)}; constexprs are arguments too"
        raise PptError(f"kernel '{kernel.__name__}' needs {', '.join(missing)}", hint=hint)
    return {name: bound.get(name, defaults.get(name)) for name in names}


def _type(param: Any, value: Any) -> str:
    """The type of an argument in a signature of Triton's: "*fp32", "i32", "constexpr"."""
    if param.is_constexpr or value is None:
        return "constexpr"
    if isinstance(value, np.ndarray):
        if value.dtype.name not in _TYPES:
            raise PptError(f"{param.name}: Triton has no type for {value.dtype}")
        return f"*{_TYPES[value.dtype.name]}"
    if isinstance(value, bool | np.bool_):
        return "u1"
    if isinstance(value, int | np.integer):
        if value == 1 and not param.do_not_specialize:
            return "constexpr"
        return "i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"
    if isinstance(value, float | np.floating):
        return "fp32"
    kind = type(value).__name__
    raise PptError(f"{param.name}: a {kind} is no argument here", hint="NumPy arrays, numbers, and constexprs are")


def _divisible(param: Any, value: Any) -> bool:
    if param.do_not_specialize or getattr(param, "do_not_specialize_on_alignment", False):
        return False
    if isinstance(value, np.ndarray):
        return True
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and value % 16 == 0


def _value(value: Any, name: str, arrays: Arrays) -> Any:
    if isinstance(value, np.ndarray):
        return arrays.pointer(value, name)
    return value.item() if isinstance(value, np.generic) else value


def _grid(grid: Grid, bound: Mapping[str, Any], clusters: int) -> tuple[int, ...]:
    found = grid(bound) if callable(grid) else grid
    extents = (found,) if isinstance(found, int) else tuple(int(extent) for extent in found)
    return (extents[0] * clusters, *extents[1:]) if extents else ()


def _scratch(text: str, metadata: Any, given: int, blocks: int, arrays: Arrays) -> list[Any]:
    """The hidden parameters: pointers to global and profile scratch memory, null where the kernel uses none."""
    from ppt_gpu.ptx.parsing.parser import parse_module

    params = parse_module(text).kernels[metadata.name].params[given:]
    values: list[Any] = []
    for name, _ in zip(("global_scratch", "profile_scratch"), params, strict=False):
        size = int(getattr(metadata, f"{name}_size", 0) or 0)
        values.append(arrays.space(size * blocks, name) if size else 0)
    return values
