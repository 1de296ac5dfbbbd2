"""Logic, shifts and bit fields."""

from __future__ import annotations

from ppt_gpu.emulator.jit.emit import Emitter, Unsupported, emits
from ppt_gpu.emulator.jit.types import is_signed, parts
from ppt_gpu.emulator.llvm.text import BITS, ELEMENT, const, vec
from ppt_gpu.ptx.module import Imm, Instruction, Pair


@emits("and", "or", "xor")
def emit_logic(e: Emitter, i: Instruction) -> None:
    kind = parts(i).kind
    a, b = e.read(i.operands[1], kind), e.read(i.operands[2], kind)
    e.write(i.operands[0], kind, e.binary(i.base, ELEMENT[kind], a, b))


@emits("not")
def emit_not(e: Emitter, i: Instruction) -> None:
    kind = parts(i).kind
    element = ELEMENT[kind]
    e.write(i.operands[0], kind, e.binary("xor", element, e.read(i.operands[1], kind), const(element, -1)))


@emits("cnot")
def emit_cnot(e: Emitter, i: Instruction) -> None:
    kind = parts(i).kind
    element = ELEMENT[kind]
    zero = e.op(f"icmp eq {vec(element)} {e.read(i.operands[1], kind)}, zeroinitializer")
    e.write(i.operands[0], kind, zero if element == "i1" else e.convert("zext", "i1", zero, element))


@emits("lop3")
def emit_lop3(e: Emitter, i: Instruction) -> None:
    """Any logic function of three inputs: bit (a b c) of the 8-bit table, as a sum of its minterms."""
    p = parts(i)
    operands = i.operands
    a, b, c = (e.read(o, "b32") for o in operands[1:4])
    table, destination = operands[4], operands[0]
    if not isinstance(table, Imm):
        raise Unsupported("lop3 with a table that is not a literal")
    result = _lookup(e, a, b, c, int(table.value) & 0xFF)
    if isinstance(destination, Pair):  # .and, .or: a predicate too, (d != 0) combined with the last operand
        flags = e.binary("and" if p.has("and") else "or", "i1", e.v32("icmp ne", result, "zeroinitializer"),
                         e.read(operands[5], "pred"))  # fmt: skip
        e.write(destination.second, "pred", flags)
        destination = destination.first
    e.write(destination, "b32", result)


def _lookup(e: Emitter, a: str, b: str, c: str, table: int) -> str:
    """By Shannon's expansion: on a, then b, then c, with the constant cases folded."""
    upper, lower = _on_two(e, b, c, table >> 4), _on_two(e, b, c, table & 15)
    return _choose(e, a, upper, lower)


def _on_two(e: Emitter, b: str, c: str, table: int) -> str:
    return _choose(e, b, _on_one(e, c, table >> 2), _on_one(e, c, table & 3))


def _on_one(e: Emitter, c: str, table: int) -> str:
    """Table bit 0: value for c = 0, bit 1: for c = 1."""
    if table == 1:
        return e.binary("xor", "i32", c, const("i32", -1))
    return {0: "zeroinitializer", 2: c, 3: const("i32", -1)}[table]


def _choose(e: Emitter, flag: str, yes: str, no: str) -> str:
    if yes == no:
        return yes
    ones = const("i32", -1)
    if (yes, no) == (ones, "zeroinitializer"):
        return flag
    left = flag if yes == ones else "zeroinitializer"
    if yes not in (ones, "zeroinitializer"):
        left = e.binary("and", "i32", flag, yes)
    if no == "zeroinitializer":
        return left
    inverse = e.binary("xor", "i32", flag, ones)
    right = inverse if no == ones else e.binary("and", "i32", inverse, no)
    return e.binary("or", "i32", left, right)


