"""Textures and surfaces: fetches call compiled code for the whole warp, surface accesses become global ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ppt_gpu.emulator.forms.computes import Unsupported
from ppt_gpu.emulator.forms.opcode import parts
from ppt_gpu.emulator.forms.texture_form import (
    BadForm,
    destination_of,
    handle_operand,
    query_word,
    request_of,
    surface_request,
)
from ppt_gpu.emulator.jit.emit import Emitter, emits
from ppt_gpu.emulator.jit.memory.address import arena_base
from ppt_gpu.emulator.jit.memory.memory import data_of, from_rows, get_rows, put_rows, read_rows, write_all
from ppt_gpu.emulator.jit.memory.reductions import OPERATIONS
from ppt_gpu.emulator.jit.memory.spaces import Store
from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import BITS, ELEMENT, Helper, const, vec
from ppt_gpu.emulator.memory.texture_fetch import compiled_address
from ppt_gpu.emulator.memory.warp_context import Fault, Slot
from ppt_gpu.ptx.instructions import vector_length
from ppt_gpu.ptx.module import Instruction, Operand
from ppt_gpu.workload.texture import TEXTURE_WINDOW

#: places in %scratch, in bytes
_HANDLES, _ADDRESS, _GIVEN, _OUT = 0, 256, 512, 1536
T = TypeVar("T")
V32, V64 = vec("i32"), vec("i64")


def _form(function: Callable[..., T], *arguments: Any) -> T:
    """What `texture_form` says, its refusals as this engine's."""
    try:
        return function(*arguments)
    except BadForm as error:
        raise Unsupported(str(error)) from None


def _at(e: Emitter, place: int) -> str:
    return e.offset_pointer("%scratch", place)


def _call(e: Emitter, name: str, place: Operand, *arguments: tuple[str, str]) -> str:
    """Put the handles in place and call compiled code; its i64 result. Lanes with a bad handle fault."""
    handles = e.read(_form(handle_operand, place), "u64")
    e.do(f"store {V64} {handles}, ptr {_at(e, _HANDLES)}, align 8")
    given = [
        ("ptr", e.field("%w", Slot.TEXTURES, "ptr")),
        ("i64", e.field("%w", Slot.TEXTURE_COUNT)),
        ("ptr", _at(e, _HANDLES)),
        ("i64", e.widen(e.exec)),
        *arguments,
    ]
    values = ", ".join(f"{kind} {value}" for kind, value in given)
    found = e.op(f"call i64 inttoptr (i64 {compiled_address(name)} to ptr)({values})")
    lost = e.op(f"trunc i64 {e.i64('lshr', found, 32)} to i32")
    none = e.i32("and", lost, e.i32("xor", _lanes(e, found), -1))
    e.fault(Fault.TEXTURE, none)
    return found


def _lanes(e: Emitter, found: str) -> str:
    return e.op(f"trunc i64 {found} to i32")


def _put(e: Emitter, operands: tuple[Operand, ...], kind: str, first: int = 0) -> None:
    for k, operand in enumerate(operands, first):
        e.do(f"store {vec(ELEMENT[kind])} {e.read(operand, kind)}, ptr {_at(e, _GIVEN + 128 * k)}, align 8")


@emits("tex", "tld4")
def emit_fetch(e: Emitter, i: Instruction) -> None:
    """One level of detail; .level and .grad are read as the base level."""
    request = _form(request_of, i)
    place = i.operands[1]
    _put(e, request.coordinates[: request.arrayed], "s32")
    _put(e, request.coordinates[request.arrayed :], "f32" if request.floats else "s32", int(request.arrayed))
    _put(e, request.offsets, "s32", 4)
    site = e.site()
    given, out = _at(e, _GIVEN), _at(e, _OUT)
    found = _call(
        e, "fetch", place,
        ("i64", str(request.code)), ("ptr", given), ("ptr", given), ("ptr", e.field("%w", Slot.ARENA, "ptr")),
        ("i64", arena_base(e)), ("ptr", out), ("ptr", out), ("ptr", _at(e, _ADDRESS)),
    )  # fmt: skip
    if e.traced:
        addresses = e.op(f"load {V64}, ptr {_at(e, _ADDRESS)}, align 8")
        lanes = _lanes(e, found)
        e.helper(("note",), "void", ("ptr", "%w"), ("ptr", site), ("i32", lanes), (V64, addresses))
    destination, resident = destination_of(i)
    rows = [e.op(f"load {V32}, ptr {e.offset_pointer(out, 128 * k)}, align 8") for k in range(4)]
    write_all(e, destination, request.kind, from_rows(e, rows, request.kind))
    if resident is not None:
        e.write(resident, "pred", const("i1", 1))


