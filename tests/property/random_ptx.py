"""Random PTX kernels for hypothesis: typed register pools, straight lines, branches, loops, memory and collectives."""

from hypothesis import strategies as st
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


#: a shuffle that replaces what it reads from a lane that does not execute, which is undefined
SAFE_SHUFFLE = (
    "activemask.b32 %u; and.b32 %i, {1}, 31; shr.b32 %u, %u, %i; and.b32 %u, %u, 1; setp.eq.s32 %q, %u, 1;"
    "shfl.sync.idx.b32 {D}, {0}, %i, 31, -1; selp.b32 {D}, {D}, 7, %q;"
)


def _expand(template, **choices):
    """All texts of `template` with {name} replaced by each of its choices."""
    texts = [template]
    for name, values in choices.items():
        texts = [t.replace("{" + name + "}", value) for t in texts for value in values.split()]
    return texts


def _table():
    """(text, destination pool, source pools): {D} is the destination, {0}, {1}, ... the sources; p: predicates."""
    rows = []

    def put(texts, destination, sources):
        rows.extend((text, destination, sources) for text in texts)

    words = {"h": "16", "r": "32", "d": "64"}
    for pool, bits in words.items():
        arithmetic = "add sub mul.lo mul.hi min max div rem"
        put(_expand("{o}.{s}" + bits + " {D}, {0}, {1};", o=arithmetic, s="s u"), pool, pool * 2)
        put(_expand("mad.lo.{s}" + bits + " {D}, {0}, {1}, {2};", s="s u"), pool, pool * 3)
        put(_expand("{o}.b" + bits + " {D}, {0}, {1};", o="and or xor"), pool, pool * 2)
        put(_expand("{o}.b" + bits + " {D}, {0};", o="not cnot"), pool, pool)
        put(_expand("shr.{s}" + bits + " {D}, {0}, {1};", s="s u"), pool, pool + "r")
        put(_expand("{o}.s" + bits + " {D}, {0};", o="neg abs"), pool, pool)
        put([f"shl.b{bits} {{D}}, {{0}}, {{1}};", f"shl.b{bits} {{D}}, {{0}}, 3;"], pool, pool + "r")
        put(_expand("setp.{c}.{s}" + bits + " {D}, {0}, {1};", c="eq ne lt le gt ge", s="s u"), "p", pool * 2)
        put(_expand("setp.{c}.u" + bits + " {D}, {0}, {1};", c="lo ls hi hs"), "p", pool * 2)
        put([f"selp.b{bits} {{D}}, {{0}}, {{1}}, {{2}};"], pool, pool * 2 + "p")
    put(_expand("mul.wide.{s}16 {D}, {0}, {1};", s="s u"), "r", "hh")
    put(_expand("mul.wide.{s}32 {D}, {0}, {1};", s="s u"), "d", "rr")
    put(_expand("mad.wide.{s}32 {D}, {0}, {1}, {2};", s="s u"), "d", "rrd")
    put(_expand("{o}.lo.{s}32 {D}, {0}, {1};", o="mul24", s="s u"), "r", "rr")
    put(_expand("{o}.sat.s32 {D}, {0}, {1};", o="add sub"), "r", "rr")
    put(_expand("sad.{s}32 {D}, {0}, {1}, {2};", s="s u"), "r", "rrr")
    for pool in "rd":
        bits = words[pool]
        put(_expand("{o}.b" + bits + " {D}, {0};", o="popc clz"), "r", pool)
        put(_expand("bfind{m}.{s}" + bits + " {D}, {0};", m=".shiftamt", s="s u"), "r", pool)
        put(_expand("bfind.{s}" + bits + " {D}, {0};", s="s u"), "r", pool)
        put([f"brev.b{bits} {{D}}, {{0}};"], pool, pool)
        put(_expand("bfe.{s}" + bits + " {D}, {0}, {1}, {2};", s="s u"), pool, pool + "rr")
        put([f"bfi.b{bits} {{D}}, {{0}}, {{1}}, {{2}}, {{3}};"], pool, pool * 2 + "rr")
    put(_expand("shf.{s}.{m}.b32 {D}, {0}, {1}, {2};", s="l r", m="wrap clamp"), "r", "rrr")
    put(["prmt.b32 {D}, {0}, {1}, {2};", "lop3.b32 {D}, {0}, {1}, {2}, 0xCA;"], "r", "rrr")
    put(_expand("dp4a.{s}.{t} {D}, {0}, {1}, {2};", s="s32 u32", t="s32 u32"), "r", "rrr")
    put(["add.cc.u32 {D}, {0}, {1}; addc.u32 {D}, {0}, {1};"], "r", "rr")
    put(["sub.cc.u32 {D}, {0}, {1}; subc.u32 {D}, {0}, {1};"], "r", "rr")
    for pool, kind in (("f", "f32"), ("g", "f64")):
        for mode in ("rn", "rz", "rm", "rp") if pool == "f" else ("rn",):  # f64 is compiled with .rn only
            put(_expand("{o}." + f"{mode}.{kind} {{D}}, {{0}}, {{1}};", o="add sub mul div"), pool, pool * 2)
            put([f"fma.{mode}.{kind} {{D}}, {{0}}, {{1}}, {{2}};"], pool, pool * 3)
            put(_expand("{o}." + f"{mode}.{kind} {{D}}, {{0}};", o="sqrt rcp"), pool, pool)
        put(_expand("{o}." + kind + " {D}, {0}, {1};", o="min max"), pool, pool * 2)
        put(_expand("{o}." + kind + " {D}, {0};", o="neg abs"), pool, pool)
        comparisons = "eq ne lt le gt ge equ neu ltu leu gtu geu num nan"
        put(_expand("setp.{c}." + kind + " {D}, {0}, {1};", c=comparisons), "p", pool * 2)
        put([f"selp.{kind} {{D}}, {{0}}, {{1}}, {{2}};"], pool, pool * 2 + "p")
        put([f"copysign.{kind} {{D}}, {{0}}, {{1}};"], pool, pool * 2)
        put(_expand("cvt.{m}." + f"{kind}.{kind} {{D}}, {{0}};", m="rni rzi rmi rpi"), pool, pool)
        for target, bits in words.items():
            put(_expand("cvt.{m}.{s}" + f"{bits}.{kind} {{D}}, {{0}};", m="rni rzi rmi rpi", s="s u"), target, pool)
            modes = "rn" if target == "d" else "rn rz rm rp"  # from 64-bit integers only .rn is compiled
            put(_expand("cvt.{m}." + kind + ".{s}" + bits + " {D}, {0};", m=modes, s="s u"), pool, target)
    put(_expand("{o}.ftz.f32 {D}, {0}, {1};", o="add mul min max"), "f", "ff")
    put(_expand("{o}.sat.f32 {D}, {0}, {1};", o="add mul"), "f", "ff")
    put(["fma.rn.ftz.f32 {D}, {0}, {1}, {2};", "fma.rn.sat.f32 {D}, {0}, {1}, {2};"], "f", "fff")
    put(_expand("cvt.{m}.f32.f64 {D}, {0};", m="rn rz rm rp"), "f", "g")
    put(["cvt.f64.f32 {D}, {0};"], "g", "f")
    put(["cvt.rn.f16.f32 {D}, {0};"], "e", "f")
    put(["cvt.f32.f16 {D}, {0};"], "f", "e")
    put(_expand("cvt.{s}32.{t}16 {D}, {0};", s="s u", t="s u"), "r", "h")
    put(_expand("cvt.{s}64.{t}32 {D}, {0};", s="s u", t="s u"), "d", "r")
    put(_expand("cvt.{m}u8.s32 {D}, {0};", m="sat."), "r", "r")
    put(["cvt.u32.u64 {D}, {0};", "cvt.sat.s32.s64 {D}, {0};"], "r", "d")
    put(["cvt.u16.u32 {D}, {0};", "cvt.s16.s8 {D}, {1};"], "h", "rh")
    put(["mov.b64 {D}, {{0}, {1}};"], "d", "rr")
    put(_expand("{o}.pred {D}, {0}, {1};", o="and or xor"), "p", "pp")
    put(["not.pred {D}, {0};"], "p", "p")
    put(["setp.lt.and.s32 {D}, {0}, {1}, {2};", "setp.ge.or.u32 {D}, {0}, {1}, !{2};"], "p", "rrp")
    put(["slct.b32.s32 {D}, {0}, {1}, {2};"], "r", "rrr")
    # memory: own element of shared memory by any address, atomics, local memory; all forms in random_memory
    rows.extend(memory_rows())
    put(["and.b32 %i, {0}, 60; st.shared.b32 [%i], {1}; ld.shared.b32 {D}, [%i];"], "r", "rr")
    put(["and.b32 %i, {0}, 56; ld.shared.v2.b32 {{D}, %u}, [%i];"], "r", "r")
    put(_expand("and.b32 %i, {0}, 63; ld.shared.{k}8 {D}, [%i];", k="s u"), "r", "r")
    put(_expand("and.b32 %i, {0}, 60; atom.shared.{o} {D}, [%i], {1};",
                o="add.u32 min.s32 max.u32 and.b32 xor.b32 exch.b32 inc.u32 dec.u32"), "r", "rr")  # fmt: skip
    put(["and.b32 %i, {0}, 60; atom.shared.cas.b32 {D}, [%i], {0}, {1};"], "r", "rr")
    put(["red.global.add.u64 [%at], {0}; ld.global.b64 {D}, [%at];"], "d", "d")
    put(["mov.u64 %a, depot; st.local.b32 [depot+4], {0}; ld.local.b32 {D}, [%a+4];"], "r", "r")
    put(["mov.u64 %a, depot; cvta.local.u64 %a, %a; st.b64 [%a+8], {0}; ld.b64 {D}, [%a+8];"], "d", "d")
    # lanes
    put([SAFE_SHUFFLE], "r", "rr")
    put(["vote.sync.ballot.b32 {D}, {0}, -1;"], "r", "p")
    put(_expand("vote.sync.{m}.pred {D}, {0}, -1;", m="any all uni"), "p", "p")
    put(["activemask.b32 {D};", "mov.u32 {D}, %laneid;", "mov.u32 {D}, %tid.x;", "mov.u32 {D}, %ctaid.x;"], "r", "")
    put(["match.any.sync.b32 {D}, {0}, -1;", "redux.sync.add.s32 {D}, {0}, -1;"], "r", "r")
    return rows


