"""From a PTX opcode to the name of the machine operation that it stands for ("fp32.fma", "load.global").

The names are those that ISA files list timings for; where a GPU expands the opcode into several operations, the ISA's
expansion comes first (`ppt_gpu.tasklist.expand`).
"""

from __future__ import annotations

import re

from ppt_gpu.ptx.table import ASSUMED, SCALAR_TYPES, Row

_FLOAT_CLASS = {
    "f32": "fp32",
    "f32x2": "fp32",
    "tf32": "fp32",
    "f64": "fp64",
    "f16": "fp16",
    "f16x2": "fp16",
    "bf16": "fp16",
    "bf16x2": "fp16",
}
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_SPACES = ("global", "shared", "local", "const", "param")
#: source and result types of the packed narrow floats that only conversions know (8, 6 and 4 bits)
_NARROW_FLOATS = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "ue8m0", "s2f6")


def space_of(modifiers: tuple[str, ...]) -> str:
    """The state space named by the modifiers: "global", "shared", "local", "constant", "param", else "generic"."""
    for modifier in modifiers:
        space = modifier.partition("::")[0]
        if space in _SPACES:
            return "constant" if space == "const" else space
    return "generic"


def types_of(modifiers: tuple[str, ...]) -> list[str]:
    return [modifier for modifier in modifiers if modifier in SCALAR_TYPES]


def _typed(base: str, modifiers: tuple[str, ...], name: str) -> str:
    types = types_of(modifiers)
    if not types:
        raise ValueError("a data type is missing")
    kind = types[-1] if base in ("set", "setp") else types[0]
    on_float, on_integer = name.split("/")
    if kind in _FLOAT_CLASS:
        return f"{_FLOAT_CLASS[kind]}.{on_float}"
    if "wide" in modifiers:
        return f"int32.{on_integer}wide"
    if "hi" in modifiers and on_integer in ("mul", "mad"):
        on_integer += "hi"
    return f"int32.{on_integer}{'64' if kind.endswith('64') else ''}"


def _conversion(modifiers: tuple[str, ...]) -> str:
    """fp64 when either side is f64, else the class of the wider float involved, else integer."""
    types = types_of(modifiers)
    narrow = any(m.startswith(_NARROW_FLOATS) for m in modifiers)
    if not types and not narrow:
        raise ValueError("data types are missing")
    classes = {_FLOAT_CLASS.get(kind, "int32") for kind in types} | ({"fp16"} if narrow else set())
    for best in ("fp64", "fp32", "fp16"):
        if best in classes:
            return f"{best}.cvt"
    return "int32.cvt64" if any(kind.endswith("64") for kind in types) else "int32.cvt"


def _special_function(modifiers: tuple[str, ...], name: str) -> str:
    types = types_of(modifiers)
    if not types:
        raise ValueError("a data type is missing")
    return f"fp64.{name}" if types[0] == "f64" else f"sfu.{name}"


def _copy(modifiers: tuple[str, ...]) -> str:
    """cp.async and its bulk forms: a load when global memory is the source, a store when it is the destination."""
    if modifiers[:1] not in (("async",), ("reduce",)):
        raise ValueError("expected cp.async")
    if "commit_group" in modifiers or "wait_group" in modifiers or "wait_all" in modifiers:
        return "fence.async"
    if "mbarrier" in modifiers:
        return "fence.mbarrier"
    if "prefetch" in modifiers:
        return "fence.prefetch"
    if "reduce" in modifiers:
        return "atomic.global"
    spaces = [m.partition("::")[0] for m in modifiers if m.partition("::")[0] in _SPACES]
    if not spaces:
        raise ValueError("state spaces are missing")
    return "store.global" if spaces[0] == "global" else f"load.{spaces[-1]}"


#: multiplicand type -> class of the tensor cores' rates
_RATES = {
    "f16": "f16", "bf16": "f16", "tf32": "tf32", "f64": "f64", "s8": "s8", "u8": "s8", "s4": "s4", "u4": "s4",
    "b1": "b1",
}  # fmt: skip


def _product(base: str, modifiers: tuple[str, ...]) -> str:
    """ "tensor.mma.f16.m16n8k16": rate class and shape; a sparse A is half as deep. "tensor.wgmma.n128": see ISA.

    Sums in f16 are a class of their own, "f16acc".
    """
    shape = next((found for found in map(_SHAPE.fullmatch, modifiers) if found), None)
    if shape is None:
        return "tensor." + base
    m, n, k = (int(size) for size in shape.groups())
    if base == "wgmma":
        return f"tensor.wgmma.n{n if n <= 32 else -(-n // 32) * 32}"
    types = [modifier for modifier in modifiers if modifier in _RATES or modifier in ("f32", "s32")]
    narrow = any(m_.startswith(_NARROW_FLOATS) for m_ in modifiers)
    kind = "f8" if narrow else next((_RATES[t] for t in types[1:3] if t in _RATES), "f16")
    if types[:1] == ["f64"]:
        kind = "f64"
    if kind == "f16" and types[:1] == ["f16"]:
        kind = "f16acc"
    if any(modifier == "sp" or modifier.startswith("sp::") for modifier in modifiers):
        k //= 2
    return f"tensor.mma.{kind}.m{m}n{n}k{k}"


def _matrix(base: str, modifiers: tuple[str, ...]) -> str:
    form = modifiers[0] if modifiers else ""
    if base == "mma":
        return _product(base, modifiers)
    if base == "wmma":
        return f"{form}.{space_of(modifiers)}" if form in ("load", "store") else _product(base, modifiers)
    if base == "wgmma":
        return _product(base, modifiers) if form == "mma_async" else "fence.async"
    if form in ("mma", "ld", "st", "cp", "shift"):
        return "tensor.tcgen05" if form == "mma" else f"tensor.tcgen05{form}"
    return "fence.async"


def _fence(modifiers: tuple[str, ...]) -> str:
    """By how far it reaches: the block, or more. That of mbarrier.init is no instruction of any machine code."""
    if "mbarrier_init" in modifiers:
        return "fence.async"
    within = "cta" in modifiers or any(word.startswith("shared::") for word in modifiers)
    return "fence.cta" if within else "fence"


def operation_of(base: str, modifiers: tuple[str, ...], row: Row) -> str:
    """The machine operation of an opcode. Raises ValueError, with the reason, where the modifiers do not say."""
    family, name = row.family, row.name
    if family == "typed":
        return _typed(base, modifiers, name)
    if family == "fixed":
        return name
    if family in ("load", "store", "atomic"):
        return f"{family}.{space_of(modifiers)}"
    if family == "mov":
        return "int32.mov64" if any(kind.endswith("64") for kind in types_of(modifiers)) else "int32.mov"
    if family == "cvt":
        return _conversion(modifiers)
    if family == "sfu":
        return _special_function(modifiers, name)
    if family == "barrier":
        return "barrier"
    if family == "fence":
        return _fence(modifiers)
    if family == ASSUMED:
        return ".".join(modifiers)
    if family == "copy":
        return _copy(modifiers)
    if family == "multimem":
        return {"ld_reduce": "load.global", "st": "store.global"}.get(
            modifiers[0] if modifiers else "", "atomic.global"
        )
    return _matrix(base, modifiers)
