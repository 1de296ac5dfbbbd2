"""Instructions in which the lanes of a warp work together: shuffles, votes, matches, reductions."""

from __future__ import annotations

from ppt_gpu.exec.jit_emit import Emitter, Unsupported, emits
from ppt_gpu.exec.jit_text import BITS, ELEMENT, vec
from ppt_gpu.exec.jit_types import is_signed, parts
from ppt_gpu.ptx.module import Imm, Instruction, Operand, Pair

V = vec("i32")


def _members(e: Emitter, operand: Operand) -> str:
    """The member mask of a .sync instruction as an i32 (that of the lowest executing lane)."""
    if isinstance(operand, Imm):
        value = int(operand.value) & 0xFFFFFFFF
        members = str(value - (1 << 32) if value >> 31 else value)
    else:
        lane = e.call("i32", "llvm.cttz.i32", ("i32", e.exec), ("i1", "false"))
        members = e.extract("i32", e.read(operand, "b32"), e.i32("and", lane, 31))
    e.helper(("together",), "void", ("ptr", "%w"), ("i32", members), ("i32", e.exec), ("i64", str(e.instruction.index)))
    return members


@emits("shfl")
def emit_shuffle(e: Emitter, i: Instruction) -> None:
    p = parts(i)
    mode = next(m for m in ("up", "down", "bfly", "idx") if p.has(m))
    if p.has("sync"):
        _members(e, i.operands[4])
    a, b, c = (e.read(o, "b32") for o in i.operands[1:4])
    arguments = ((V, a), (V, b), (V, c), ("i32", e.exec), ("ptr", "%scratch"))
    flags = e.helper(("shuffle", mode), "i32", *arguments)
    value = e.op(f"load {V}, ptr %scratch, align 8")
    destination = i.operands[0]
    if isinstance(destination, Pair):
        e.write(destination.second, "pred", e.mask_flags(flags))
        destination = destination.first
    e.write(destination, "b32", value)


@emits("vote")
def emit_vote(e: Emitter, i: Instruction) -> None:
    p = parts(i)
    flags = e.mask_bits(e.read(i.operands[1], "pred"))
    voters = e.exec
    if p.has("sync"):
        voters = e.i32("and", voters, _members(e, i.operands[2]))
    yes = e.i32("and", flags, voters)
    if p.has("ballot"):
        e.write(i.operands[0], "b32", e.splat("i32", yes))
        return
    every, none = e.i32("icmp eq", yes, voters), e.i32("icmp eq", yes, 0)
    if p.has("all"):
        result = every
    elif p.has("any"):
        result = e.op(f"xor i1 {none}, true")
    else:
        result = e.op(f"or i1 {every}, {none}")
    e.write(i.operands[0], "pred", e.splat("i1", result))


@emits("activemask")
def emit_active_mask(e: Emitter, i: Instruction) -> None:
    e.write(i.operands[0], "b32", e.splat("i32", e.exec))


@emits("elect")
def emit_elect(e: Emitter, i: Instruction) -> None:
    """The lowest executing member is elected."""
    members = e.i32("and", _members(e, i.operands[1]), e.exec)
    lane = e.i32("and", e.call("i32", "llvm.cttz.i32", ("i32", members), ("i1", "false")), 31)
    lowest = e.i32("and", members, e.i32("sub", "0", members))
    destination = i.operands[0]
    if not isinstance(destination, Pair):
        raise Unsupported("elect without a predicate")
    e.write(destination.first, "b32", e.splat("i32", lane))
    e.write(destination.second, "pred", e.mask_flags(lowest))


@emits("match")
def emit_match(e: Emitter, i: Instruction) -> None:
    p = parts(i)
    members = e.i32("and", _members(e, i.operands[2]), e.exec)
    element = ELEMENT[p.kind]
    value = e.read(i.operands[1], p.kind)
    same = e.helper(("match", BITS[element]), V, ("i32", members), (vec(element), value))
    destination = i.operands[0]
    if p.has("any"):
        e.write(destination, "b32", same)
        return
    everyone = e.op(f"icmp eq {V} {same}, {e.splat('i32', members)}")
    mask = e.select(everyone, "i32", same, "zeroinitializer")
    if isinstance(destination, Pair):
        e.write(destination.second, "pred", everyone)
        destination = destination.first
    e.write(destination, "b32", mask)


@emits("redux")
def emit_reduce(e: Emitter, i: Instruction) -> None:
    p = parts(i)
    operation = next((m for m in ("add", "min", "max", "and", "or", "xor") if p.has(m)), "")
    if not operation:
        raise Unsupported("this reduction")
    members = e.i32("and", _members(e, i.operands[2]), e.exec)
    if p.kind == "f32":
        flags = "_".join(name for name in ("abs", "NaN") if p.has(name))
        bits = e.cast(e.read(i.operands[1], "f32"), "float", "i32")
        found = e.helper(("reduce_float", operation, flags), V, ("i32", members), (V, bits))
        e.write(i.operands[0], "f32", e.cast(found, "i32", "float"))
        return
    value = e.read(i.operands[1], p.kind)
    total = e.helper(("reduce", operation, is_signed(p.kind)), "i32", ("i32", members), (V, value))
    e.write(i.operands[0], p.kind, e.splat("i32", total))
