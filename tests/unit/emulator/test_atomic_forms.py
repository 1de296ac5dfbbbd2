"""atom and red of all operations and types: both engines against the lanes' operations done one after another here."""

import struct
from fractions import Fraction

import numpy as np
import pytest
from jit_kernels import check_against_interpreter, pointer, text_case

from ppt_gpu.workload.workload import Buffer

HEAD = (
    ".reg .pred %p<9>; .reg .b16 %h<12>; .reg .b32 %r<20>; .reg .f32 %f<9>; .reg .f64 %g<9>; .reg .b64 %d<20>;"
    ".reg .b128 %q<4>; ld.param.u64 %d1, [p]; ld.param.u64 %d2, [v]; ld.param.u64 %d3, [o]; mov.u32 %r1, %tid.x;\n"
)
SIZE = {"b16": 2, "b32": 4, "u32": 4, "s32": 4, "b64": 8, "u64": 8, "s64": 8, "f32": 4, "f64": 8, "f16": 2, "bf16": 2,
        "f16x2": 4, "bf16x2": 4}  # fmt: skip
REGISTER = {2: "%h", 4: "%r", 8: "%d1"}


def atomics(opcode, kind, initial, values, *, shared=False, second=None, vector=1):
    """Each lane applies `opcode` to element lane % len(initial) with its value. (memory after, old values)."""
    size = SIZE[kind]
    place = REGISTER[size]
    old, b, c = (f"{place}{n}" for n in (5, 6, 7))
    stride = size * vector
    if vector > 1:
        old, b = (f"{{{', '.join(f'{place}{n + k}' for k in range(vector))}}}" for n in (1, 1))
    load = f"ld.global{f'.v{vector}' if vector > 1 else ''}.b{8 * size}"
    lines = [
        f"rem.u32 %r2, %r1, {len(initial) // vector}; mul.wide.u32 %d4, %r2, {stride}; add.s64 %d5, %d1, %d4;",
        f"mul.wide.u32 %d6, %r1, {stride}; add.s64 %d7, %d2, %d6; {load} {b}, [%d7]; add.s64 %d8, %d3, %d6;",
    ]
    address = "%d5"
    if shared:  # the first lanes copy the content in, and out again
        count = len(initial) * size // 2
        lines += [
            f"setp.lt.u32 %p1, %r1, {count}; mul.wide.u32 %d9, %r1, 2; cvt.u32.u64 %r3, %d9; add.s64 %d9, %d1, %d9;",
            "mov.u32 %r4, s; add.u32 %r3, %r3, %r4; @%p1 ld.global.b16 %h1, [%d9]; @%p1 st.shared.b16 [%r3], %h1;",
            "cvt.u32.u64 %r8, %d4; add.u32 %r8, %r8, %r4;",
        ]
        address = "%r8"
    more = f", {c}" if second is not None else ""
    if second is not None:
        lines.append(f"{load} {c}, [%d7+{size * len(values)}];")
    if opcode.startswith("red"):
        lines.append(f"{opcode} [{address}], {b};")
    else:
        lines.append(f"{opcode} {old}, [{address}], {b}{more};")
    lines.append(f"st.global{f'.v{vector}' if vector > 1 else ''}.b{8 * size} [%d8], {old};")
    if shared:
        lines.append("@%p1 ld.shared.b16 %h1, [%r3]; @%p1 st.global.b16 [%d9], %h1;")
    text = (
        ".shared .align 16 .b8 s[64];\n.visible .entry k(.param .u64 p, .param .u64 v, .param .u64 o)\n{\n"
        + HEAD + "\n".join(lines) + "\nret;\n}"
    )  # fmt: skip
    given = [*values, *(second or [])]
    buffers = [Buffer("m", f"b{8 * size}", len(initial)), Buffer("v", f"b{8 * size}", len(given))]
    buffers.append(Buffer("o", f"b{8 * size}", len(values)))
    case = text_case(text, (1,), (32,), [pointer(b.name) for b in buffers], buffers)
    case.fill = {"m": np.array(initial, f"u{size}"), "v": np.array(given, f"u{size}")}
    memory, _ = check_against_interpreter(case)
    return memory.view("m", f"u{size}").tolist(), memory.view("o", f"u{size}").tolist()