@emits("shl", "shr")
def emit_shift(e: Emitter, i: Instruction) -> None:
    """Shift amounts above the width act as the width: 0, or the sign in every bit."""
    kind = parts(i).kind
    element = ELEMENT[kind]
    bits = BITS[element]
    a = e.read(i.operands[1], kind)
    signed = i.base == "shr" and is_signed(kind)
    operation = "shl" if i.base == "shl" else ("ashr" if signed else "lshr")
    if isinstance(i.operands[2], Imm):
        amount = int(i.operands[2].value) & 0xFFFFFFFF
        if amount >= bits and not signed:
            result = "zeroinitializer"
        else:
            result = e.binary(operation, element, a, const(element, min(amount, bits - 1)))
    else:
        result = _shift_lanes(e, operation, element, a, e.read(i.operands[2], "u32"))
    e.write(i.operands[0], kind, result)


def _shift_lanes(e: Emitter, operation: str, element: str, a: str, amounts: str) -> str:
    bits = BITS[element]
    over = e.v32("icmp ugt", amounts, const("i32", bits - 1))
    clamped = e.select(over, "i32", const("i32", bits - 1), amounts)
    if element != "i32":
        clamped = e.convert("trunc" if bits < 32 else "zext", "i32", clamped, element)
    shifted = e.binary(operation, element, a, clamped)
    return shifted if operation == "ashr" else e.select(over, element, "zeroinitializer", shifted)


@emits("shf")
def emit_funnel(e: Emitter, i: Instruction) -> None:
    """Shift the 64 bits b:a. l keeps the upper half of a left shift, r the lower half of a right shift."""
    p = parts(i)
    a, b, c = (e.read(o, "b32") for o in i.operands[1:4])
    amount = e.convert("zext", "i32", c, "i64")
    if p.has("wrap"):
        amount = e.v64("and", amount, const("i64", 31))
    else:
        amount = e.select(e.v64("icmp ugt", amount, const("i64", 32)), "i64", const("i64", 32), amount)
    high = e.v64("shl", e.convert("zext", "i32", b, "i64"), const("i64", 32))
    both = e.v64("or", high, e.convert("zext", "i32", a, "i64"))
    if p.has("l"):
        both = e.v64("lshr", e.v64("shl", both, amount), const("i64", 32))
    else:
        both = e.v64("lshr", both, amount)
    e.write(i.operands[0], "b32", e.convert("trunc", "i64", both, "i32"))


@emits("bfe")
def emit_extract(e: Emitter, i: Instruction) -> None:
    """`len` bits of a from `pos`; beyond the top the sign (or 0) repeats. pos and len count modulo 256."""
    kind = parts(i).kind
    element = ELEMENT[kind]
    bits = BITS[element]
    a = e.read(i.operands[1], kind)
    pos, length = (_byte(e, o) for o in i.operands[2:4])
    pos, length = (_min(e, v, bits) for v in (pos, length))
    end = _min(e, e.v32("add", pos, length), bits)
    left = e.v32("sub", const("i32", bits), end)  # bits above the field
    keep = e.v32("sub", end, pos)  # bits of the field that exist
    up = _shift_lanes(e, "shl", element, a, left)
    down = e.v32("sub", const("i32", bits), keep)
    if not is_signed(kind):
        result = _shift_lanes(e, "lshr", element, up, down)
    else:
        # an empty field is 0; one that starts above the top is all sign
        result = _shift_lanes(e, "ashr", element, up, down)
        sign = e.binary("ashr", element, a, const(element, bits - 1))
        beyond = e.v32("icmp uge", pos, const("i32", bits))
        result = e.select(beyond, element, sign, result)
        empty = e.v32("icmp eq", length, "zeroinitializer")
        result = e.select(empty, element, "zeroinitializer", result)
    e.write(i.operands[0], kind, result)


