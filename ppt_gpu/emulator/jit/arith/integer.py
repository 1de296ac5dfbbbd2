"""Integer arithmetic."""

from __future__ import annotations

from collections.abc import Callable

from ppt_gpu.emulator.jit.arith.float import emit_float, is_float_kind
from ppt_gpu.emulator.jit.emit import Emitter, Unsupported, emits
from ppt_gpu.emulator.jit.types import Opcode, is_signed, parts
from ppt_gpu.emulator.llvm.text import BITS, ELEMENT, const, vec
from ppt_gpu.ptx.module import Instruction

PAIRS = ("u16x2", "s16x2")


@emits("add", "sub")
def emit_add(e: Emitter, i: Instruction) -> None:
    p = parts(i)
    if is_float_kind(p):
        return emit_float(e, i, p)
    if p.has(*PAIRS):
        return _on_pairs(e, i, lambda a, b: e.binary(i.base, "i16", a, b))
    element = ELEMENT[p.kind]
    a, b = e.read(i.operands[1], p.kind), e.read(i.operands[2], p.kind)
    if p.has("sat"):
        sign = "s" if is_signed(p.kind) else "u"
        result = e.intrinsic(f"{sign}{i.base}.sat", element, a, b)
    else:
        result = e.binary(i.base, element, a, b)
        step = e.steps.get(i.index)
        if step is not None:
            e.groups.derive(result, b if step.operand == 2 else a, step.distance)
        if p.has("cc"):
            nothing_borrowed = e.op(f"icmp uge {vec(element)} {a}, {b}") if i.base == "sub" else ""
            _write_carry(e, nothing_borrowed or _carry_out(e, element, a, b, ""))
    e.write(i.operands[0], p.kind, result)


@emits("addc", "subc")
def emit_add_carry(e: Emitter, i: Instruction) -> None:
    """d = a + b + CC, or a + ~b + CC: after a subtraction CC says that nothing was borrowed, as the adder leaves it.

    So addc and madc behind sub.cc add 1 where nothing was borrowed (nvcc's division of __int128 does that).
    """
    p = parts(i)
    element = ELEMENT[p.kind]
    a, b = e.read(i.operands[1], p.kind), e.read(i.operands[2], p.kind)
    if i.base == "subc":
        b = e.binary("xor", element, b, const(element, -1))
    carry = e.register(_carry_register(e), "i1")
    step = e.convert("zext", "i1", carry, element)
    result = e.binary("add", element, e.binary("add", element, a, b), step)
    if p.has("cc"):
        _write_carry(e, _carry_out(e, element, a, b, carry))
    e.write(i.operands[0], p.kind, result)


def _carry_register(e: Emitter) -> int:
    for number in (*e.instruction.reads, *e.instruction.writes):
        if e.kernel.registers[number].name == "%cc":
            return number
    raise Unsupported("a carry without its register")


def _write_carry(e: Emitter, flags: str) -> None:
    from ppt_gpu.ptx.module import Reg

    register = _carry_register(e)
    e.write(Reg(register), "pred", flags)


def _carry_out(e: Emitter, element: str, a: str, b: str, carry: str) -> str:
    """The carry of a + b + CC."""
    kind = vec(element)
    total = e.binary("add", element, a, b)
    over = e.op(f"icmp ult {kind} {total}, {a}")
    if not carry:
        return over
    full = e.op(f"icmp eq {kind} {total}, {const(element, -1)}")
    return e.binary("or", "i1", over, e.binary("and", "i1", full, carry))


def _extended(e: Emitter, value: str, kind: str) -> tuple[str, str]:
    """(value extended to twice the bits, that element)."""
    bits = BITS[ELEMENT[kind]] * 2
    extend = "sext" if is_signed(kind) else "zext"
    return e.convert(extend, ELEMENT[kind], value, f"i{bits}"), f"i{bits}"