@writes("note")
def write_note() -> Helper:
    """Record an access to global memory that other code made."""
    f = Store("void", "global", "i32", 1, True)
    f.start_all()
    f.record_addresses("i64", f.a0, "%a")
    f.do("ret void")
    return f


def _surface(e: Emitter, i: Instruction, place: Operand, size: int) -> list[tuple[str, str]]:
    """Where a surface access goes: the first arguments of the helper that makes it."""
    request = _form(surface_request, i, place)
    _put(e, request.coordinates, "s32")
    found = _call(
        e, "place", place,
        ("i64", str(request.code)), ("ptr", _at(e, _GIVEN)), ("i64", str(size)), ("ptr", _at(e, _ADDRESS)),
    )  # fmt: skip
    lanes = _lanes(e, found)
    outside = e.i32("and", lanes, e.op(f"trunc i64 {e.i64('lshr', found, 32)} to i32"))
    e.fault(Fault.SURFACE, outside)
    within = e.i32("and", lanes, e.i32("xor", outside, -1))
    addresses = e.op(f"load {V64}, ptr {_at(e, _ADDRESS)}, align 8")
    return [("ptr", "%w"), ("ptr", e.site()), ("i32", within), (V64, addresses)]


@emits("suld")
def emit_surface_load(e: Emitter, i: Instruction) -> None:
    kind, count = parts(i).kind, vector_length(i)
    element = data_of(kind)[0]
    arguments = _surface(e, i, i.operands[1], count * BITS[element] // 8)
    key = ("access", "load", "global", element, count, e.traced)
    if count == 1:
        rows = [e.helper(key, vec(element), *arguments)]
    else:
        e.helper(key, "void", *arguments, ("ptr", "%scratch"))
        rows = get_rows(e, element, count)
    write_all(e, i.operands[0], kind, from_rows(e, rows, kind))


@emits("sust")
def emit_surface_store(e: Emitter, i: Instruction) -> None:
    kind, count = parts(i).kind, vector_length(i)
    element = data_of(kind)[0]
    arguments = _surface(e, i, i.operands[0], count * BITS[element] // 8)
    rows = read_rows(e, i.operands[1], kind, count)
    data = (vec(element), rows[0])
    if count > 1:
        data = ("ptr", "%scratch")
        put_rows(e, element, rows)
    e.helper(("access", "store", "global", element, count, e.traced), "void", *arguments, data)


@emits("sured")
def emit_surface_reduction(e: Emitter, i: Instruction) -> None:
    kind = parts(i).kind
    operation = next((m for m in i.modifiers if m in OPERATIONS), "")
    if not operation:
        raise Unsupported("this operation")
    element = data_of(kind)[0]
    arguments = _surface(e, i, i.operands[0], BITS[element] // 8)
    (row,) = read_rows(e, i.operands[1], kind, 1)
    e.helper(("atomic", operation, kind, "global", 1, e.traced), vec(element), *arguments, (vec(element), row))


@emits("txq", "suq")
def emit_query(e: Emitter, i: Instruction) -> None:
    word = _form(query_word, i)
    out = _at(e, _OUT)
    e.touched_memory = True
    _call(e, "query", i.operands[1], ("i64", str(word)), ("ptr", out))
    e.write(i.operands[0], "b32", e.op(f"load {V32}, ptr {out}, align 8"))


@emits("istypep")
def emit_is_type(e: Emitter, i: Instruction) -> None:
    """Handles of textures, samplers and surfaces are of one kind here."""
    away = e.v64("sub", e.read(i.operands[1], "u64"), const("i64", TEXTURE_WINDOW))
    e.write(i.operands[0], "pred", e.v64("icmp ult", away, const("i64", 1 << 32)))
