"""Division, roots and the special functions of the SFU.

The approximate forms are computed more exactly than the hardware does: within one f32 unit in the last place.
"""

from __future__ import annotations

from ppt_gpu.exec.jit_emit import Emitter, Unsupported, emits
from ppt_gpu.exec.jit_float import SCALE, check_kind, is_tiny, read, round_directed, scale_up, widened, write
from ppt_gpu.exec.jit_text import const, vec
from ppt_gpu.exec.jit_types import Opcode, parts
from ppt_gpu.ptx.module import Instruction


def float_divide(e: Emitter, i: Instruction, p: Opcode) -> None:
    element = check_kind(p)
    a, b = read(e, p, i.operands[1]), read(e, p, i.operands[2])
    write(e, p, i.operands[0], _quotient(e, p, element, a, b))


def _quotient(e: Emitter, p: Opcode, element: str, a: str, b: str) -> str:
    if p.rounding == "rn":
        return e.binary("fdiv", element, a, b)
    if element == "double":
        return round_directed(e, p.rounding, *_quotient_and_side(e, a, b), element)
    wide_a, wide_b = widened(e, a, b)
    quotient = e.binary("fdiv", "double", wide_a, wide_b)
    remainder = e.intrinsic("fma", "double", e.op(f"fneg {vec('double')} {quotient}"), wide_b, wide_a)
    return round_directed(e, p.rounding, quotient, e.binary("fdiv", "double", remainder, wide_b))


def _quotient_and_side(e: Emitter, a: str, b: str) -> tuple[str, str]:
    """(a / b rounded, a number with the sign of the exact quotient minus it): that of the remainder over b."""
    quotient = e.binary("fdiv", "double", a, b)
    minus = e.op(f"fneg {vec('double')} {quotient}")
    remainder = e.intrinsic("fma", "double", minus, b, a)
    scaled = e.intrinsic("fma", "double", scale_up(e, minus), b, scale_up(e, a))
    remainder = e.select(is_tiny(e, a), "double", scaled, remainder)
    negative = e.op(f"fcmp olt {vec('double')} {b}, zeroinitializer")
    return quotient, e.select(negative, "double", e.op(f"fneg {vec('double')} {remainder}"), remainder)


@emits("rcp")
def emit_reciprocal(e: Emitter, i: Instruction) -> None:
    p = parts(i)
    element = check_kind(p)
    write(e, p, i.operands[0], _quotient(e, p, element, const(element, 1.0), read(e, p, i.operands[1])))


@emits("sqrt")
def emit_root(e: Emitter, i: Instruction) -> None:
    p = parts(i)
    element = check_kind(p)
    a = read(e, p, i.operands[1])
    if p.rounding == "rn":
        result = e.intrinsic("sqrt", element, a)
    else:
        result = _directed_root(e, p, element, a)
    write(e, p, i.operands[0], result)


def _directed_root(e: Emitter, p: Opcode, element: str, a: str) -> str:
    """Tiny arguments are taken 2^600 times larger and their root 2^300 times smaller, so that remainders exist."""
    wide = a if element == "double" else widened(e, a)[0]
    tiny = is_tiny(e, wide)
    wide = e.select(tiny, "double", scale_up(e, wide), wide)
    root = e.intrinsic("sqrt", "double", wide)
    remainder = e.intrinsic("fma", "double", e.op(f"fneg {vec('double')} {root}"), root, wide)
    error = e.binary("fdiv", "double", remainder, e.binary("fadd", "double", root, root))
    zero = e.op(f"fcmp oeq {vec('double')} {root}, zeroinitializer")  # 0/0
    error = e.select(zero, "double", "zeroinitializer", error)
    result = round_directed(e, p.rounding, root, error, element)
    if element == "float":  # every f32 is far from tiny as an f64
        return result
    return e.select(tiny, element, e.binary("fmul", element, result, const(element, SCALE**-0.5)), result)


@emits("rsqrt")
def emit_inverse_root(e: Emitter, i: Instruction) -> None:
    p = parts(i)
    element = check_kind(p)
    a = read(e, p, i.operands[1])
    if element == "float":
        (a,) = widened(e, a)
    result = e.binary("fdiv", "double", const("double", 1.0), e.intrinsic("sqrt", "double", a))
    if element == "float":
        result = e.convert("fptrunc", "double", result, "float")
    write(e, p, i.operands[0], result)


@emits("sin", "cos", "ex2", "lg2", "tanh")
def emit_special_function(e: Emitter, i: Instruction) -> None:
    p = parts(i)
    if p.kind != "f32":
        raise Unsupported(f"{i.base} of .{p.kind}")
    kind = vec("float")
    write(e, p, i.operands[0], e.helper((i.base,), kind, (kind, read(e, p, i.operands[1]))))