TABLE = _table()


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


def kernel_text(body):
    """The kernel around the lines of `body`."""
    head = [
        ".version 8.0", ".target sm_80", ".address_size 64", ".shared .align 16 .b8 scratch[64];",
        ".visible .entry k(.param .u64 in, .param .u64 out)", "{", ".local .align 16 .b8 depot[32];",
        f".reg .pred %p<{PREDICATES}>, %q; .reg .b32 %i, %u, %c<3>; .reg .b64 %at, %a, %b, %to;",
        ".reg .b16 %w, %x; .reg .f32 %t; .reg .b128 %v, %y;",
        *(f".reg .{kind} {prefix}<{count}>;" for prefix, count, kind, _ in POOLS.values()),
        "mov.u32 %i, scratch; mov.u32 %i, %ctaid.x; mov.u32 %u, %tid.x;",
        "mov.u32 %c0, %ntid.x; mad.lo.u32 %i, %i, %c0, %u;",
        "ld.param.u64 %at, [in]; ld.param.u64 %to, [out];",
        f"mul.wide.u32 %a, %i, {ROW}; add.s64 %at, %at, %a; add.s64 %to, %to, %a;",
    ]  # fmt: skip
    loads = [f"ld.global.{kind} {name}, [%at+{offset}];" for name, kind, offset in ROW_PLACES]
    predicates = [f"and.b32 %i, %r{n}, 1; setp.eq.s32 %p{n}, %i, 0;" for n in range(PREDICATES)]
    stores = [f"st.global.{kind} [%to+{offset}], {name};" for name, kind, offset in ROW_PLACES]
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
