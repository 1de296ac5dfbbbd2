"""ld, st, atom, red and the instructions that order or hint memory."""

from __future__ import annotations

from ppt_gpu.exec.jit_access import address_element
from ppt_gpu.exec.jit_context import Slot
from ppt_gpu.exec.jit_emit import Emitter, Unsupported, emits
from ppt_gpu.exec.jit_text import BITS, ELEMENT, const, vec
from ppt_gpu.exec.jit_types import parts
from ppt_gpu.ptx.instructions import form
from ppt_gpu.ptx.module import Instruction, Mem, Operand, Reg, Sink, Sym, Vec

_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_OPERATIONS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")


def space_of(i: Instruction) -> str:
    space = form(i.opcode).space or "generic"
    return {"constant": "const"}.get(space, space)


def address(e: Emitter, operand: Operand, space: str) -> str:
    """The address operand as a vector of the space's address width."""
    if not isinstance(operand, Mem):
        raise Unsupported("an operand that is no address")
    element = address_element(space)
    kind = f"u{BITS[element]}"
    base, offset = operand.base, operand.offset
    if base is None:
        return const(element, offset)
    if isinstance(base, Sym):
        return e.read(Sym(base.name, base.offset + offset), kind)
    value = e.read(base, kind)
    if not offset:
        return value
    if isinstance(base, Reg) and BITS[e.elements[base.id]] < BITS[element]:
        raise Unsupported("a 32-bit address in a 64-bit space")
    return e.binary("add", element, value, const(element, offset))


def _length(i: Instruction) -> int:
    return next((n for m, n in _VECTORS.items() if m in i.modifiers), 1)


def _data(kind: str) -> str:
    """The integer element that carries a type through memory."""
    return f"i{BITS[ELEMENT[kind]]}"


@emits("ld", "ldu")
def emit_load(e: Emitter, i: Instruction) -> None:
    kind, space, count = parts(i).kind, space_of(i), _length(i)
    operand = i.operands[1]
    if space == "param" and isinstance(operand, Mem) and isinstance(operand.base, Sym):
        rows = _parameter(e, operand, kind, count)
    else:
        rows = _load(e, i, operand, kind, space, count)
    destinations = i.operands[0].items if isinstance(i.operands[0], Vec) else (i.operands[0],)
    for destination, value in zip(destinations, rows, strict=True):
        if not isinstance(destination, Sink):
            e.write(destination, kind, e.cast(value, _data(kind), ELEMENT[kind]))


def _parameter(e: Emitter, operand: Mem, kind: str, count: int) -> list[str]:
    """A kernel parameter at a fixed place: one scalar load for all lanes."""
    param = next((p for p in e.kernel.params if isinstance(operand.base, Sym) and p.name == operand.base.name), None)
    if param is None or not isinstance(operand.base, Sym):
        raise Unsupported("parameters of calls")
    size = BITS[ELEMENT[kind]] // 8
    inside = operand.base.offset + operand.offset
    if inside < 0 or inside + size * count > param.bytes:
        raise Unsupported(f"a read outside of parameter '{param.name}'")
    base = e.once("param", lambda: e.field("%w", Slot.PARAM, "ptr"))
    rows = []
    for k in range(count):
        at = e.offset_pointer(base, param.offset + inside + k * size)
        rows.append(e.splat(_data(kind), e.op(f"load {_data(kind)}, ptr {at}, align 1")))
    return rows


def _load(e: Emitter, i: Instruction, operand: Operand, kind: str, space: str, count: int) -> list[str]:
    element = _data(kind)
    where = (vec(address_element(space)), address(e, operand, space))
    arguments = [("ptr", "%w"), ("ptr", e.site()), ("i32", e.exec), where]
    key = ("access", "load", space, element, count, e.traced)
    if count == 1:
        return [e.helper(key, vec(element), *arguments)]
    e.helper(key, "void", *arguments, ("ptr", "%scratch"))
    return [_row(e, element, k) for k in range(count)]


def _row(e: Emitter, element: str, k: int) -> str:
    at = e.op(f"getelementptr {vec(element)}, ptr %scratch, i64 {k}")
    return e.op(f"load {vec(element)}, ptr {at}, align 8")


@emits("st")
def emit_store(e: Emitter, i: Instruction) -> None:
    kind, space, count = parts(i).kind, space_of(i), _length(i)
    if space in ("param", "const"):
        raise Unsupported(f"stores to {space}")
    element = _data(kind)
    values = i.operands[1].items if isinstance(i.operands[1], Vec) else (i.operands[1],)
    if len(values) != count:
        raise Unsupported("a vector of another length than its type")
    rows = [e.cast(e.read(v, kind), ELEMENT[kind], element) for v in values]
    data = (vec(element), rows[0])
    if count > 1:
        data = ("ptr", "%scratch")
        for k, row in enumerate(rows):
            at = e.op(f"getelementptr {vec(element)}, ptr %scratch, i64 {k}")
            e.do(f"store {vec(element)} {row}, ptr {at}, align 8")
    where = (vec(address_element(space)), address(e, i.operands[0], space))
    key = ("access", "store", space, element, count, e.traced)
    e.helper(key, "void", ("ptr", "%w"), ("ptr", e.site()), ("i32", e.exec), where, data)


@emits("atom", "red")
def emit_atomic(e: Emitter, i: Instruction) -> None:
    """Lanes one after another, the lowest first."""
    p, space = parts(i), space_of(i)
    kind = p.kind
    operation = next((m for m in i.modifiers if m in _OPERATIONS), "")
    if not operation or kind not in ELEMENT or ELEMENT[kind] == "half" or kind in ("bf16", "f16x2", "bf16x2"):
        raise Unsupported("this atomic operation")
    if _length(i) > 1:
        raise Unsupported("vector atomics")
    element = _data(kind)
    operands = list(i.operands)
    destination = operands.pop(0) if i.base == "atom" else Sink()
    where = address(e, operands[0], space)
    values = [e.cast(e.read(o, kind), ELEMENT[kind], element) for o in operands[1:3]]
    if operation != "cas":
        values = values[:1]
    arguments = [("ptr", "%w"), ("ptr", e.site()), ("i32", e.exec), (vec(address_element(space)), where)]
    arguments += [(vec(element), value) for value in values]
    form_of = kind if operation in ("add", "min", "max") else f"b{BITS[element]}"
    key = ("atomic", operation, form_of, space, e.traced)
    old = e.helper(key, vec(element), *arguments)
    if not isinstance(destination, Sink):
        e.write(destination, kind, e.cast(old, element, ELEMENT[kind]))


@emits("membar", "fence", "prefetch", "prefetchu", "nanosleep", "discard", "applypriority", "pmevent", "griddepcontrol")
def emit_nothing(e: Emitter, i: Instruction) -> None:
    """No effect on values: accesses happen in order and whole."""
