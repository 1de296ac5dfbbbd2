"""Instructions in which the lanes of a warp work together: shuffles, votes, matches, reductions."""

from __future__ import annotations

from ppt_gpu.emulator.forms.computes import Unsupported
from ppt_gpu.emulator.forms.opcode import is_signed, parts
from ppt_gpu.emulator.jit.emit import Emitter, emits
from ppt_gpu.emulator.llvm.text import BITS, ELEMENT, const, lanes, vec
from ppt_gpu.ptx.module import Imm, Instruction, Operand, Pair

V = vec("i32")
ONES = const("i1", 1)
LANE_NUMBERS = lanes("i32", 1)


def _members(e: Emitter, operand: Operand) -> tuple[str, str]:
    """Executing lanes that the member mask of a .sync instruction names: as an i32, and as one of each lane.

    The i32 is "" where lanes may give different masks: their groups work apart from each other.
    """
    if isinstance(operand, Imm):
        value = int(operand.value) & 0xFFFFFFFF
        named = str(value - (1 << 32) if value >> 31 else value)
        members = e.i32("and", named, e.exec)
        each = e.splat("i32", members)
    else:
        masks = e.read(operand, "b32")
        asked = e.select(e.mask_flags(e.exec), "i32", masks, "zeroinitializer")
        named = e.call("i32", "llvm.vector.reduce.or.v32i32", (V, asked))
        members, each = "", e.op(f"and {V} {masks}, {e.splat('i32', e.exec)}")
    e.helper(("together",), "void", ("ptr", "%w"), ("i32", named), ("i32", e.exec), ("i64", str(e.instruction.index)))
    return members, each


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
    voters, of_each = _members(e, i.operands[2]) if p.has("sync") else (e.exec, "")
    if not voters:
        yes_of_each = e.op(f"and {V} {of_each}, {e.splat('i32', flags)}")
        _write_vote(e, i, yes_of_each, of_each)
        return
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


def _write_vote(e: Emitter, i: Instruction, yes: str, voters: str) -> None:
    """The result of a vote whose lanes have voters of their own."""
    p = parts(i)
    if p.has("ballot"):
        e.write(i.operands[0], "b32", yes)
        return
    every = e.op(f"icmp eq {V} {yes}, {voters}")
    if not p.has("all"):
        some = e.op(f"icmp ne {V} {yes}, zeroinitializer")
        none = e.op(f"xor {vec('i1')} {some}, {ONES}")
        every = some if p.has("any") else e.op(f"or {vec('i1')} {every}, {none}")
    e.write(i.operands[0], "pred", every)


@emits("activemask")
def emit_active_mask(e: Emitter, i: Instruction) -> None:
    e.write(i.operands[0], "b32", e.splat("i32", e.exec))


@emits("elect")
def emit_elect(e: Emitter, i: Instruction) -> None:
    """The lowest executing member is elected."""
    _, members = _members(e, i.operands[1])
    lane = e.call(V, "llvm.cttz.v32i32", (V, members), ("i1", "false"))
    lane = e.op(f"and {V} {lane}, {const('i32', 31)}")
    destination = i.operands[0]
    if not isinstance(destination, Pair):
        raise Unsupported("elect without a predicate")
    e.write(destination.first, "b32", lane)
    e.write(destination.second, "pred", e.op(f"icmp eq {V} {lane}, {LANE_NUMBERS}"))


@emits("match")
def emit_match(e: Emitter, i: Instruction) -> None:
    p = parts(i)
    _, members = _members(e, i.operands[2])
    element = ELEMENT[p.kind]
    value = e.read(i.operands[1], p.kind)
    same = e.helper(("match", BITS[element]), V, ("i32", e.exec), (vec(element), value))
    same = e.op(f"and {V} {same}, {members}")
    destination = i.operands[0]
    if p.has("any"):
        e.write(destination, "b32", same)
        return
    everyone = e.op(f"icmp eq {V} {same}, {members}")
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
    members, of_each = _members(e, i.operands[2])
    floats = p.kind == "f32"
    form = "_".join(name for name in ("abs", "NaN") if p.has(name)) if floats else is_signed(p.kind)
    key = ("reduce_float" if floats else "reduce", operation, form)
    value = e.read(i.operands[1], p.kind)
    if floats:
        value = e.cast(value, "float", "i32")
    if not members:
        found = e.helper(("reduce_groups", *key), V, ("i32", e.exec), (V, of_each), (V, value))
    elif floats:
        found = e.helper(key, V, ("i32", members), (V, value))
    else:
        found = e.splat("i32", e.helper(key, "i32", ("i32", members), (V, value)))
    e.write(i.operands[0], p.kind, e.cast(found, "i32", "float") if floats else found)
