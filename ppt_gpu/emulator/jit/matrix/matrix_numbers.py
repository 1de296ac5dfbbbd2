"""Elements of matrices in compiled code: from the bits of 32 lanes to numbers, and back."""

from __future__ import annotations

from ppt_gpu.emulator.forms.float_formats import FORMATS, canonical_nan
from ppt_gpu.emulator.forms.matrix_form import ELEMENT_BITS, format_of
from ppt_gpu.emulator.jit.arith.formats import decode
from ppt_gpu.emulator.jit.loops import LoopHelper
from ppt_gpu.emulator.llvm.text import const, vec


def number_type(kind: str) -> str:
    """The LLVM type that the numbers of an element type are computed in."""
    if kind == "f64":
        return "double"
    return "i32" if kind in ("s8", "u8", "s4", "u4", "b1", "s32") else "float"


def element_bits(f: LoopHelper, word: str, kind: str, part: int) -> str:
    """The bits of part `part` of <32 x i32> registers, zero-extended; f64 registers as they are."""
    bits = 32 if kind == "b1" else ELEMENT_BITS[kind]
    if bits >= 32:
        return word
    if part:
        word = f.v32("lshr", word, const("i32", part * bits))
    return f.v32("and", word, const("i32", (1 << bits) - 1))


def decoded(f: LoopHelper, bits: str, kind: str) -> str:
    """Numbers of <32 x i32> (f64: i64) element bits."""
    if kind == "f64":
        return f.cast(bits, "i64", "double")
    if kind in ("s8", "s4"):
        shift = const("i32", 32 - ELEMENT_BITS[kind])
        return f.v32("ashr", f.v32("shl", bits, shift), shift)
    if kind not in FORMATS:
        return bits
    name = format_of(kind)
    width = FORMATS[name].width
    return decode(f, name, bits if width == 32 else f.convert("trunc", "i32", bits, f"i{width}"))


def encoded(f: LoopHelper, number: str, kind: str) -> str:
    """<32 x i32> (f64: i64) element bits of numbers; NaNs are canonical."""
    if kind == "s32":
        return number
    element = number_type(kind)
    wide = vec(element)
    nan = f.op(f"fcmp uno {wide} {number}, {number}")
    if kind == "f16":
        half = f.op(f"fptrunc {wide} {number} to <32 x half>")
        bits = f.op(f"bitcast <32 x half> {half} to <32 x i16>")
        bits = f.op(f"zext <32 x i16> {bits} to <32 x i32>")
        result = "i32"
    else:
        result = "i64" if kind == "f64" else "i32"
        bits = f.op(f"bitcast {wide} {number} to <32 x {result}>")
    quiet = const(result, canonical_nan(kind))
    return f.op(f"select <32 x i1> {nan}, <32 x {result}> {quiet}, <32 x {result}> {bits}")