@emits("bfi")
def emit_insert(e: Emitter, i: Instruction) -> None:
    """`len` low bits of a replace those of b from `pos` on."""
    kind = parts(i).kind
    element = ELEMENT[kind]
    bits = BITS[element]
    a, b = e.read(i.operands[1], kind), e.read(i.operands[2], kind)
    pos, length = (_byte(e, o) for o in i.operands[3:5])
    ones = _shift_lanes(e, "shl", element, const(element, -1), _min(e, length, bits))
    field = e.binary("xor", element, ones, const(element, -1))  # len ones
    mask = _shift_lanes(e, "shl", element, field, pos)
    moved = _shift_lanes(e, "shl", element, a, pos)
    inside = e.binary("and", element, moved, mask)
    outside = e.binary("and", element, b, e.binary("xor", element, mask, const(element, -1)))
    e.write(i.operands[0], kind, e.binary("or", element, inside, outside))


def _byte(e: Emitter, operand: object) -> str:
    return e.v32("and", e.read(operand, "b32"), const("i32", 255))  # type: ignore[arg-type]


def _min(e: Emitter, value: str, limit: int) -> str:
    over = e.v32("icmp ugt", value, const("i32", limit))
    return e.select(over, "i32", const("i32", limit), value)


@emits("popc", "clz", "brev")
def emit_count(e: Emitter, i: Instruction) -> None:
    kind = parts(i).kind
    element = ELEMENT[kind]
    a = e.read(i.operands[1], kind)
    if i.base == "brev":
        e.write(i.operands[0], kind, e.intrinsic("bitreverse", element, a))
        return
    if i.base == "popc":
        count = e.intrinsic("ctpop", element, a)
    else:
        count = e.call(vec(element), f"llvm.ctlz.v32{element}", (vec(element), a), ("i1", "false"))
    if element == "i64":
        count = e.convert("trunc", "i64", count, "i32")
    e.write(i.operands[0], "u32", count)


@emits("bfind")
def emit_find(e: Emitter, i: Instruction) -> None:
    """Position of the highest bit that is not the sign; -1 if there is none. .shiftamt: the shift that moves it up."""
    p = parts(i)
    element = ELEMENT[p.kind]
    a = e.read(i.operands[1], p.kind)
    if is_signed(p.kind):
        a = e.binary("xor", element, a, e.binary("ashr", element, a, const(element, BITS[element] - 1)))
    zeros = e.call(vec(element), f"llvm.ctlz.v32{element}", (vec(element), a), ("i1", "false"))
    if element == "i64":
        zeros = e.convert("trunc", "i64", zeros, "i32")
    none = e.op(f"icmp eq {vec(element)} {a}, zeroinitializer")
    found = zeros if p.has("shiftamt") else e.v32("sub", const("i32", BITS[element] - 1), zeros)
    e.write(i.operands[0], "u32", e.select(none, "i32", const("i32", -1), found))


@emits("bmsk")
def emit_mask(e: Emitter, i: Instruction) -> None:
    """`b` ones from bit `a` on; .clamp limits both to 32, .wrap takes them modulo 32."""
    p = parts(i)
    a, b = e.read(i.operands[1], "b32"), e.read(i.operands[2], "b32")
    if p.has("wrap"):
        a, b = e.v32("and", a, const("i32", 31)), e.v32("and", b, const("i32", 31))
    ones = _shift_lanes(e, "shl", "i32", const("i32", -1), b)
    field = e.v32("xor", ones, const("i32", -1))
    e.write(i.operands[0], "b32", _shift_lanes(e, "shl", "i32", field, a))


@emits("szext")
def emit_extend(e: Emitter, i: Instruction) -> None:
    """The lowest `b` bits of a, extended by sign or zero; .clamp limits b to 32, .wrap takes it modulo 32."""
    p = parts(i)
    a, b = e.read(i.operands[1], "b32"), e.read(i.operands[2], "b32")
    b = e.v32("and", b, const("i32", 31)) if p.has("wrap") else _min(e, b, 32)
    above = e.v32("sub", const("i32", 32), b)
    up = _shift_lanes(e, "shl", "i32", a, above)
    down = _shift_lanes(e, "ashr" if is_signed(p.kind) else "lshr", "i32", up, above)
    e.write(i.operands[0], p.kind, e.select(e.v32("icmp eq", b, "zeroinitializer"), "i32", "zeroinitializer", down))