def in_order(function, initial, values, second=None, vector=1):
    """The same, lane by lane."""
    memory, before = list(initial), []
    for number, value in enumerate(values):
        lane, k = divmod(number, vector)
        place = lane % (len(initial) // vector) * vector + k
        before.append(memory[place])
        memory[place] = function(memory[place], value, *([second[number]] if second else []))
    return memory, before


def as_signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) else value


def integer(op, kind):
    bits = 8 * SIZE[kind]
    mask = (1 << bits) - 1
    key = (lambda v: as_signed(v, bits)) if kind[0] == "s" else (lambda v: v)
    return {
        "add": lambda a, b: (a + b) & mask,
        "min": lambda a, b: min(a, b, key=key),
        "max": lambda a, b: max(a, b, key=key),
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "exch": lambda a, b: b,
        "inc": lambda a, b: 0 if a >= b else a + 1,
        "dec": lambda a, b: b if a == 0 or a > b else a - 1,
        "cas": lambda a, b, c: c if a == b else a,
    }[op]


def corner_values(bits, count, seed):
    rng = np.random.default_rng(seed)
    corners = [0, 1, 2, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, 5]
    low, high = (int(x) for x in rng.integers(0, 1 << min(bits, 32), 2))
    return [
        corners[k % 7] if k % 3 else (low * (k + 1) ^ high << (bits // 2)) & ((1 << bits) - 1) for k in range(count)
    ]


INTEGERS = [f"{op}.{kind}" for kind in ("u32", "s32", "u64", "s64") for op in ("add", "min", "max")]
INTEGERS += [f"{op}.{kind}" for kind in ("b32", "b64") for op in ("and", "or", "xor", "exch")]
INTEGERS += ["inc.u32", "dec.u32"]


@pytest.mark.parametrize("operation", INTEGERS)
@pytest.mark.parametrize(
    "head", ["atom.global", "atom.relaxed.gpu.shared", "red.acq_rel.sys", "atom.release.cta.global"]
)
def test_integers(operation, head):
    op, kind = operation.split(".")
    bits = 8 * SIZE[kind]
    initial, values = corner_values(bits, 6, 1), corner_values(bits, 32, 2)
    if head.startswith("red") and op == "exch":
        return  # there is none
    memory, before = atomics(f"{head}.{operation}", kind, initial, values, shared="shared" in head)
    expected, old = in_order(integer(op, kind), initial, values)
    assert memory == expected
    assert before == ([0] * 32 if head.startswith("red") else old)


@pytest.mark.parametrize("kind", ["b16", "b32", "b64"])
@pytest.mark.parametrize("shared", [False, True])
def test_compare_and_swap(kind, shared):
    initial = [3, 7, 9, 1]
    values = [3, 7, 8, 1] * 8
    second = list(range(40, 72))
    space = "shared" if shared else "global"
    got = atomics(f"atom.{space}.cas.{kind}", kind, initial, values, shared=shared, second=second)
    assert got == in_order(integer("cas", kind), initial, values, second)


# floating point: exact sums by Fraction, rounded by hand -----------------------------------------------------------

FORMAT = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}


def decode(bits, kind):
    """A Fraction, or a float for infinities and NaN; and the sign."""
    exponent_bits, fraction_bits = FORMAT[kind]
    sign = bits >> (exponent_bits + fraction_bits)
    exponent = bits >> fraction_bits & (1 << exponent_bits) - 1
    fraction = bits & (1 << fraction_bits) - 1
    if exponent == (1 << exponent_bits) - 1:
        return (float("nan") if fraction else float("-inf" if sign else "inf")), sign
    bias = (1 << (exponent_bits - 1)) - 1
    value = Fraction(fraction + (1 << fraction_bits if exponent else 0)) * Fraction(2) ** (
        max(exponent, 1) - bias - fraction_bits
    )
    return (-value if sign else value), sign


def encode(value, kind, zero_sign):
    """The bits nearest to a Fraction, ties to even."""
    exponent_bits, fraction_bits = FORMAT[kind]
    bias = (1 << (exponent_bits - 1)) - 1
    sign = (value < 0 or (value == 0 and zero_sign)) << (exponent_bits + fraction_bits)
    value = abs(value)
    exponent = 1 - bias
    while value >= Fraction(2) ** (exponent + 1):
        exponent += 1
    scaled = value / Fraction(2) ** (exponent - fraction_bits)
    whole = round(scaled)  # ties to even
    infinity = ((1 << exponent_bits) - 1) << fraction_bits
    code = whole + ((exponent + bias - 1) << fraction_bits)
    return sign | min(code, infinity)


def flushed(bits):
    return bits & 0x80000000 if bits & 0x7F800000 == 0 else bits


def add(kind, flush=False):
    def total(a, b):
        if flush:
            a, b = flushed(a), flushed(b)
        (x, sx), (y, sy) = decode(a, kind), decode(b, kind)
        if isinstance(x, float) or isinstance(y, float):
            result = float(x) + float(y) if isinstance(x, float) and isinstance(y, float) else (
                x if isinstance(x, float) else y)  # fmt: skip
            if result != result:
                return NAN[kind]
            exponent_bits, fraction_bits = FORMAT[kind]
            return (result < 0) << (exponent_bits + fraction_bits) | ((1 << exponent_bits) - 1) << fraction_bits
        result = encode(x + y, kind, sx and sy)
        return flushed(result) if flush else result

    return total


def extreme(kind, largest):
    def chosen(a, b):
        (x, sx), (y, sy) = decode(a, kind), decode(b, kind)
        if x != x or y != y:
            return NAN[kind] if x != x and y != y else b if x != x else a
        first = (x, -sx) < (y, -sy)
        return b if first == largest else a

    return chosen


def halves(function):
    return lambda a, b: function(a & 0xFFFF, b & 0xFFFF) | function(a >> 16, b >> 16) << 16


FLOATS = {
    "f16": [0x3C00, 0x8000, 0, 0x7BFF, 0x0001, 0x83FF, 0x7C00, 0xFC00, 0x7E01, 0x4248, 0xB555, 0x1234],
    "bf16": [0x3F80, 0x8000, 0, 0x7F7F, 0x0001, 0x807F, 0x7F80, 0xFF80, 0x7FC1, 0x4049, 0xBEAB, 0x1234],
    "f32": [0x3F800000, 0x80000000, 0, 0x7F7FFFFF, 1, 0x807FFFFF, 0x7F800000, 0x40490FDB, 0xBEAAAAAB, 0x00800001],
}


def float_values(kind, count, shift=0):
    name = kind.removesuffix("x2")
    items = FLOATS[name]
    if kind.endswith("x2"):
        return [items[(k + shift) % 12] | items[(5 * k + shift) % 12] << 16 for k in range(count)]
    return [items[(k * 5 + k // 6 + shift) % len(items)] for k in range(count)]


@pytest.mark.parametrize("kind", ["f16", "bf16", "f16x2", "bf16x2", "f32"])
@pytest.mark.parametrize("shared", [False, True])
def test_sums_of_floats(kind, shared):
    noftz = "" if kind == "f32" else ".noftz"
    space = "shared" if shared else "global"
    initial, values = float_values(kind, 5), float_values(kind, 32, 3)
    function = add(kind.removesuffix("x2"), flush=kind == "f32" and not shared)
    function = halves(function) if kind.endswith("x2") else function
    got = atomics(f"atom.{space}.add{noftz}.{kind}", kind, initial, values, shared=shared)
    assert got == in_order(function, initial, values)


def test_sums_of_f64():
    numbers = [1.0, -0.0, 1e308, 5e-324, -1e-300, 0.1, 3.5e-310]
    raw = [struct.unpack("<Q", struct.pack("<d", x))[0] for x in numbers]
    values = [raw[(3 * k + k // 7) % 7] for k in range(32)]
    assert atomics("atom.global.add.f64", "f64", raw[:5], values) == in_order(add("f64"), raw[:5], values)


@pytest.mark.parametrize("operation", ["add", "min", "max"])
@pytest.mark.parametrize(("kind", "vector"), [("f16", 2), ("f16", 8), ("bf16", 4), ("f16x2", 4), ("bf16x2", 2)])
def test_vectors_of_16_bit_floats(operation, kind, vector):
    initial, values = float_values(kind, 3 * vector), float_values(kind, 32 * vector, 1)
    scalar = kind.removesuffix("x2")
    function = add(scalar) if operation == "add" else extreme(scalar, operation == "max")
    function = halves(function) if kind.endswith("x2") else function
    got = atomics(f"atom.global.v{vector}.{kind}.{operation}.noftz", kind, initial, values, vector=vector)
    assert got == in_order(function, initial, values, vector=vector)


@pytest.mark.parametrize("vector", [2, 4])
def test_vectors_of_f32(vector):
    initial, values = float_values("f32", 3 * vector), float_values("f32", 32 * vector, 1)
    function = add("f32", flush=True)
    expected, old = in_order(function, initial, values, vector=vector)
    assert atomics(f"atom.gpu.global.v{vector}.f32.add", "f32", initial, values, vector=vector) == (expected, old)
    memory, _ = atomics(f"red.global.v{vector}.f32.add", "f32", initial, values, vector=vector)
    assert memory == expected


@pytest.mark.parametrize("space", ["global", "shared"])
def test_128_bits(space):
    """Lanes exchange and compare 128 bits: each swaps in its pair only where the one before left what it expects."""
    base = "[%d1]" if space == "global" else "[s]"
    text = (
        ".shared .align 16 .b8 s[16];\n.visible .entry k(.param .u64 p, .param .u64 v, .param .u64 o)\n{\n" + HEAD +
        "cvt.u64.u32 %d4, %r1; add.s64 %d5, %d4, 100; mov.b128 %q0, {%d4, %d5}; add.s64 %d6, %d4, 1;"
        "add.s64 %d7, %d6, 100;"
        "mov.b128 %q1, {%d6, %d7}; mov.u64 %d9, 0; mov.u64 %d11, 100; mov.b128 %q3, {%d9, %d11};"
        "setp.eq.u32 %p1, %r1, 0;"
        f"@%p1 atom.{space}.b128.exch %q2, {base}, %q3; atom.{space}.b128.cas %q2, {base}, %q0, %q1;"
        "mov.b128 {%d8, %d9}, %q2; mul.wide.u32 %d10, %r1, 16; add.s64 %d10, %d3, %d10;"
        "st.global.v2.b64 [%d10], {%d8, %d9};"
        f"ld.{space}.b128 %q3, {base}; @%p1 st.global.b128 [%d2], %q3; ret;\n}}"
    )  # fmt: skip
    buffers = [Buffer("m", "u64", 2), Buffer("v", "u64", 2), Buffer("o", "u64", 64)]
    case = text_case(text, (1,), (32,), [pointer(b.name) for b in buffers], buffers)
    memory, _ = check_against_interpreter(case)
    assert memory.view("o", "u8").reshape(32, 2).tolist() == [[k, k + 100] for k in range(32)]
    assert memory.view("v", "u8").tolist() == [32, 132]
