"""ld, what st does, and the instructions that order or hint memory."""

from __future__ import annotations

from ppt_gpu.emulator.forms.computes import Unsupported
from ppt_gpu.emulator.forms.opcode import parts
from ppt_gpu.emulator.jit.access import address_element
from ppt_gpu.emulator.jit.emit import Emitter, emits
from ppt_gpu.emulator.jit.memory.frame import parameter_place, parameter_rows, store_parameter
from ppt_gpu.emulator.jit.memory.spaces import PLACES
from ppt_gpu.emulator.llvm.text import BITS, ELEMENT, LANES, const, vec
from ppt_gpu.emulator.memory.warp_context import Slot
from ppt_gpu.ptx.instructions import form, is_traced, vector_length
from ppt_gpu.ptx.module import Instruction, Mem, Operand, Reg, Sink, Sym, items_of

#: spaces of data; the others hold what a launch gives
DATA = ("global", "shared", "local", "cluster", "generic", "generic-cluster")
#: spaces in which the lanes of an access lie in one object
GROUPED = ("global", "shared", "local")


def space_of(e: Emitter, i: Instruction) -> str:
    """The name by which helpers know the instruction's space."""
    space = form(i.opcode).space or "generic"
    if space == "shared" and "shared::cluster" in i.modifiers:
        return "cluster"
    if space == "generic" and e.clusters:
        return "generic-cluster"
    return {"constant": "const"}.get(space, space)


def address(e: Emitter, operand: Operand, space: str) -> str:
    """The address operand as a vector of the space's address width; narrower registers are extended with zeros."""
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
    return e.binary("add", element, value, const(element, offset)) if offset else value


def records(e: Emitter, operand: Operand, space: str, size: int) -> bool:
    """Does the access of `size` bytes a lane at hand leave a record? Not where it follows another one."""
    if not e.traced or space not in GROUPED or not isinstance(operand, Mem) or not isinstance(operand.base, Reg):
        return e.traced and is_traced(e.instruction)
    own, wanted = e.elements[operand.base.id], address_element(space)
    if BITS[own] < BITS[wanted]:  # sums in it may wrap where addresses do not
        return True
    base = e.register(operand.base.id, own)
    kind: tuple[str, ...] = (space, e.guard_name)
    scale = 1
    if space == "local":  # the lanes' places lie `size` bytes from each other, and in turns (`layout.local_address`)
        kind, scale = (*kind, str(size)), LANES
    return not e.groups.follows(kind, base, operand.offset, BITS[wanted], scale)


def data_of(kind: str) -> tuple[str, int]:
    """The integer element that carries a type through memory, and how many of them make one."""
    if kind == "b128":
        return "i64", 2
    return f"i{BITS[ELEMENT[kind]]}", 1


def to_rows(e: Emitter, values: list[str], kind: str) -> list[str]:
    """Values of a type as rows of its memory element."""
    if kind != "b128":
        return [e.cast(value, ELEMENT[kind], data_of(kind)[0]) for value in values]
    rows = []
    for value in values:
        high = e.binary("lshr", "i128", value, const("i128", 64))
        rows += [e.convert("trunc", "i128", part, "i64") for part in (value, high)]
    return rows


def from_rows(e: Emitter, rows: list[str], kind: str) -> list[str]:
    """Rows of the memory element as values of the type."""
    if kind != "b128":
        return [e.cast(row, data_of(kind)[0], ELEMENT[kind]) for row in rows]
    values = []
    for low, high in zip(rows[::2], rows[1::2], strict=True):
        parts_of = [e.convert("zext", "i64", row, "i128") for row in (low, high)]
        shifted = e.binary("shl", "i128", parts_of[1], const("i128", 64))
        values.append(e.binary("or", "i128", parts_of[0], shifted))
    return values


def write_all(e: Emitter, destination: Operand, kind: str, values: list[str]) -> None:
    """Give each element of a destination its value."""
    for item, value in zip(items_of(destination), values, strict=True):
        if not isinstance(item, Sink):
            e.write(item, kind, value)


def read_rows(e: Emitter, operand: Operand, kind: str, count: int) -> list[str]:
    """The `count` elements of a source operand, as rows of the memory element."""
    items = items_of(operand)
    if len(items) != count:
        raise Unsupported("a vector of another length than its type")
    return to_rows(e, [e.read(item, kind) for item in items], kind)


def put_rows(e: Emitter, element: str, rows: list[str]) -> None:
    """Store rows in the scratch memory of the call."""
    for k, row in enumerate(rows):
        at = e.op(f"getelementptr {vec(element)}, ptr %scratch, i64 {k}")
        e.do(f"store {vec(element)} {row}, ptr {at}, align 8")


