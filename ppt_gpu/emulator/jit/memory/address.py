"""Addresses: conversion between state spaces, tests of them, blocks of a cluster, hints to the caches."""

from __future__ import annotations

from ppt_gpu.emulator.forms.computes import Unsupported
from ppt_gpu.emulator.forms.opcode import parts
from ppt_gpu.emulator.jit.access import WINDOWS
from ppt_gpu.emulator.jit.emit import Emitter, emits
from ppt_gpu.emulator.jit.memory.memory import address
from ppt_gpu.emulator.jit.memory.ranges import TOUCHED_BYTES
from ppt_gpu.emulator.llvm.text import const, vec
from ppt_gpu.emulator.memory.memory import CLUSTER_SHIFT
from ppt_gpu.emulator.memory.warp_context import Slot
from ppt_gpu.ptx.module import Imm, Instruction
from ppt_gpu.ptx.operations import space_of


@emits("cvta")
def emit_convert_address(e: Emitter, i: Instruction) -> None:
    """Between a space's own addresses and generic ones: the window's start is added or taken away."""
    p = parts(i)
    kind = p.kind
    value = e.read(i.operands[1], kind)
    window = WINDOWS.get(space_of(i.modifiers))
    if window:
        if kind != "u64":
            raise Unsupported("32-bit generic addresses")
        value = e.v64("sub" if p.has("to") else "add", value, const("i64", window))
    e.write(i.operands[0], kind, value)


@emits("isspacep")
def emit_is_space(e: Emitter, i: Instruction) -> None:
    """Everything outside of the windows for const, local and shared is global, parameters too (PTX ISA, isspacep)."""
    space = space_of(i.modifiers)
    value = e.read(i.operands[1], "u64")
    if space == "shared":
        e.write(i.operands[0], "pred", _in_shared(e, value, cluster="shared::cluster" in i.modifiers))
    elif space in WINDOWS:
        e.write(i.operands[0], "pred", _in_window(e, value, space))
    elif space == "constant":
        e.write(i.operands[0], "pred", _in_const(e, value))
    else:
        others = [_in_window(e, value, "shared"), _in_window(e, value, "local"), _in_const(e, value)]
        either = e.binary("or", "i1", e.binary("or", "i1", others[0], others[1]), others[2])
        e.write(i.operands[0], "pred", e.binary("xor", "i1", either, const("i1", 1)))


def _in_window(e: Emitter, value: str, space: str) -> str:
    return e.v64("icmp eq", e.v64("lshr", value, const("i64", 32)), const("i64", WINDOWS[space] >> 32))


def _in_shared(e: Emitter, value: str, *, cluster: bool) -> str:
    """In the window, and for shared::cta in the own block."""
    inside = _in_window(e, value, "shared")
    if cluster:
        return inside
    rank = e.v64("and", e.v64("lshr", value, const("i64", CLUSTER_SHIFT)), const("i64", 0xFF))
    own = e.splat("i64", e.i64("add", e.field("%w", Slot.CLUSTER_RANK), 1))
    plain, mapped = e.v64("icmp eq", rank, "zeroinitializer"), e.v64("icmp eq", rank, own)
    return e.binary("and", "i1", inside, e.binary("or", "i1", plain, mapped))


def _in_const(e: Emitter, value: str) -> str:
    base = arena_base(e)
    size = e.i64("sub", e.field("%w", Slot.CONST_END), base)
    return e.v64("icmp ult", e.v64("sub", value, e.splat("i64", base)), e.splat("i64", size))


def arena_base(e: Emitter) -> str:
    """The address at which device memory begins."""
    return e.i64("sub", e.field("%w", Slot.ARENA), e.field("%w", Slot.HOST))


@emits("mapa")
def emit_map_address(e: Emitter, i: Instruction) -> None:
    """The address of the same shared byte in block `rank` of the cluster; generic unless .shared::cluster."""
    kind = parts(i).kind
    element = "i64" if kind == "u64" else "i32"
    value, rank = e.read(i.operands[1], kind), e.read(i.operands[2], "u32")
    if element == "i64":
        rank = e.widen_lanes(rank)
    tag = e.binary("shl", element, e.binary("add", element, rank, const(element, 1)), const(element, CLUSTER_SHIFT))
    cleared = e.binary("and", element, value, const(element, ~(0xFF << CLUSTER_SHIFT)))
    e.write(i.operands[0], kind, e.binary("or", element, cleared, tag))


@emits("getctarank")
def emit_rank(e: Emitter, i: Instruction) -> None:
    """The rank of the block in whose shared memory an address lies."""
    kind = parts(i).kind
    value = e.read(i.operands[1], kind)
    if kind == "u64":
        value = e.convert("trunc", "i64", value, "i32")
    tag = e.v32("lshr", value, const("i32", CLUSTER_SHIFT))
    own = e.splat("i32", e.op(f"trunc i64 {e.field('%w', Slot.CLUSTER_RANK)} to i32"))
    plain = e.v32("icmp eq", tag, "zeroinitializer")
    rank = e.v32("sub", tag, const("i32", 1))
    e.write(i.operands[0], "u32", e.select(plain, "i32", own, rank))


@emits("createpolicy")
def emit_policy(e: Emitter, i: Instruction) -> None:
    """A cache policy is a hint: its bits have no meaning here and are 0."""
    e.write(i.operands[0], "b64", "zeroinitializer")


@emits("prefetch", "prefetchu")
def emit_prefetch(e: Emitter, i: Instruction) -> None:
    """No effect; an address that belongs to nobody is no error (PTX ISA, prefetch)."""


@emits("discard", "applypriority")
def emit_hint(e: Emitter, i: Instruction) -> None:
    """No effect on values; the bytes must be aligned and exist. What discard leaves undefined stays as it was."""
    size = i.operands[1]
    if not isinstance(size, Imm) or size.value != TOUCHED_BYTES:
        raise Unsupported(f"another size than {TOUCHED_BYTES}")
    place = (vec("i64"), address(e, i.operands[0], "generic"))
    e.helper(("touch",), "void", ("ptr", "%w"), ("ptr", e.site()), ("i32", e.exec), place)


@emits("barrier")
def emit_cluster_arrival(e: Emitter, i: Instruction) -> None:
    """barrier.cluster.arrive; all other barriers end a segment and are written there."""
    if not {"cluster", "arrive"} <= set(i.modifiers):
        raise Unsupported("this barrier")
    arrived = e.i64("or", e.field("%w", Slot.CLUSTER_ARRIVED), e.widen(e.exec))
    e.set_field("%w", Slot.CLUSTER_ARRIVED, arrived)