def _product(e: Emitter, i: Instruction, p: Opcode) -> tuple[str, str]:
    """(a x b as .lo, .hi or .wide asks, PTX type of the result)."""
    a, b = e.read(i.operands[1], p.kind), e.read(i.operands[2], p.kind)
    element = ELEMENT[p.kind]
    if i.base.endswith("24"):
        return _product24(e, p, a, b), p.kind
    if not p.has("hi", "wide"):
        return e.binary("mul", element, a, b), p.kind
    if p.has("hi") and p.kind in ("s64", "u64"):
        return e.helper(("mulhi64", p.kind), vec("i64"), (vec("i64"), a), (vec("i64"), b)), p.kind
    (wide_a, wide), (wide_b, _) = _extended(e, a, p.kind), _extended(e, b, p.kind)
    product = e.binary("mul", wide, wide_a, wide_b)
    if p.has("wide"):
        return product, f"{p.kind[0]}{BITS[wide]}"
    high = e.binary("lshr", wide, product, const(wide, BITS[element]))
    return e.convert("trunc", wide, high, element), p.kind


def _product24(e: Emitter, p: Opcode, a: str, b: str) -> str:
    """mul24: the low 24 bits of each; .lo gives bits 0-31 of the 48-bit product, .hi bits 16-47."""
    shift = "ashr" if is_signed(p.kind) else "lshr"
    a, b = (e.binary(shift, "i32", e.binary("shl", "i32", v, const("i32", 8)), const("i32", 8)) for v in (a, b))
    if not p.has("hi"):
        return e.binary("mul", "i32", a, b)
    (wide_a, _), (wide_b, _) = _extended(e, a, p.kind), _extended(e, b, p.kind)
    high = e.binary("lshr", "i64", e.binary("mul", "i64", wide_a, wide_b), const("i64", 16))
    return e.convert("trunc", "i64", high, "i32")


@emits("mul", "mul24")
def emit_mul(e: Emitter, i: Instruction) -> None:
    p = parts(i)
    if is_float_kind(p):
        return emit_float(e, i, p)
    value, kind = _product(e, i, p)
    e.write(i.operands[0], kind, value)


@emits("mad", "mad24")
def emit_mad(e: Emitter, i: Instruction) -> None:
    p = parts(i)
    if is_float_kind(p):
        return emit_float(e, i, p)
    value, kind = _product(e, i, p)
    c, element = e.read(i.operands[3], kind), ELEMENT[kind]
    if p.has("sat"):
        result = e.intrinsic("sadd.sat", element, value, c)
    else:
        result = e.binary("add", element, value, c)
        if p.has("cc"):
            _write_carry(e, _carry_out(e, element, value, c, ""))
    e.write(i.operands[0], kind, result)


@emits("madc")
def emit_mad_carry(e: Emitter, i: Instruction) -> None:
    p = parts(i)
    value, kind = _product(e, i, p)
    c, element = e.read(i.operands[3], kind), ELEMENT[kind]
    carry = e.register(_carry_register(e), "i1")
    if p.has("sat"):  # exact in 64 bits
        if kind != "s32":
            raise Unsupported("saturation of another type than s32")
        terms = [e.convert("sext", element, v, "i64") for v in (value, c)] + [e.convert("zext", "i1", carry, "i64")]
        total = e.binary("add", "i64", e.binary("add", "i64", terms[0], terms[1]), terms[2])
        low, high = const("i64", -(1 << 31)), const("i64", (1 << 31) - 1)
        clamped = e.intrinsic("smin", "i64", e.intrinsic("smax", "i64", total, low), high)
        e.write(i.operands[0], kind, e.convert("trunc", "i64", clamped, element))
        return
    total = e.binary("add", element, value, c)
    result = e.binary("add", element, total, e.convert("zext", "i1", carry, element))
    if p.has("cc"):
        _write_carry(e, _carry_out(e, element, value, c, carry))
    e.write(i.operands[0], kind, result)


@emits("div", "rem")
def emit_div(e: Emitter, i: Instruction) -> None:
    """Division by 0 gives all ones and the dividend as remainder, as the hardware's routine does."""
    p = parts(i)
    if is_float_kind(p):
        return emit_float(e, i, p)
    a, b = e.read(i.operands[1], p.kind), e.read(i.operands[2], p.kind)
    kind = vec(ELEMENT[p.kind])
    e.write(i.operands[0], p.kind, e.helper((i.base, p.kind), kind, (kind, a), (kind, b)))


