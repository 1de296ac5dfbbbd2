"""atom, red and multimem: the atomic operations of every type and vector length."""

from __future__ import annotations

from ppt_gpu.emulator.forms.computes import Unsupported
from ppt_gpu.emulator.forms.opcode import parts
from ppt_gpu.emulator.jit.access import address_element
from ppt_gpu.emulator.jit.emit import Emitter, emits
from ppt_gpu.emulator.jit.memory.mbarrier import complete_bytes
from ppt_gpu.emulator.jit.memory.memory import (
    address,
    data_of,
    from_rows,
    get_rows,
    load_rows,
    put_rows,
    read_rows,
    records,
    space_of,
    store_rows,
    write_all,
)
from ppt_gpu.emulator.llvm.text import BITS, ELEMENT, vec
from ppt_gpu.ptx.instructions import vector_length
from ppt_gpu.ptx.module import Instruction, Sink

OPERATIONS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
_TYPED = ("add", "min", "max")  # what they do depends on more than the width of the type


@emits("atom", "red")
def emit_reduction(e: Emitter, i: Instruction) -> None:
    """Lanes one after another, the lowest first."""
    kind, space, count = parts(i).kind, space_of(e, i), vector_length(i)
    operation = next((m for m in i.modifiers if m in OPERATIONS), "")
    if not operation or (kind == "b128" and operation not in ("exch", "cas")):
        raise Unsupported("this atomic operation")
    operands = list(i.operands)
    destination = operands.pop(0) if i.base == "atom" else Sink()
    rows = read_rows(e, operands[1], kind, count)
    width = len(rows)
    if operation == "cas":
        rows += read_rows(e, operands[2], kind, count)
    element = data_of(kind)[0]
    if kind != "b128" and operation not in _TYPED:
        kind_of = f"b{BITS[ELEMENT[kind]]}"
    else:
        kind_of = kind
    key = ("atomic", operation, kind_of, space, count, records(e, operands[0], space, 0))
    where = (vec(address_element(space)), address(e, operands[0], space))
    arguments = [("ptr", "%w"), ("ptr", e.site()), ("i32", e.exec), where]
    if width == 1:
        old = [e.helper(key, vec(element), *arguments, *((vec(element), row) for row in rows))]
    else:
        put_rows(e, element, rows)
        after = e.op(f"getelementptr {vec(element)}, ptr %scratch, i64 {len(rows)}")
        e.helper(key, "void", *arguments, ("ptr", "%scratch"), ("ptr", after))
        old = get_rows(e, element, width, after)
    if "async" in i.modifiers and len(operands) > 2:
        complete_bytes(e, i, operands[2], BITS[element] // 8)
    if not isinstance(destination, Sink):
        write_all(e, destination, kind, from_rows(e, old, kind))


@emits("multimem")
def emit_multimem(e: Emitter, i: Instruction) -> None:
    """On one device a multicast address is that of its one buffer: a plain load, store or reduction."""
    kind, space, count = parts(i).kind, space_of(e, i), vector_length(i)
    if "st" in i.modifiers:
        store_rows(e, i.operands[0], i.operands[1], kind, space, count)
    elif "ld_reduce" in i.modifiers:
        write_all(e, i.operands[0], kind, from_rows(e, load_rows(e, i.operands[1], kind, space, count), kind))
    else:
        emit_reduction(e, i)
