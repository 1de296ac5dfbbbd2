"""What an atomic operation leaves in memory, for one lane: from the old value and the operand, as scalar code."""

from __future__ import annotations

from ppt_gpu.emulator.forms.float_formats import canonical_nan
from ppt_gpu.emulator.jit.arith.float_values import INFINITY
from ppt_gpu.emulator.llvm.text import BITS, ELEMENT, Helper

_BITWISE = ("and", "or", "xor")
_FLOATS = ("f16", "bf16", "f32", "f64")
PACKED = {"f16x2": "f16", "bf16x2": "bf16"}


def updated(f: Helper, operation: str, kind: str, old: str, b: str, c: str = "", *, flush: bool = False) -> str:
    """`operation` on integers as wide as PTX type `kind`. `flush`: subnormal inputs and results of an f32 addition
    become zero."""
    element = f"i{BITS[ELEMENT[kind]]}"
    if operation == "exch":
        return b
    if operation in _BITWISE:
        return f.op(f"{operation} {element} {old}, {b}")
    if operation == "cas":
        same = f.op(f"icmp eq {element} {old}, {b}")
        return f.op(f"select i1 {same}, {element} {c}, {element} {old}")
    if operation in ("inc", "dec"):
        return _wrapped(f, operation, element, old, b)
    if kind in PACKED:
        return _both_halves(f, operation, PACKED[kind], old, b)
    if kind in _FLOATS:
        return _sum(f, kind, old, b, flush) if operation == "add" else _extreme(f, operation, kind, old, b)
    if operation == "add":
        return f.op(f"add {element} {old}, {b}")
    predicate = ("s" if kind[0] == "s" else "u") + ("lt" if operation == "min" else "gt")
    return f.op(f"select i1 {f.op(f'icmp {predicate} {element} {old}, {b}')}, {element} {old}, {element} {b}")


def _wrapped(f: Helper, operation: str, element: str, old: str, b: str) -> str:
    """inc wraps to 0 from b on; dec wraps to b after 0 and from above b."""
    if operation == "inc":
        top = f.op(f"icmp uge {element} {old}, {b}")
        return f.op(f"select i1 {top}, {element} 0, {element} {f.op(f'add {element} {old}, 1')}")
    zero, above = f.op(f"icmp eq {element} {old}, 0"), f.op(f"icmp ugt {element} {old}, {b}")
    wrap = f.op(f"or i1 {zero}, {above}")
    return f.op(f"select i1 {wrap}, {element} {b}, {element} {f.op(f'sub {element} {old}, 1')}")


def _both_halves(f: Helper, operation: str, kind: str, old: str, b: str) -> str:
    total = ""
    for shift in (0, 16):
        parts = [f.op(f"trunc i32 {f.i32('lshr', value, shift)} to i16") for value in (old, b)]
        part = f.i32("shl", f.op(f"zext i16 {updated(f, operation, kind, *parts)} to i32"), shift)
        total = f.i32("or", total, part) if total else part
    return total


def _sum(f: Helper, kind: str, old: str, b: str, flush: bool) -> str:
    """Rounded to nearest even. Sums of f16 and bf16 are exact enough in f32 to be rounded twice (24 >= 2 p + 2)."""
    raw = f"i{BITS[ELEMENT[kind]]}"
    if flush:
        old, b = _flushed(f, old), _flushed(f, b)
    wide = "double" if kind == "f64" else "float"
    total = f.op(f"fadd {wide} {_widened(f, kind, old)}, {_widened(f, kind, b)}")
    nan = f.op(f"fcmp uno {wide} {total}, {total}")
    bits = _narrowed(f, kind, total)
    if flush:
        bits = _flushed(f, bits)
    return f.op(f"select i1 {nan}, {raw} {_constant(canonical_nan(kind), kind)}, {raw} {bits}")


def _flushed(f: Helper, bits: str) -> str:
    small = f.i32("icmp ult", f.i32("and", bits, 0x7FFFFFFF), 0x00800000)
    return f.op(f"select i1 {small}, i32 {f.i32('and', bits, -(1 << 31))}, i32 {bits}")


def _widened(f: Helper, kind: str, bits: str) -> str:
    if kind == "bf16":
        return f.op(f"bitcast i32 {f.i32('shl', f.op(f'zext i16 {bits} to i32'), 16)} to float")
    if kind == "f16":
        half = f.op(f"bitcast i16 {bits} to half")
        return f.op(f"fpext half {half} to float")
    return f.op(f"bitcast i{BITS[ELEMENT[kind]]} {bits} to {ELEMENT[kind]}")


def _narrowed(f: Helper, kind: str, value: str) -> str:
    """The bits of a sum, rounded to `kind`; for a NaN anything."""
    if kind == "f16":
        half = f.op(f"fptrunc float {value} to half")
        return f.op(f"bitcast half {half} to i16")
    if kind == "bf16":
        bits = f.op(f"bitcast float {value} to i32")
        odd = f.i32("and", f.i32("lshr", bits, 16), 1)
        rounded = f.i32("add", f.i32("add", bits, odd), 0x7FFF)
        return f.op(f"trunc i32 {f.i32('lshr', rounded, 16)} to i16")
    return f.op(f"bitcast {ELEMENT[kind]} {value} to i{BITS[ELEMENT[kind]]}")


def _extreme(f: Helper, operation: str, kind: str, old: str, b: str) -> str:
    """The other one where one is NaN, -0 below +0: floats ordered as integers with the negative ones reversed."""
    bits = BITS[ELEMENT[kind]]
    raw = f"i{bits}"
    magnitude = _constant((1 << (bits - 1)) - 1, kind)
    keys, nans = [], []
    for value in (old, b):
        sign = f.op(f"ashr {raw} {value}, {bits - 1}")
        keys.append(f.op(f"xor {raw} {value}, {f.op(f'lshr {raw} {sign}, 1')}"))
        size = f.op(f"and {raw} {value}, {magnitude}")
        nans.append(f.op(f"icmp ugt {raw} {size}, {_constant(INFINITY[kind], kind)}"))
    predicate = "slt" if operation == "min" else "sgt"
    chosen = f.op(f"select i1 {f.op(f'icmp {predicate} {raw} {keys[0]}, {keys[1]}')}, {raw} {old}, {raw} {b}")
    chosen = f.op(f"select i1 {nans[1]}, {raw} {old}, {raw} {chosen}")
    other = f.op(f"select i1 {nans[1]}, {raw} {_constant(canonical_nan(kind), kind)}, {raw} {b}")
    return f.op(f"select i1 {nans[0]}, {raw} {other}, {raw} {chosen}")


def _constant(bits: int, kind: str) -> str:
    width = BITS[ELEMENT[kind]]
    return str(bits - (1 << width) if bits >> (width - 1) else bits)
