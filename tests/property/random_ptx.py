"""Random PTX kernels for hypothesis: typed register pools, straight lines, branches, loops, memory and collectives."""

from hypothesis import strategies as st
from random_arithmetic import arithmetic_rows
from random_memory import memory_rows

THREADS, BLOCKS = 40, 2
#: pool -> (register prefix, registers, declared type, type of its loads and stores)
POOLS = {
    "h": ("%h", 3, "b16", "b16"),
    "r": ("%r", 5, "b32", "b32"),
    "d": ("%d", 4, "b64", "b64"),
    "f": ("%f", 4, "f32", "f32"),
    "g": ("%g", 3, "f64", "f64"),
    "e": ("%e", 2, "b16", "f16"),
}
BYTES = {"h": 2, "r": 4, "d": 8, "f": 4, "g": 8, "e": 2}
PREDICATES = 3


def _table():
    rows = arithmetic_rows()
    rows.extend(memory_rows())
    # own element of shared memory by any address, atomics, local memory; all forms in random_memory
    for template, destination, sources in (
        ("and.b32 %i, {0}, 60; st.shared.b32 [%i], {1}; ld.shared.b32 {D}, [%i];", "r", "rr"),
        ("and.b32 %i, {0}, 56; ld.shared.v2.b32 {{D}, %u}, [%i];", "r", "r"),
        ("and.b32 %i, {0}, 60; atom.shared.cas.b32 {D}, [%i], {0}, {1};", "r", "rr"),
        ("red.global.add.u64 [%at], {0}; ld.global.b64 {D}, [%at];", "d", "d"),
        ("mov.u64 %a, depot; st.local.b32 [depot+4], {0}; ld.local.b32 {D}, [%a+4];", "r", "r"),
        ("mov.u64 %a, depot; cvta.local.u64 %a, %a; st.b64 [%a+8], {0}; ld.b64 {D}, [%a+8];", "d", "d"),
    ):
        rows.put(destination, sources, template)
    rows.put("r", "r", "and.b32 %i, {0}, 63; ld.shared.{k}8 {D}, [%i];", k="s u")
    rows.put("r", "rr", "and.b32 %i, {0}, 60; atom.shared.{o} {D}, [%i], {1};",
             o="add.u32 min.s32 max.u32 and.b32 xor.b32 exch.b32 inc.u32 dec.u32")  # fmt: skip
    return rows


TABLE = _table()


def instance(row):
    """(text, destination) of a row of the table with distinct registers."""
    text, destination, sources = row
    counts = {"p": 1}
    text = text.replace("{D}", f"%{destination}0")
    for number, pool in enumerate(sources):
        size = PREDICATES if pool == "p" else POOLS[pool][1]
        text = text.replace("{" + str(number) + "}", f"%{pool}{counts.get(pool, 1) % size}")
        counts[pool] = counts.get(pool, 1) + 1
    return text, destination


def _register(draw, pool):
    if pool == "p":
        return f"%p{draw(st.integers(0, PREDICATES - 1))}"
    prefix, count, _, _ = POOLS[pool]
    return f"{prefix}{draw(st.integers(0, count - 1))}"


@st.composite
def operations(draw):
    """One row of the table with registers, in a quarter of the cases under a guard."""
    text, destination, sources = TABLE[draw(st.integers(0, len(TABLE) - 1))]
    text = text.replace("{D}", _register(draw, destination))
    for number, pool in enumerate(sources):
        text = text.replace("{" + str(number) + "}", _register(draw, pool))
    if draw(st.integers(0, 3)) == 0:
        guard = f"@{draw(st.sampled_from(['', '!']))}%p{draw(st.integers(0, PREDICATES - 1))} "
        text = " ".join(guard + part.strip() + ";" for part in text.split(";") if part.strip())
    return text


