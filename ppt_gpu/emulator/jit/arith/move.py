"""Moves, and comparisons of floats."""

from __future__ import annotations

from ppt_gpu.emulator.forms.opcode import Opcode, parts
from ppt_gpu.emulator.jit.arith.float import read_bits, write_bits
from ppt_gpu.emulator.jit.arith.float_library import half, join
from ppt_gpu.emulator.jit.arith.float_values import PARTS, VALUE, WIDTH, flush, flush_bits, values_of
from ppt_gpu.emulator.jit.emit import Emitter, emits
from ppt_gpu.emulator.llvm.text import BITS, ELEMENT, const, vec
from ppt_gpu.ptx.module import Instruction, Operand, Pair, Vec

_FLOAT_COMPARE = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge",
                  "equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge",
                  "num": "ord", "nan": "uno"}  # fmt: skip


@emits("mov")
def emit_move(e: Emitter, i: Instruction) -> None:
    kind = parts(i).kind
    destination, source = i.operands
    if isinstance(destination, Vec) and isinstance(source, Vec):  # vector registers
        for item, value in zip(destination.items, [e.read(item, kind) for item in source.items], strict=True):
            e.write(item, kind, value)
    elif isinstance(destination, Vec):
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


def compare(e: Emitter, p: Opcode, kind: str, a: Operand, b: Operand) -> list[str]:
    """The <32 x i1> of a comparison of floats such as .geu.f32; two of a packed type, the lower half first."""
    if kind in PARTS:
        whole = [read_bits(e, operand, kind) for operand in (a, b)]
        pairs = [[half(e, kind, bits, upper) for bits in whole] for upper in (False, True)]
        return [_compare_floats(e, p, PARTS[kind], *pair) for pair in pairs]
    return [_compare_floats(e, p, kind, read_bits(e, a, kind), read_bits(e, b, kind))]


def _compare_floats(e: Emitter, p: Opcode, kind: str, left: str, right: str) -> str:
    if p.has("ftz") and kind in ("f32", "f16"):
        left, right = flush_bits(e, kind, left), flush_bits(e, kind, right)
    name = next(m for m in p.order if m in _FLOAT_COMPARE)
    x, y = values_of(e, kind, left), values_of(e, kind, right)
    return e.op(f"fcmp {_FLOAT_COMPARE[name]} {vec(VALUE[kind])} {x}, {y}")


def _combine(e: Emitter, p: Opcode, flags: str, operands: tuple[Operand, ...]) -> str:
    """flags and/or/xor c, where the instruction has a third source."""
    if len(operands) < 4:
        return flags
    operation = next(m for m in p.order if m in ("and", "or", "xor"))
    return e.binary(operation, "i1", flags, e.read(operands[3], "pred"))


@emits("setp")
def emit_set_predicate(e: Emitter, i: Instruction) -> None:
    """p|q is the comparison and its opposite; of packed types the lower and the upper half."""
    p = parts(i)
    flags = compare(e, p, p.order[-1], i.operands[1], i.operands[2])
    destination = i.operands[0]
    if isinstance(destination, Pair):
        other = flags[1] if len(flags) > 1 else e.binary("xor", "i1", flags[0], const("i1", 1))
        first, second = _combine(e, p, flags[0], i.operands), _combine(e, p, other, i.operands)
        e.write(destination.first, "pred", first)
        e.write(destination.second, "pred", second)
    else:
        e.write(destination, "pred", _combine(e, p, flags[0], i.operands))


#: what set writes for "true", by destination type; integers: all ones
_TRUE = {"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F800000}


@emits("set")
def emit_set(e: Emitter, i: Instruction) -> None:
    """All ones or 0; 1.0 or 0.0 for a float destination; of packed types in each half."""
    p = parts(i)
    source = p.order[-1]
    target = next(m for m in p.order if m in ELEMENT)
    flags = [_combine(e, p, f, i.operands) for f in compare(e, p, source, i.operands[1], i.operands[2])]
    part = PARTS.get(target, target)
    width = WIDTH.get(part, 16 if len(flags) > 1 else BITS[ELEMENT[part]])
    element = f"i{width}"
    found = [e.select(f, element, const(element, _TRUE.get(part, -1)), "zeroinitializer") for f in flags]
    if len(found) > 1:
        e.write(i.operands[0], "b32", join(e, source, *found))
    elif part in WIDTH:
        write_bits(e, i.operands[0], part, found[0])
    else:
        e.write(i.operands[0], part, found[0])


@emits("slct")
def emit_select_by_sign(e: Emitter, i: Instruction) -> None:
    """a where c >= 0 (also -0.0, but not NaN), else b."""
    p = parts(i)
    kind = p.types[0]
    a, b, c = e.read(i.operands[1], kind), e.read(i.operands[2], kind), e.read(i.operands[3], "f32")
    flags = e.op(f"fcmp oge {vec('float')} {flush(e, c) if p.has('ftz') else c}, zeroinitializer")
    e.write(i.operands[0], kind, e.select(flags, ELEMENT[kind], a, b))
