"""Moves, comparisons, selections."""

from __future__ import annotations

from ppt_gpu.exec.jit_emit import Emitter, Unsupported, emits
from ppt_gpu.exec.jit_float_values import flush
from ppt_gpu.exec.jit_text import BITS, ELEMENT, const, vec
from ppt_gpu.exec.jit_types import Opcode, is_float, is_signed, parts
from ppt_gpu.ptx.module import Instruction, Operand, Pair, Vec

_INTEGER_COMPARE = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
                    "lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}  # fmt: skip
_FLOAT_COMPARE = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge",
                  "equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge",
                  "num": "ord", "nan": "uno"}  # fmt: skip


@emits("mov")
def emit_move(e: Emitter, i: Instruction) -> None:
    kind = parts(i).kind
    destination, source = i.operands
    if isinstance(destination, Vec):
        _unpack(e, destination, e.read(source, kind), kind)
    elif isinstance(source, Vec):
        e.write(destination, kind, _pack(e, source, kind))
    else:
        e.write(destination, kind, e.read(source, kind))


def _unpack(e: Emitter, destination: Vec, value: str, kind: str) -> None:
    """Split into equal parts, the lowest first."""
    whole = BITS[ELEMENT[kind]]
    bits = whole // len(destination.items)
    if ELEMENT[kind][0] != "i":
        value = e.cast(value, ELEMENT[kind], f"i{whole}")
    for k, item in enumerate(destination.items):
        part = e.binary("lshr", f"i{whole}", value, const(f"i{whole}", k * bits)) if k else value
        e.write(item, f"b{bits}", e.convert("trunc", f"i{whole}", part, f"i{bits}"))


def _pack(e: Emitter, source: Vec, kind: str) -> str:
    whole = BITS[ELEMENT[kind]]
    bits = whole // len(source.items)
    total = "zeroinitializer"
    for k, item in enumerate(source.items):
        part = e.convert("zext", f"i{bits}", e.read(item, f"b{bits}"), f"i{whole}")
        if k:
            part = e.binary("shl", f"i{whole}", part, const(f"i{whole}", k * bits))
            part = e.binary("or", f"i{whole}", total, part)
        total = part
    return e.cast(total, f"i{whole}", ELEMENT[kind])


def compare(e: Emitter, p: Opcode, a: Operand, b: Operand) -> str:
    """The <32 x i1> of a comparison such as .lt.s32 or .geu.f32."""
    kind = p.kind
    element = ELEMENT[kind]
    left, right = e.read(a, kind), e.read(b, kind)
    if is_float(kind):
        if p.has("ftz") and kind == "f32":
            left, right = flush(e, left), flush(e, right)
        name = next(m for m in _FLOAT_COMPARE if m in p.modifiers)
        return e.op(f"fcmp {_FLOAT_COMPARE[name]} {vec(element)} {left}, {right}")
    if kind in ("bf16", "f16x2", "bf16x2"):
        raise Unsupported(f"comparison of .{kind}")
    name = next(m for m in _INTEGER_COMPARE if m in p.modifiers)
    predicate = _INTEGER_COMPARE[name]
    if predicate in ("lt", "le", "gt", "ge"):
        predicate = ("s" if is_signed(kind) else "u") + predicate
    return e.op(f"icmp {predicate} {vec(element)} {left}, {right}")


def _combine(e: Emitter, p: Opcode, flags: str, operands: tuple[Operand, ...]) -> str:
    """flags and/or/xor c, where the instruction has a third source."""
    if len(operands) < 4:
        return flags
    operation = next(m for m in ("and", "or", "xor") if m in p.modifiers)
    return e.binary(operation, "i1", flags, e.read(operands[3], "pred"))


@emits("setp")
def emit_set_predicate(e: Emitter, i: Instruction) -> None:
    p = parts(i)
    flags = compare(e, p, i.operands[1], i.operands[2])
    destination = i.operands[0]
    if isinstance(destination, Pair):
        opposite = e.binary("xor", "i1", flags, const("i1", 1))
        first, second = _combine(e, p, flags, i.operands), _combine(e, p, opposite, i.operands)
        e.write(destination.first, "pred", first)
        e.write(destination.second, "pred", second)
    else:
        e.write(destination, "pred", _combine(e, p, flags, i.operands))


@emits("set")
def emit_set(e: Emitter, i: Instruction) -> None:
    """All ones or 0; 1.0 or 0.0 for a float destination."""
    p = parts(i)
    target = p.types[0]
    flags = _combine(e, p, compare(e, p, i.operands[1], i.operands[2]), i.operands)
    element = ELEMENT[target]
    yes = const(element, 1.0) if is_float(target) else const(element, -1)
    e.write(i.operands[0], target, e.select(flags, element, yes, "zeroinitializer"))


@emits("selp")
def emit_select(e: Emitter, i: Instruction) -> None:
    kind = parts(i).kind
    a, b = e.read(i.operands[1], kind), e.read(i.operands[2], kind)
    e.write(i.operands[0], kind, e.select(e.read(i.operands[3], "pred"), ELEMENT[kind], a, b))


@emits("slct")
def emit_select_by_sign(e: Emitter, i: Instruction) -> None:
    """a where c >= 0 (also -0.0, but not NaN), else b."""
    p = parts(i)
    kind, test = p.types[0], p.types[1]
    a, b, c = e.read(i.operands[1], kind), e.read(i.operands[2], kind), e.read(i.operands[3], test)
    if test == "f32":
        flags = e.op(f"fcmp oge {vec('float')} {flush(e, c) if p.has('ftz') else c}, zeroinitializer")
    else:
        flags = e.v32("icmp sge", c, "zeroinitializer")
    e.write(i.operands[0], kind, e.select(flags, ELEMENT[kind], a, b))
