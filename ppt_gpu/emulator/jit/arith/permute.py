"""Bytes permuted, and the n-th one bit found: bit instructions of the compiled engine that are helper functions."""

from __future__ import annotations

from ppt_gpu.emulator.jit.emit import Emitter, emits
from ppt_gpu.emulator.jit.types import parts
from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import Helper, const, vec
from ppt_gpu.ptx.module import Instruction


@emits("fns")
def emit_find_nth(e: Emitter, i: Instruction) -> None:
    kind = vec("i32")
    e.write(i.operands[0], "b32", e.helper(("fns",), kind, *((kind, e.read(o, "b32")) for o in i.operands[1:4])))


@writes("fns")
def write_find_nth() -> Helper:
    """fns: the place of the |n|-th one bit of the mask from `base` up (n > 0) or down; n = 0: at `base` itself.

    The wanted bits are put at the low end, upside down for n < 0; then the lowest one is cleared n - 1 times.
    """
    kind = vec("i32")
    f = Helper(kind, f"{kind} %mask", f"{kind} %base", f"{kind} %n")
    f.label("entry")
    zero = f.v32("icmp eq", "%n", "zeroinitializer")
    down = f.v32("icmp slt", "%n", "zeroinitializer")
    count = f.select(zero, "i32", const("i32", 1), f.call(kind, "llvm.abs.v32i32", (kind, "%n"), ("i1", "false")))
    start = f.v32("and", "%base", const("i32", 31))
    beyond = f.v32("icmp ugt", "%base", const("i32", 31))
    # upwards: from start on; downwards: the mask turned round, from 31 - start on
    turned = f.intrinsic("bitreverse", "i32", "%mask")
    source = f.select(down, "i32", turned, "%mask")
    last = f.v32("sub", const("i32", 31), start)
    first = f.select(down, "i32", f.select(beyond, "i32", "zeroinitializer", last), start)
    left = f.v32("and", source, f.v32("shl", const("i32", -1), first))
    none = f.binary("and", "i1", beyond, f.binary("xor", "i1", down, const("i1", 1)))
    left = f.select(none, "i32", "zeroinitializer", left)
    only = f.v32("and", left, f.v32("shl", const("i32", 1), start))
    left = f.select(zero, "i32", only, left)
    for k in range(1, 32):
        more = f.v32("icmp ugt", count, const("i32", k))
        fewer = f.v32("and", left, f.v32("sub", left, const("i32", 1)))
        left = f.select(more, "i32", fewer, left)
    left = f.select(f.v32("icmp ugt", count, const("i32", 32)), "i32", "zeroinitializer", left)
    place = f.call(kind, "llvm.cttz.v32i32", (kind, left), ("i1", "false"))
    place = f.select(down, "i32", f.v32("sub", const("i32", 31), place), place)
    missing = f.v32("icmp eq", left, "zeroinitializer")
    f.do(f"ret {kind} {f.select(missing, 'i32', const('i32', -1), place)}")
    return f


@emits("prmt")
def emit_permute(e: Emitter, i: Instruction) -> None:
    """Four bytes chosen from b:a; in the default mode by four selector nibbles."""
    p = parts(i)
    kind = vec("i32")
    mode = next((m for m in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16") if p.has(m)), "")
    values = [(kind, e.read(o, "b32")) for o in i.operands[1:4]]
    e.write(i.operands[0], "b32", e.helper(("prmt", mode), kind, *values))


def _pick(f: Helper, mode: str, place: int) -> str:
    """The number of the byte (0-7) that goes to `place`; in the default mode bit 3 repeats its sign."""
    if not mode:
        return f.v32("and", f.v32("lshr", "%c", const("i32", 4 * place)), const("i32", 15))
    n = f.v32("and", "%c", const("i32", 3))
    here = const("i32", place)
    if mode == "rc8":
        return n
    if mode in ("f4e", "b4e"):
        return f.v32("and", f.v32("add" if mode == "f4e" else "sub", n, here), const("i32", 7))
    if mode in ("ecl", "ecr"):
        return f.intrinsic("umax" if mode == "ecl" else "umin", "i32", n, here)
    halves = f.v32("shl", f.v32("and", n, const("i32", 1)), const("i32", 1))  # rc16
    return f.v32("or", halves, const("i32", place & 1))


@writes("prmt")
def write_permute(mode: str) -> Helper:
    """prmt.b32 with a mode, or "" for the default one."""
    kind = vec("i32")
    f = Helper(kind, f"{kind} %a", f"{kind} %b", f"{kind} %c")
    f.label("entry")
    high = f.v64("shl", f.widen_lanes("%b"), const("i64", 32))
    both = f.v64("or", high, f.widen_lanes("%a"))
    result = "zeroinitializer"
    for place in range(4):
        pick = _pick(f, mode, place)
        shift = f.widen_lanes(f.v32("shl", f.v32("and", pick, const("i32", 7)), const("i32", 3)))
        byte = f.convert("trunc", "i64", f.v64("lshr", both, shift), "i8")
        repeat = f.v32("icmp uge", pick, const("i32", 8))
        sign = f.binary("ashr", "i8", byte, const("i8", 7))
        chosen = f.convert("zext", "i8", f.select(repeat, "i8", sign, byte), "i32")
        result = f.v32("or", result, f.v32("shl", chosen, const("i32", 8 * place)))
    f.do(f"ret {kind} {result}")
    return f
