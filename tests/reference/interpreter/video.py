"""Video instructions of the interpreter: exact, on Python integers, lane by lane."""

from __future__ import annotations

from ppt_gpu.emulator.forms.conversions import limits
from ppt_gpu.emulator.forms.video import SCALAR, SIMD, Video, register_of, video
from ppt_gpu.ptx.module import Instruction
from reference.interpreter.arith import Execute
from reference.interpreter.integer import as_int, per_lane
from reference.interpreter.warp import Warp


def _operate(v: Video, a: int, b: int) -> int:
    if v.operation in ("shl", "shr"):
        amount = b & 31 if v.wrap else min(b, 32)
        return a << amount if v.operation == "shl" else a >> amount
    if v.operation == "set":
        return int({"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[v.comparison])
    total = a + b
    return {
        "add": total, "sub": a - b, "absdiff": abs(a - b), "min": min(a, b), "max": max(a, b),
        "avrg": (total + (total >= 0)) >> 1,
    }[v.operation]  # fmt: skip


def _clamped(v: Video, value: int) -> int:
    if not v.saturate:
        return value
    low, high = limits(f"{'s' if v.types[0] else 'u'}{v.part_bits}")
    return max(low, min(high, value))


def _lane(v: Video, a: int, b: int, c: int) -> int:
    """One thread's result, from whole registers."""
    size = v.source_bits
    whole = (a, b) if v.lanes == 1 else (b << 32 | a,) * 2
    results = []
    for place_a, place_b in zip(*v.sources, strict=True):
        x = as_int(whole[0] >> place_a * size[0], size[0], v.types[1])
        y = as_int(whole[1] >> place_b * size[1], size[1], v.types[2])
        results.append(_clamped(v, _operate(v, x, y)))
    if v.second:
        if v.lanes > 1:
            return c + sum(results[place] for place in v.written)
        other = as_int(c, 32, v.types[0])
        return {"add": results[0] + other, "min": min(results[0], other), "max": max(results[0], other)}[v.second]
    if v.part_bits == 32:
        return results[0]
    mask = (1 << v.part_bits) - 1
    for place in v.written:
        value = results[place] if v.lanes > 1 else results[0]
        c = c & ~(mask << place * v.part_bits) | (value & mask) << place * v.part_bits
    return c


def _multiply_add(v: Video, a: int, b: int, c: int) -> int:
    size, (place_a, place_b) = v.source_bits, (places[0] for places in v.sources)
    x = as_int(a >> place_a * size[0], size[0], v.types[1])
    y = as_int(b >> place_b * size[1], size[1], v.types[2])
    product, other = x * y, as_int(c, 32, v.signed_sum)
    if v.negative[0] != v.negative[1]:
        product = -product
    elif v.negative[2] and not v.plus_one:
        other = -other
    total = (product + other + v.plus_one) >> v.scale
    if v.saturate:
        low, high = limits("s32" if v.signed_sum else "u32")
        total = max(low, min(high, total))
    return total


def execute(warp: Warp, ins: Instruction) -> None:
    """Any video instruction."""
    v = video(ins)
    a, b = (warp.read(register_of(operand), 32) for operand in ins.operands[1:3])
    c = warp.read(register_of(ins.operands[3]), 32) if v.has_c else a & ~a
    function = _multiply_add if v.operation == "mad" else _lane
    warp.write(register_of(ins.operands[0]), per_lane(lambda *lane: function(v, *lane), 32, a, b, c))


VIDEO: dict[str, Execute] = dict.fromkeys((*SCALAR, *SIMD, "vmad"), execute)