def get_rows(e: Emitter, element: str, count: int, pointer: str = "%scratch") -> list[str]:
    """Load rows that a helper left."""
    places = [e.op(f"getelementptr {vec(element)}, ptr {pointer}, i64 {k}") for k in range(count)]
    return [e.op(f"load {vec(element)}, ptr {at}, align 8") for at in places]


@emits("ld", "ldu")
def emit_load(e: Emitter, i: Instruction) -> None:
    kind, space, count = parts(i).kind, space_of(e, i), vector_length(i)
    operand = i.operands[1]
    place = _place(e, operand, kind, space, count)
    if place is not None:
        rows = parameter_rows(e, place, data_of(kind)[0], data_of(kind)[1] * count)
    elif space == "param" and isinstance(operand, Mem) and isinstance(operand.base, Sym):
        rows = _parameter(e, operand, kind, count)
    elif not e.wants(i.writes) and space in DATA:
        _place_of(e, "load", operand, kind, space, count)
        rows = ["zeroinitializer"] * (data_of(kind)[1] * count)
    else:
        rows = load_rows(e, operand, kind, space, count)
    write_all(e, i.operands[0], kind, from_rows(e, rows, kind))


def _place(e: Emitter, operand: Operand, kind: str, space: str, count: int) -> str | None:
    """The place in local memory of a function's parameter or result, None for other accesses."""
    if space != "param" or not isinstance(operand, Mem):
        return None
    return parameter_place(e, operand, BITS[ELEMENT[kind]] // 8 * count)


def _parameter(e: Emitter, operand: Mem, kind: str, count: int) -> list[str]:
    """A kernel parameter at a fixed place: one scalar load for all lanes."""
    param = next((p for p in e.kernel.params if isinstance(operand.base, Sym) and p.name == operand.base.name), None)
    if param is None or not isinstance(operand.base, Sym):
        raise Unsupported("this parameter")
    element, each = data_of(kind)
    count *= each
    size = BITS[element] // 8
    inside = operand.base.offset + operand.offset
    if inside < 0 or inside + size * count > param.bytes:
        raise Unsupported(f"a read outside of parameter '{param.name}'")
    base = e.once("param", lambda: e.field("%w", Slot.PARAM, "ptr"))
    places = [e.offset_pointer(base, param.offset + inside + k * size) for k in range(count)]
    return [e.splat(element, e.op(f"load {element}, ptr {at}, align 1")) for at in places]


def _place_of(e: Emitter, access: str, operand: Operand, kind: str, space: str, count: int) -> None:
    """A load or store of which only the place matters."""
    element, each = data_of(kind)
    count *= each
    where = (vec(address_element(space)), address(e, operand, space))
    key = ("access", PLACES[access], space, element, count, records(e, operand, space, BITS[element] // 8 * count))
    e.helper(key, "void", ("ptr", "%w"), ("ptr", e.site()), ("i32", e.exec), where)


def load_rows(e: Emitter, operand: Operand, kind: str, space: str, count: int) -> list[str]:
    element, each = data_of(kind)
    count *= each
    where = (vec(address_element(space)), address(e, operand, space))
    arguments = [("ptr", "%w"), ("ptr", e.site()), ("i32", e.exec), where]
    key = ("access", "load", space, element, count, records(e, operand, space, BITS[element] // 8 * count))
    if count == 1:
        return [e.helper(key, vec(element), *arguments)]
    e.helper(key, "void", *arguments, ("ptr", "%scratch"))
    return get_rows(e, element, count)


def store(e: Emitter, i: Instruction) -> None:
    """st of registers, by threads or through the asynchronous proxy."""
    space, kind, count = space_of(e, i), parts(i).kind, vector_length(i)
    place = _place(e, i.operands[0], kind, space, count)
    if place is not None:
        store_parameter(e, place, data_of(kind)[0], read_rows(e, i.operands[1], kind, count))
    elif space in ("param", "const"):
        raise Unsupported(f"stores to {space}")
    else:
        store_rows(e, i.operands[0], i.operands[1], kind, space, count)


def store_rows(e: Emitter, where: Operand, source: Operand, kind: str, space: str, count: int) -> None:
    rows = read_rows(e, source, kind, count)
    element = data_of(kind)[0]
    if not e.keeps(space):
        _place_of(e, "store", where, kind, space, count)
        return
    data = (vec(element), rows[0])
    if len(rows) > 1:
        data = ("ptr", "%scratch")
        put_rows(e, element, rows)
    place = (vec(address_element(space)), address(e, where, space))
    key = ("access", "store", space, element, len(rows), records(e, where, space, BITS[element] // 8 * len(rows)))
    e.helper(key, "void", ("ptr", "%w"), ("ptr", e.site()), ("i32", e.exec), place, data)


@emits("membar", "fence", "nanosleep", "pmevent", "griddepcontrol")
def emit_nothing(e: Emitter, i: Instruction) -> None:
    """No effect on values: accesses happen in order and whole."""
