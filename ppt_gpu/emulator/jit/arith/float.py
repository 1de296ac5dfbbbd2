"""Floating-point instructions: f16, bf16, f32 and f64, scalar and packed.

The plain forms of f32 and f64 are written in place; all others call a helper function (`arith.float_library`).
`.ftz` replaces subnormal inputs and results by zeros of the same sign, `.sat` clamps to [0, 1] with NaN as 0.
"""

from __future__ import annotations

from ppt_gpu.emulator.forms.float_formats import encode
from ppt_gpu.emulator.forms.opcode import Opcode, parts
from ppt_gpu.emulator.jit.arith.float_values import (
    INFINITY,
    LOWEST_NORMAL,
    PARTS,
    VALUE,
    WIDTH,
    canonical,
    raw,
)
from ppt_gpu.emulator.jit.emit import Emitter, Unsupported, emits
from ppt_gpu.emulator.llvm.text import ELEMENT, const, vec
from ppt_gpu.ptx.module import Imm, Instruction, Operand

_FLAGS = ("ftz", "sat", "relu", "NaN", "xorsign", "abs", "approx", "full")
_INLINE = {"add": "fadd", "sub": "fsub", "mul": "fmul", "fma": "fma", "mad": "fma", "sqrt": "sqrt", "div": "fdiv"}


def read_bits(e: Emitter, operand: Operand, kind: str) -> str:
    """The bits of a floating-point operand; literals become values of its type."""
    if kind in PARTS:
        return e.read(operand, "b64" if kind == "f32x2" else "b32")
    if kind == "bf16" and isinstance(operand, Imm) and (operand.bits is None or operand.width != 16):
        import numpy as np

        return const("i16", int(encode(np.array([float(operand.value)]), "bf16")[0]))
    element = ELEMENT[kind]
    return e.cast(e.read(operand, kind), element, raw(kind))


def write_bits(e: Emitter, operand: Operand, kind: str, bits: str) -> None:
    if kind in PARTS:
        e.write(operand, "b64" if kind == "f32x2" else "b32", bits)
    elif kind == "bf16":
        e.write(operand, "b16", bits)
    else:
        e.write(operand, kind, e.cast(bits, raw(kind), ELEMENT[kind]))


def emit_float(e: Emitter, i: Instruction, p: Opcode) -> None:
    """Any floating-point instruction with one result and operands of one type, or f32 with narrower ones."""
    kind = _kind(p)
    sources = _source_types(i, p, kind)
    flags = [name for name in _FLAGS if p.has(name)]
    if p.has("oob"):
        raise Unsupported(".oob: the NaN that marks elements out of bounds is not documented")
    if p.rounding not in ("rn", "rz", "rm", "rp"):
        raise Unsupported(f"rounding .{p.rounding}")
    plain = p.rounding == "rn" and not set(flags) - {"full"} and kind in VALUE and set(sources) == {kind}
    if plain and kind in ("f32", "f64") and i.base in _INLINE:
        _inline(e, i, kind)
        return
    if i.base in ("neg", "abs") and kind not in PARTS and "ftz" not in flags:
        _change_sign(e, i, kind)
        return
    values = [(vec(f"i{_width(s)}"), read_bits(e, o, s)) for s, o in zip(sources, i.operands[1:], strict=True)]
    key = ("float", i.base, kind, p.rounding, "_".join(flags), "_".join(sources))
    write_bits(e, i.operands[0], kind, e.helper(key, vec(f"i{_width(kind)}"), *values))


def _kind(p: Opcode) -> str:
    return next((m for m in PARTS if p.has(m)), p.types[0] if p.types else "")


def _width(kind: str) -> int:
    return 2 * WIDTH[PARTS[kind]] if kind in PARTS else WIDTH[kind]


def _source_types(i: Instruction, p: Opcode, kind: str) -> list[str]:
    """Types of the operands: in "fma.f32.f16" a and b are narrow, in "add.f32.f16" a."""
    count = len(i.operands) - 1
    if len(p.types) < 2:
        return [kind] * count
    narrow = 2 if i.base == "fma" else 1
    return [p.types[1]] * narrow + [kind] * (count - narrow)


def _inline(e: Emitter, i: Instruction, kind: str) -> None:
    element, name = VALUE[kind], _INLINE[i.base]
    values = [e.read(operand, kind) for operand in i.operands[1:]]
    if name in ("fma", "sqrt"):
        result = e.intrinsic(name, element, *values)
    else:
        result = e.binary(name, element, values[0], values[1])
    e.write(i.operands[0], kind, canonical(e, kind, result))


def _change_sign(e: Emitter, i: Instruction, kind: str) -> None:
    element, top = raw(kind), 1 << (WIDTH[kind] - 1)
    operation, mask = ("xor", top) if i.base == "neg" else ("and", top - 1)
    bits = read_bits(e, i.operands[1], kind)
    write_bits(e, i.operands[0], kind, e.binary(operation, element, bits, const(element, mask)))


@emits(
    "add", "sub", "mul", "mad", "fma", "div", "abs", "neg", "min", "max",
    "rcp", "sqrt", "rsqrt", "sin", "cos", "ex2", "lg2", "tanh",
)  # fmt: skip
def emit_arithmetic(e: Emitter, i: Instruction) -> None:
    emit_float(e, i, parts(i))


@emits("copysign")
def emit_copysign(e: Emitter, i: Instruction) -> None:
    """The sign of a with the magnitude of b."""
    kind = parts(i).kind
    a, b = (e.read(operand, kind) for operand in i.operands[1:3])
    e.write(i.operands[0], kind, e.intrinsic("copysign", ELEMENT[kind], b, a))


@emits("testp")
def emit_test(e: Emitter, i: Instruction) -> None:
    p = parts(i)
    element, width = raw(p.kind), WIDTH[p.kind]
    value = e.binary("and", element, e.read(i.operands[1], f"b{width}"), const(element, (1 << (width - 1)) - 1))
    infinity, lowest = INFINITY[p.kind], LOWEST_NORMAL[p.kind]
    tests = {"finite": ("ult", infinity), "infinite": ("eq", infinity), "number": ("ule", infinity),
             "notanumber": ("ugt", infinity), "subnormal": ("ult", lowest)}  # fmt: skip
    for name, (predicate, limit) in tests.items():
        if p.has(name):
            flags = e.op(f"icmp {predicate} {vec(element)} {value}, {const(element, limit)}")
            if name == "subnormal":
                some = e.op(f"icmp ne {vec(element)} {value}, zeroinitializer")
                flags = e.binary("and", "i1", flags, some)
            e.write(i.operands[0], "pred", flags)
            return
    above = e.op(f"icmp uge {vec(element)} {value}, {const(element, lowest)}")
    below = e.op(f"icmp ult {vec(element)} {value}, {const(element, infinity)}")
    zero = e.op(f"icmp eq {vec(element)} {value}, zeroinitializer")  # zeros count as normal (PTX ISA, testp)
    e.write(i.operands[0], "pred", e.binary("or", "i1", zero, e.binary("and", "i1", above, below)))
