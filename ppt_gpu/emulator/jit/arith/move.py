"""Moves."""

from __future__ import annotations

from ppt_gpu.emulator.forms.opcode import parts
from ppt_gpu.emulator.jit.emit import Emitter, emits
from ppt_gpu.emulator.llvm.text import BITS, ELEMENT, const
from ppt_gpu.ptx.module import Instruction, Vec


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
