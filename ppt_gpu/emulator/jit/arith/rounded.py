"""Helper functions for arithmetic in a rounding mode of its own: the host's mode is switched, and switched back.

f32 and f64 in the modes toward zero, down and up are the processor's own IEEE 754 operations. LLVM leaves operations
inside the switch because they are its constrained intrinsics in a `strictfp` function.
"""

from __future__ import annotations

from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import Helper, Text, suffix, vec

_MODES = {"rz": 0, "rn": 1, "rp": 2, "rm": 3}  # numbers of llvm.set.rounding
_NAMES = ("fadd", "fsub", "fmul", "fdiv", "fma", "sqrt", "fptrunc", "sitofp", "uitofp")


def rounded(t: Text, operation: str, mode: str, source: str, *values: str, target: str = "") -> str:
    """`operation` of <32 x source> values in `mode`; conversions name their target element."""
    target = target or source
    return t.helper(
        ("rounded", operation, mode, source, target, len(values)), vec(target), *((vec(source), v) for v in values)
    )


@writes("rounded")
def write_rounded(operation: str, mode: str, source: str, target: str, count: int) -> Helper:
    """One operation of _NAMES on <32 x source>, giving <32 x target>."""
    assert operation in _NAMES
    result, kind = vec(target), vec(source)
    f = Helper(result, *(f"{kind} %a{i}" for i in range(count)), attributes="strictfp")
    overload = f"v32{suffix(target)}" + (f".v32{suffix(source)}" if source != target else "")
    name = f"llvm.experimental.constrained.{operation}.{overload}"
    f.declarations["set"] = "declare void @llvm.set.rounding(i32)"
    f.declarations[name] = f"declare {result} @{name}({', '.join([kind] * count)}, metadata, metadata)"
    f.label("entry")
    f.do(f"call void @llvm.set.rounding(i32 {_MODES[mode]}) strictfp")
    values = ", ".join(f"{kind} %a{i}" for i in range(count))
    value = f.op(f'call {result} @{name}({values}, metadata !"round.dynamic", metadata !"fpexcept.strict") strictfp')
    f.do(f"call void @llvm.set.rounding(i32 {_MODES['rn']}) strictfp")
    f.do(f"ret {result} {value}")
    return f
