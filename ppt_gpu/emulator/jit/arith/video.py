"""Video instructions of the compiled engine: one helper function a form, in 128-bit integers where 64 are too few."""

from __future__ import annotations

from collections.abc import Callable

from ppt_gpu.emulator.forms.conversions import limits
from ppt_gpu.emulator.forms.video import SCALAR, SIMD, Video, register_of, video
from ppt_gpu.emulator.jit.emit import Emitter, emits
from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import Helper, Text, const, vec
from ppt_gpu.ptx.module import Instruction

V = vec("i32")


@emits(*SCALAR, *SIMD, "vmad")
def emit_video(e: Emitter, i: Instruction) -> None:
    v = video(i)
    operands = [(V, e.read(register_of(o), "b32")) for o in i.operands[1:4]]
    if not v.has_c:
        operands.append((V, "zeroinitializer"))
    e.write(register_of(i.operands[0]), "b32", e.helper(("video", v), V, *operands))


@writes("video")
def write_video(v: Video) -> Helper:
    """One form, from whole registers a, b, c."""
    f = Helper(V, f"{V} %a", f"{V} %b", f"{V} %c")
    f.label("entry")
    f.do(f"ret {V} {_multiply_add(f, v) if v.operation == 'mad' else _result(f, v)}")
    return f


def _wide(v: Video) -> str:
    """An element in which no step overflows."""
    return "i128" if v.operation in ("shl", "mad") else "i64"


def _part(t: Text, bits: str, have: str, place: int, size: int, signed: bool, want: str) -> str:
    """Number `place` of `size` bits, extended."""
    if place:
        bits = t.binary("lshr", have, bits, const(have, place * size))
    if have != f"i{size}":
        bits = t.convert("trunc", have, bits, f"i{size}")
    return t.convert("sext" if signed else "zext", f"i{size}", bits, want)


def _result(t: Text, v: Video) -> str:
    element, have, sources = _wide(v), "i32", ["%a", "%b"]
    if v.lanes > 1:
        have = "i64"
        both = t.v64("or", t.v64("shl", t.widen_lanes("%b"), const("i64", 32)), t.widen_lanes("%a"))
        sources = [both, both]
    results = []
    for places in zip(*v.sources, strict=True):
        x, y = (_part(t, sources[k], have, places[k], v.source_bits[k], v.types[k + 1], element) for k in (0, 1))
        results.append(_saturated(t, v, element, _operate(t, v, element, x, y)))
    if v.second:
        return _second(t, v, element, results)
    return _merged(t, v, element, results)


def _operate(t: Text, v: Video, element: str, x: str, y: str) -> str:
    def op(name: str) -> str:
        return t.binary(name, element, x, y)

    def difference() -> str:
        return t.call(vec(element), f"llvm.abs.v32{element}", (vec(element), op("sub")), ("i1", "false"))

    def average() -> str:
        total = op("add")
        positive = t.binary("icmp sge", element, total, "zeroinitializer")
        up = t.binary("add", element, total, t.convert("zext", "i1", positive, element))
        return t.binary("ashr", element, up, const(element, 1))

    def shift() -> str:
        limited = (
            t.binary("and", element, y, const(element, 31))
            if v.wrap
            else t.intrinsic("umin", element, y, const(element, 32))
        )
        return t.binary("shl" if v.operation == "shl" else "ashr", element, x, limited)

    def compared() -> str:
        signed = "" if v.comparison in ("eq", "ne") else "s"
        return t.convert("zext", "i1", op(f"icmp {signed}{v.comparison}"), element)

    operations: dict[str, Callable[[], str]] = {
        "add": lambda: op("add"), "sub": lambda: op("sub"), "absdiff": difference, "avrg": average,
        "min": lambda: t.intrinsic("smin", element, x, y), "max": lambda: t.intrinsic("smax", element, x, y),
        "shl": shift, "shr": shift, "set": compared,
    }  # fmt: skip
    return operations[v.operation]()


def _saturated(t: Text, v: Video, element: str, value: str) -> str:
    if not v.saturate:
        return value
    return _clamp(t, element, value, f"{'s' if v.types[0] else 'u'}{v.part_bits}")


def _clamp(t: Text, element: str, value: str, kind: str) -> str:
    low, high = limits(kind)
    return t.intrinsic("smax", element, t.intrinsic("smin", element, value, const(element, high)), const(element, low))


def _second(t: Text, v: Video, element: str, results: list[str]) -> str:
    other = t.convert("sext" if v.types[0] else "zext", "i32", "%c", element)
    if v.lanes > 1:
        for place in v.written:
            other = t.binary("add", element, other, results[place])
    elif v.second == "add":
        other = t.binary("add", element, other, results[0])
    else:
        other = t.intrinsic(f"s{v.second}", element, other, results[0])
    return t.convert("trunc", element, other, "i32")


def _merged(t: Text, v: Video, element: str, results: list[str]) -> str:
    """The results put into c."""
    if v.part_bits == 32:
        return t.convert("trunc", element, results[0], "i32")
    merged, mask = "%c", (1 << v.part_bits) - 1
    for place in v.written:
        at = place * v.part_bits
        value = t.convert("trunc", element, results[place if v.lanes > 1 else 0], "i32")
        value = t.v32("shl", t.v32("and", value, const("i32", mask)), const("i32", at))
        kept = t.v32("and", merged, const("i32", ~(mask << at) & 0xFFFFFFFF))
        merged = t.v32("or", kept, value)
    return merged


def _multiply_add(t: Text, v: Video) -> str:
    element = _wide(v)
    x, y = (
        _part(t, bits, "i32", v.sources[k][0], v.source_bits[k], v.types[k + 1], element)
        for k, bits in enumerate(("%a", "%b"))
    )
    product = t.binary("mul", element, x, y)
    other = t.convert("sext" if v.signed_sum else "zext", "i32", "%c", element)
    if v.negative[0] != v.negative[1]:
        product = t.binary("sub", element, "zeroinitializer", product)
    elif v.negative[2] and not v.plus_one:
        other = t.binary("sub", element, "zeroinitializer", other)
    total = t.binary("add", element, product, other)
    if v.plus_one:
        total = t.binary("add", element, total, const(element, 1))
    if v.scale:
        total = t.binary("ashr", element, total, const(element, v.scale))
    if v.saturate:
        total = _clamp(t, element, total, "s32" if v.signed_sum else "u32")
    return t.convert("trunc", element, total, "i32")