def _block(draw, depth, label):
    lines = []
    for number in range(draw(st.integers(1, 6))):
        here = f"{label}_{number}"
        kind = draw(st.integers(0, 5 if depth else 2))
        predicate = f"%p{draw(st.integers(0, PREDICATES - 1))}"
        if kind <= 2:
            lines.append(draw(operations()))
        elif kind == 3:
            lines += [f"@{predicate} bra {here}e;", *_block(draw, depth - 1, here + "t"), f"bra {here}j;"]
            lines += [f"{here}e:", *_block(draw, depth - 1, here + "f"), f"{here}j:"]
        elif kind == 4:  # a loop with a trip count of 1 to 4 that differs between lanes
            counter = f"%c{depth}"
            lines += [f"and.b32 {counter}, {_register(draw, 'r')}, 3;", f"{here}l:"]
            lines += [*_block(draw, depth - 1, here + "b"), f"setp.eq.s32 %q, {counter}, 0;"]
            lines += [f"sub.s32 {counter}, {counter}, 1;", f"@!%q bra {here}l;"]
        else:
            lines += [f"@{predicate} bra {here}o;", *_block(draw, depth - 1, here + "t"), f"{here}o:"]
    return lines


@st.composite
def kernels(draw):
    """PTX of kernel k(in, out): registers are filled from `in`, and written to `out` at the end."""
    return kernel_text(_block(draw, 2, "l") + (["bar.sync 0;"] if draw(st.booleans()) else []) + _block(draw, 1, "m"))


def kernel_text(body, extra=0):
    """The kernel around the lines of `body`, which may store `extra` bytes of its own at [%to + ROW] (extra: of 8)."""
    head = [
        ".version 9.0", ".target sm_100a", ".address_size 64", ".shared .align 16 .b8 scratch[64];",
        ".visible .entry k(.param .u64 in, .param .u64 out)", "{", ".local .align 16 .b8 depot[32];",
        f".reg .pred %p<{PREDICATES}>, %q; .reg .b32 %i, %u, %c<3>; .reg .b64 %at, %a, %b, %to;",
        ".reg .b8 %m0, %m1; .reg .b16 %w, %x; .reg .f32 %t; .reg .b128 %v, %y;",
        *(f".reg .{kind} {prefix}<{count}>;" for prefix, count, kind, _ in POOLS.values()),
        "mov.u32 %i, scratch; mov.u32 %i, %ctaid.x; mov.u32 %u, %tid.x;",
        "mov.u32 %c0, %ntid.x; mad.lo.u32 %i, %i, %c0, %u;",
        "ld.param.u64 %at, [in]; ld.param.u64 %to, [out];",
        f"mul.wide.u32 %a, %i, {ROW}; add.s64 %at, %at, %a;",
        f"mul.wide.u32 %a, %i, {ROW + extra}; add.s64 %to, %to, %a;",
    ]  # fmt: skip
    places = [(name, "b16" if kind == "f16" else kind, offset) for name, kind, offset in ROW_PLACES]
    loads = [f"ld.global.{kind} {name}, [%at+{offset}];" for name, kind, offset in places]
    predicates = [f"and.b32 %i, %r{n}, 1; setp.eq.s32 %p{n}, %i, 0;" for n in range(PREDICATES)]
    stores = [f"st.global.{kind} [%to+{offset}], {name};" for name, kind, offset in places]
    predicates_out = [f"selp.b32 %r{n}, 1, 0, %p{n};" for n in range(PREDICATES)]
    predicates_out += [f"st.global.b32 [%to+{ROW - 12 + 4 * n}], %r{n};" for n in range(PREDICATES)]
    return "\n".join([*head, *loads, *predicates, *body, *stores, *predicates_out, "ret;", "}"])


def _places():
    places, offset = [], 8  # the first 8 bytes are for atomics
    for pool in "dgrfhe":
        prefix, count, _, kind = POOLS[pool]
        for number in range(count):
            places.append((f"{prefix}{number}", kind, offset))
            offset += BYTES[pool]
    return places, -(-(offset + 12) // 16) * 16


ROW_PLACES, ROW = _places()