@emits("abs")
def emit_abs(e: Emitter, i: Instruction) -> None:
    p = parts(i)
    if is_float_kind(p):
        return emit_float(e, i, p)
    element = ELEMENT[p.kind]
    a = e.read(i.operands[1], p.kind)
    negative = e.op(f"icmp slt {vec(element)} {a}, zeroinitializer")
    e.write(i.operands[0], p.kind, e.select(negative, element, e.binary("sub", element, "zeroinitializer", a), a))


@emits("neg")
def emit_neg(e: Emitter, i: Instruction) -> None:
    p = parts(i)
    if is_float_kind(p):
        return emit_float(e, i, p)
    element = ELEMENT[p.kind]
    result = e.binary("sub", element, "zeroinitializer", e.read(i.operands[1], p.kind))
    e.write(i.operands[0], p.kind, result)


@emits("min", "max")
def emit_min_max(e: Emitter, i: Instruction) -> None:
    p = parts(i)
    if is_float_kind(p):
        return emit_float(e, i, p)
    sign = "s" if p.has("s16x2") or is_signed(p.kind) else "u"

    def lower(element: str) -> Callable[[str, str], str]:
        def choose(a: str, b: str) -> str:
            result = e.intrinsic(f"{sign}{i.base}", element, a, b)
            return e.intrinsic("smax", element, result, "zeroinitializer") if p.has("relu") else result

        return choose

    if p.has(*PAIRS):
        return _on_pairs(e, i, lower("i16"))
    a, b = e.read(i.operands[1], p.kind), e.read(i.operands[2], p.kind)
    e.write(i.operands[0], p.kind, lower(ELEMENT[p.kind])(a, b))


def _on_pairs(e: Emitter, i: Instruction, operate: Callable[[str, str], str]) -> None:
    """`operate` on the lower and the upper halves of two 32-bit operands (.u16x2, .s16x2)."""
    a, b = e.read(i.operands[1], "b32"), e.read(i.operands[2], "b32")
    low, high = (
        operate(e.convert("trunc", "i32", x, "i16"), e.convert("trunc", "i32", y, "i16"))
        for x, y in ((a, b), tuple(e.v32("lshr", v, const("i32", 16)) for v in (a, b)))
    )
    upper = e.v32("shl", e.convert("zext", "i16", high, "i32"), const("i32", 16))
    e.write(i.operands[0], "b32", e.v32("or", e.convert("zext", "i16", low, "i32"), upper))


@emits("sad")
def emit_sad(e: Emitter, i: Instruction) -> None:
    """d = c + |a - b|."""
    p = parts(i)
    element = ELEMENT[p.kind]
    a, b, c = (e.read(o, p.kind) for o in i.operands[1:4])
    sign = "s" if is_signed(p.kind) else "u"
    less = e.op(f"icmp {sign}lt {vec(element)} {a}, {b}")
    there, back = e.binary("sub", element, a, b), e.binary("sub", element, b, a)
    e.write(i.operands[0], p.kind, e.binary("add", element, c, e.select(less, element, back, there)))


@emits("dp4a", "dp2a")
def emit_dot(e: Emitter, i: Instruction) -> None:
    """Dot product of the bytes of a with the bytes of b (dp4a), or the halves of a with two bytes of b (dp2a)."""
    p = parts(i)
    kinds = [k for k in p.types if k in ("u32", "s32")]
    a, b = e.read(i.operands[1], "b32"), e.read(i.operands[2], "b32")
    total = e.read(i.operands[3], "b32")
    count, width = (4, 8) if i.base == "dp4a" else (2, 16)
    start = 16 if i.base == "dp2a" and p.has("hi") else 0
    for k in range(count):
        left = bit_field(e, a, k * width, width, is_signed(kinds[0]))
        right = bit_field(e, b, start + k * 8, 8, is_signed(kinds[1]))
        total = e.binary("add", "i32", total, e.binary("mul", "i32", left, right))
    e.write(i.operands[0], "b32", total)


def bit_field(e: Emitter, value: str, start: int, width: int, signed: bool) -> str:
    """Bits start to start + width of each i32 lane, extended."""
    up = e.binary("shl", "i32", value, const("i32", 32 - start - width))
    return e.binary("ashr" if signed else "lshr", "i32", up, const("i32", 32 - width))
