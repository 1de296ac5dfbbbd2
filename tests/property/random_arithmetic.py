"""Rows of `random_ptx.TABLE` for arithmetic: every type and modifier of the PTX ISA's arithmetic instructions.

A row is (text, destination pool, source pools): {D} is the destination, {0}, {1}, ... the sources. Pools: h, r, d are
integers of 16, 32 and 64 bits (also packed and half-precision floats), f and g f32 and f64, e f16, p predicates.
Temporaries: %i, %u (32 bits), %t (f32), %a (64 bits), %w, %x (16 bits), %m0, %m1 (8 bits), %v, %y (128 bits), %q.
"""

WORDS = {"h": "16", "r": "32", "d": "64"}
FLOATS = {"f": "f32", "g": "f64"}
MODES = "rn rz rm rp"
ORDERED = "eq ne lt le gt ge"
FLOAT_COMPARISONS = f"{ORDERED} equ neu ltu leu gtu geu num nan"


def expand(template, **choices):
    """All texts of `template` with {name} replaced by each of its choices, words in which "-" stands for nothing."""
    texts = [template]
    for name, values in choices.items():
        words = ["" if v == "-" else v for v in values.split()]
        texts = [t.replace("{" + name + "}", word) for t in texts for word in words]
    return texts


class Rows(list):
    def put(self, destination, sources, template, **choices):
        self.extend((text, destination, sources) for text in expand(template, **choices))


def arithmetic_rows():
    rows = Rows()
    for group in (_integers, _carries, _bits, _packed_integers, _video, _moves, _floats, _singles, _doubles, _halves,
                  _comparisons, _from_floats, _to_floats, _between_floats, _narrow_floats, _lanes):  # fmt: skip
        group(rows)
    return rows


def _integers(rows):
    for pool, bits in WORDS.items():
        types = f"s{bits} u{bits}"
        rows.put(pool, pool * 2, "{o}.{t} {D}, {0}, {1};", o="add sub mul.lo mul.hi min max div rem", t=types)
        rows.put(pool, pool * 3, "mad.{o}.{t} {D}, {0}, {1}, {2};", o="lo hi", t=types)
        rows.put(pool, pool * 3, "sad.{t} {D}, {0}, {1}, {2};", t=types)
        rows.put(pool, pool, "{o}.s" + bits + " {D}, {0};", o="neg abs")
    for narrow, wide, bits in (("h", "r", "16"), ("r", "d", "32")):
        rows.put(wide, narrow * 2, "mul.wide.{s}" + bits + " {D}, {0}, {1};", s="s u")
        rows.put(wide, narrow * 2 + wide, "mad.wide.{s}" + bits + " {D}, {0}, {1}, {2};", s="s u")
    rows.put("r", "rr", "{o}.sat.s32 {D}, {0}, {1};", o="add sub")
    rows.put("r", "rrr", "{o}.hi.sat.s32 {D}, {0}, {1}, {2};", o="mad mad24")
    rows.put("r", "rr", "mul24.{p}.{s}32 {D}, {0}, {1};", p="lo hi", s="s u")
    rows.put("r", "rrr", "mad24.{p}.{s}32 {D}, {0}, {1}, {2};", p="lo hi", s="s u")
    rows.put("r", "rr", "{o}.relu.s32 {D}, {0}, {1};", o="min max")
    rows.put("r", "rrr", "dp4a.{s}.{t} {D}, {0}, {1}, {2};", s="s32 u32", t="s32 u32")
    rows.put("r", "rrr", "dp2a.{p}.{s}.{t} {D}, {0}, {1}, {2};", p="lo hi", s="s32 u32", t="s32 u32")
    rows.put("r", "h", "add.u16 %w, {0}, -1; cvt.u32.u16 {D}, %w;")


def _carries(rows):
    for pool, bits in (("r", "32"), ("d", "64")):
        for first, then in (("add.cc", "addc"), ("sub.cc", "subc"), ("sub.cc", "addc"), ("add.cc", "subc")):
            last = f"{then}.{{s}}{bits} {{D}}, {{1}}, {{0}};"
            rows.put(pool, pool * 2, f"{first}.{{s}}{bits} {{D}}, {{0}}, {{1}};" + last, s="s u")
            middle = f"{then}.cc.u{bits} {{D}}, {{1}}, {{1}};"
            rows.put(pool, pool * 2, f"{first}.u{bits} {{D}}, {{0}}, {{1}};" + middle + last, s="s u")
        last = f"madc.{{q}}.{{s}}{bits} {{D}}, {{0}}, {{1}}, {{2}};"
        rows.put(pool, pool * 3, f"mad.{{o}}.cc.{{s}}{bits} {{D}}, {{0}}, {{1}}, {{2}};" + last, o="lo hi", q="lo hi",
                 s="s u")  # fmt: skip
        middle = f"madc.{{o}}.cc.{{s}}{bits} {{D}}, {{1}}, {{0}}, {{2}};"
        if bits == "32":
            rows.put(pool, pool * 3, "add.cc.u32 %i, {0}, {1}; madc.hi.sat.s32 {D}, {0}, {1}, {2};")
        rows.put(pool, pool * 3, f"add.cc.u{bits} {{D}}, {{0}}, {{1}};" + middle + last, o="lo hi", q="lo hi", s="s u")


def _bits(rows):
    for pool, bits in WORDS.items():
        rows.put(pool, pool * 2, "{o}.b" + bits + " {D}, {0}, {1};", o="and or xor")
        rows.put(pool, pool, "{o}.b" + bits + " {D}, {0};", o="not cnot")
        rows.put(pool, pool + "r", "{o}" + bits + " {D}, {0}, {1};", o="shl.b shr.b shr.u shr.s")
        rows.put(pool, pool + "r", "and.b32 %i, {1}, 63; {o}" + bits + " {D}, {0}, %i;", o="shl.b shr.b shr.u shr.s")
        rows.put(pool, pool, "{o}" + bits + " {D}, {0}, {n};", o="shl.b shr.u shr.s", n="3 15 99")
    for pool, bits in (("r", "32"), ("d", "64")):
        rows.put("r", pool, "{o}.b" + bits + " {D}, {0};", o="popc clz")
        rows.put("r", pool, "bfind{m}.{s}" + bits + " {D}, {0};", m="- .shiftamt", s="s u")
        rows.put(pool, pool, "brev.b" + bits + " {D}, {0};")
        small = "and.b32 %i, {1}, 71; shr.u32 %u, {2}, 26;"
        rows.put(pool, pool + "rr", "bfe.{s}" + bits + " {D}, {0}, {1}, {2};", s="s u")
        rows.put(pool, pool + "rr", small + "bfe.{s}" + bits + " {D}, {0}, %i, %u;", s="s u")
        rows.put(pool, pool * 2 + "rr", "bfi.b" + bits + " {D}, {0}, {1}, {2}, {3};")
        small = small.replace("{2}", "{3}").replace("{1}", "{2}")
        rows.put(pool, pool * 2 + "rr", small + "bfi.b" + bits + " {D}, {0}, {1}, %i, %u;")
    rows.put("r", "rrr", "shf.{s}.{m}.b32 {D}, {0}, {1}, {2};", s="l r", m="wrap clamp")
    rows.put("r", "rrr", "and.b32 %i, {2}, 63; shf.{s}.{m}.b32 {D}, {0}, {1}, %i;", s="l r", m="wrap clamp")
    rows.put("r", "rrr", "prmt.b32{m} {D}, {0}, {1}, {2};", m="- .f4e .b4e .rc8 .ecl .ecr .rc16")
    rows.put("r", "rrr", "lop3.b32 {D}, {0}, {1}, {2}, {n};", n="0 255 0xCA 0x96 0xE8 0x1B 0x40")
    rows.put("r", "rrrp", "lop3.{o}.b32 {D}|%q, {0}, {1}, {2}, {n}, {3}; selp.b32 {D}, {D}, 77, %q;", o="and or",
             n="0 0x80")  # fmt: skip
    rows.put("p", "rrrp", "lop3.{o}.b32 _|{D}, {0}, {1}, {2}, 0x80, !{3};", o="and or")
    rows.put("r", "rr", "{o}.{m} {D}, {0}, {1};", o="bmsk.wrap bmsk.clamp", m="b32")
    rows.put("r", "rr", "and.b32 %i, {0}, 63; and.b32 %u, {1}, 63; bmsk.{m}.b32 {D}, %i, %u;", m="wrap clamp")
    rows.put("r", "rr", "and.b32 %i, {1}, 63; szext.{m}.{s}32 {D}, {0}, %i;", m="wrap clamp", s="s u")
    rows.put("r", "rr", "szext.{m}.{s}32 {D}, {0}, {1};", m="wrap clamp", s="s u")
    rows.put("r", "rrr", "and.b32 %i, {1}, 31; shr.s32 %u, {2}, {n}; fns.b32 {D}, {0}, %i, %u;", n="27 30 31")
    rows.put("r", "rrr", "and.b32 %i, {1}, 31; and.b32 %u, {2}, 7; fns.b32 {D}, {0}, %i, %u;")


def _packed_integers(rows):
    rows.put("r", "rr", "add.{t} {D}, {0}, {1};", t="u16x2 s16x2")
    rows.put("r", "rr", "{o}.{t} {D}, {0}, {1};", o="min max", t="u16x2 s16x2")
    rows.put("r", "rr", "{o}.relu.s16x2 {D}, {0}, {1};", o="min max")
    rows.put("r", "rr", "cvt.pack.sat.{t}.s32 {D}, {0}, {1};", t="u16 s16")
    rows.put("r", "rr", "shr.s32 %i, {0}, 16; cvt.pack.sat.{t}.s32 {D}, %i, {1};", t="u16 s16")
    rows.put("r", "rrr", "shr.s32 %i, {0}, 26; cvt.pack.sat.{t}.s32.b32 {D}, %i, {1}, {2};", t="u8 s8 u4 s4 u2 s2")


def _video(rows):
    signs = {"t": "s32 u32", "a": "s32 u32", "b": "s32 u32"}
    arithmetic = "vadd vsub vabsdiff vmin vmax"
    rows.put("r", "rr", "{o}.{t}.{a}.{b}{s} {D}, {0}{x}, {1}{y};", o=arithmetic, **signs, s="- .sat", x="- .b2",
             y="- .h1")  # fmt: skip
    rows.put("r", "rrr", "{o}.{t}.{a}.s32{s}.{n} {D}, {0}.h0, {1}, {2};", o=arithmetic, t="s32 u32", a="s32 u32",
             s="- .sat", n="add min max")  # fmt: skip
    rows.put("r", "rrr", "{o}.{t}.s32.u32{s} {D}{d}, {0}.b3, {1}.b1, {2};", o=arithmetic, t="s32 u32", s="- .sat",
             d=".b0 .b1 .b2 .b3 .h0 .h1")  # fmt: skip
    for o in ("vshl", "vshr"):
        rows.put("r", "rr", o + ".{t}.{a}.u32{s}.{m} {D}, {0}{x}, {1}.b0;", t="s32 u32", a="s32 u32", s="- .sat",
                 m="clamp wrap", x="- .h1")  # fmt: skip
        short = "and.b32 %i, {1}, 31;" + o + ".{t}.s32.u32{s}.clamp"
        rows.put("r", "rrr", short + ".{n} {D}, {0}, %i, {2};", t="s32 u32", s="- .sat", n="add min max")
        rows.put("r", "rrr", short + " {D}.{d}, {0}, %i, {2};", t="s32 u32", s="- .sat", d="h1 b2")
    rows.put("r", "rrr", "vmad.{t}.{a}.{b}{s}{n} {D}, {0}{x}, {1}, {2};", **signs, s="- .sat", n="- .shr7 .shr15",
             x="- .h1")  # fmt: skip
    rows.put("r", "rrr", "vmad.s32.{a}.u32{s}{n} {D}, {x}, {y}, {z};", a="s32 u32", s="- .sat", n="- .shr7",
             x="{0} -{0}", y="{1}.b1", z="{2}")  # fmt: skip
    rows.put("r", "rrr", "vmad.s32.{a}.u32{s} {D}, {0}.h1, {1}.b1, -{2};", a="s32 u32", s="- .sat")
    rows.put("r", "rrr", "vmad.{t}.{a}.u32.po{s}{n} {D}, {0}, {1}, {2};", t="s32 u32", a="s32 u32", s="- .sat",
             n="- .shr15")  # fmt: skip
    rows.put("r", "rr", "vset.{a}.{b}.{c} {D}, {0}, {1}.h0;", a="s32 u32", b="s32 u32", c=ORDERED)
    rows.put("r", "rrr", "vset.s32.u32.{c}.{o} {D}, {0}, {1}, {2};", c="lt ne", o="add min max")
    rows.put("r", "rrr", "vset.s32.u32.{c} {D}.{d}, {0}, {1}, {2};", c="lt ne", d="b1 h1")
    for n, a, b, d in (("2", ".h20", ".h31", ".h0 .h1 .h10"), ("4", ".b7604", ".b1111", ".b0 .b31 .b210 .b3210")):
        names = " ".join(f"v{name}{n}" for name in ("add", "sub", "avrg", "absdiff", "min", "max"))
        rows.put("r", "rrr", "{o}.{t}.{a}.{b}{s} {D}, {0}, {1}, {2};", o=names, **signs, s="- .sat")
        rows.put("r", "rrr", "{o}.s32.u32.s32{s} {D}{d}, {0}" + a + ", {1}" + b + ", {2};", o=names, s="- .sat .add",
                 d="- " + d)  # fmt: skip
        rows.put("r", "rrr", f"vset{n}" + ".{a}.{b}.{c}{s} {D}, {0}, {1}, {2};", a="s32 u32", b="s32 u32", c=ORDERED,
                 s="- .add")  # fmt: skip


def _moves(rows):
    for pool, bits in WORDS.items():
        rows.put(pool, pool * 2 + "p", "selp.{t}" + bits + " {D}, {0}, {1}, {2};", t="b u s")
        rows.put(pool, pool * 2 + "r", "slct.{t}" + bits + ".s32 {D}, {0}, {1}, {2};", t="b u s")
        rows.put(pool, pool * 2 + "f", "slct{z}.{t}" + bits + ".f32 {D}, {0}, {1}, {2};", z="- .ftz", t="b u s")
        rows.put(pool, pool, "mov.{t}" + bits + " {D}, {0};", t="b u s")
    for pool, kind in FLOATS.items():
        rows.put(pool, pool * 2 + "p", "selp." + kind + " {D}, {0}, {1}, {2};")
        rows.put(pool, pool * 2 + "r", "slct." + kind + ".s32 {D}, {0}, {1}, {2};")
        rows.put(pool, pool * 2 + "f", "slct{z}." + kind + ".f32 {D}, {0}, {1}, {2};", z="- .ftz")
    rows.put("d", "rr", "mov.b64 {D}, {{0}, {1}};")
    rows.put("d", "hhhh", "mov.b64 {D}, {{0}, {1}, {2}, {3}};")
    rows.put("r", "d", "mov.b64 {%i, {D}}, {0};")
    rows.put("r", "d", "mov.b64 {{D}, _}, {0};")
    rows.put("h", "r", "mov.b32 {_, {D}}, {0};")
    rows.put("h", "r", "mov.b32 {%m0, %m1, %m0, %m1}, {0}; mov.b16 {D}, {%m0, %m1};")
    rows.put("r", "hh", "mov.b32 {D}, {{0}, {1}};")
    rows.put("d", "dd", "mov.b128 %v, {{0}, {1}}; mov.b128 %y, %v; mov.b128 {%a, {D}}, %y; sub.s64 {D}, {D}, %a;")
    rows.put("r", "rrr", "mov.b128 %v, {{0}, {1}, {2}, {0}}; mov.b128 {%i, %u, _, {D}}, %v; sub.u32 {D}, {D}, %u;")
    rows.put("p", "pp", "{o}.pred {D}, {0}, {1};", o="and or xor")
    rows.put("p", "p", "{o}.pred {D}, {0};", o="not mov")
    rows.put("p", "", "mov.pred {D}, %is_explicit_cluster;")
    for axis in "xyzw":
        rows.put("r", "", "mov.u32 {D}, %{n}." + axis + ";", n="tid ntid ctaid nctaid clusterid nclusterid "
                 "cluster_ctaid cluster_nctaid")  # fmt: skip
    rows.put("r", "", "mov.u32 {D}, %{n};", n="laneid warpid nwarpid smid nsmid cluster_ctarank cluster_nctarank "
             "lanemask_eq lanemask_lt lanemask_le lanemask_gt lanemask_ge clock clock_hi globaltimer_lo globaltimer_hi "
             "dynamic_smem_size total_smem_size aggr_smem_size reserved_smem_offset_begin reserved_smem_offset_end "
             "reserved_smem_offset_cap reserved_smem_offset_0 reserved_smem_offset_1 envreg0 envreg31 pm7")  # fmt: skip
    rows.put("d", "", "mov.u64 {D}, %{n};", n="gridid clock64 globaltimer current_graph_exec pm0_64 pm7_64")


def _floats(rows):
    """What f32 and f64 have in common."""
    for pool, kind in FLOATS.items():
        rows.put(pool, pool * 2, "{o}.{m}." + kind + " {D}, {0}, {1};", o="add sub mul div", m=MODES)
        rows.put(pool, pool * 3, "{o}.{m}." + kind + " {D}, {0}, {1}, {2};", o="fma mad", m=MODES)
        rows.put(pool, pool, "{o}.{m}." + kind + " {D}, {0};", o="sqrt rcp", m=MODES)
        rows.put(pool, pool * 2, "{o}." + kind + " {D}, {0}, {1};", o="add sub mul min max copysign")
        rows.put(pool, pool, "{o}." + kind + " {D}, {0};", o="neg abs")
        tests = "finite infinite number notanumber normal subnormal"
        rows.put("p", pool, "testp.{t}." + kind + " {D}, {0};", t=tests)


def _singles(rows):
    flags = ".ftz .sat .ftz.sat"
    rows.put("f", "ff", "{o}.{m}{z}.f32 {D}, {0}, {1};", o="add sub mul", m=MODES, z=flags)
    rows.put("f", "fff", "fma.{m}{z}.f32 {D}, {0}, {1}, {2};", m=MODES, z=flags)
    rows.put("f", "ff", "div.{m}.ftz.f32 {D}, {0}, {1};", m=f"{MODES} full approx")
    rows.put("f", "ff", "div.{m}.f32 {D}, {0}, {1};", m="full approx")
    rows.put("f", "f", "{o}.{m}.ftz.f32 {D}, {0};", o="sqrt rcp", m=f"{MODES} approx")
    rows.put("f", "f", "{o}.approx.f32 {D}, {0};", o="sqrt rcp")
    rows.put("f", "f", "{o}.ftz.f32 {D}, {0};", o="neg abs")
    rows.put("f", "ff", "{o}{z}{n}{x}.f32 {D}, {0}, {1};", o="min max", z="- .ftz", n="- .NaN", x="- .xorsign.abs")
    rows.put("f", "fff", "{o}{z}{n}{x}.f32 {D}, {0}, {1}, {2};", o="min max", z="- .ftz", n="- .NaN", x="- .abs")
    rows.put("d", "dd", "{o}.{m}{z}.f32x2 {D}, {0}, {1};", o="add sub mul", m=MODES, z="- .ftz")
    rows.put("d", "ddd", "fma.{m}{z}.f32x2 {D}, {0}, {1}, {2};", m=MODES, z="- .ftz")
    for kind in ("f16", "bf16"):
        rows.put("f", "hf", "{o}.{m}{z}.f32." + kind + " {D}, {0}, {1};", o="add sub", m=MODES, z="- .sat")
        rows.put("f", "hhf", "fma.{m}{z}.f32." + kind + " {D}, {0}, {1}, {2};", m=MODES, z="- .sat")


def _doubles(rows):
    rows.put("g", "g", "{o}.approx.ftz.f64 {D}, {0};", o="rcp rsqrt")


def _halves(rows):
    for kind, pool in (("f16", "h"), ("f16x2", "r"), ("f16", "e")):
        modifiers = "- .ftz .sat .ftz.sat"
        rows.put(pool, pool * 2, "{o}{z}." + kind + " {D}, {0}, {1};", o="add sub mul add.rn", z=modifiers)
        rows.put(pool, pool * 3, "fma.rn{z}." + kind + " {D}, {0}, {1}, {2};", z=f"{modifiers} .relu .ftz.relu")
        rows.put(pool, pool, "{o}{z}." + kind + " {D}, {0};", o="neg abs", z="- .ftz")
        rows.put(pool, pool * 2, "{o}{z}{n}{x}." + kind + " {D}, {0}, {1};", o="min max", z="- .ftz", n="- .NaN",
                 x="- .xorsign.abs")  # fmt: skip
    for kind, pool in (("bf16", "h"), ("bf16x2", "r")):
        rows.put(pool, pool * 2, "{o}." + kind + " {D}, {0}, {1};", o="add sub mul add.rn sub.rn mul.rn")
        rows.put(pool, pool * 3, "fma.{m}{z}." + kind + " {D}, {0}, {1}, {2};", m=MODES, z="- .relu")
        rows.put(pool, pool, "{o}." + kind + " {D}, {0};", o="neg abs")
        rows.put(pool, pool * 2, "{o}{n}{x}." + kind + " {D}, {0}, {1};", o="min max", n="- .NaN", x="- .xorsign.abs")


def _comparisons(rows):
    for pool, bits in WORDS.items():
        for kinds, comparisons in ((f"s{bits} u{bits}", ORDERED), (f"b{bits}", "eq ne"), (f"u{bits}", "lo ls hi hs")):
            rows.put("p", pool * 2, "setp.{c}.{t} {D}, {0}, {1};", c=comparisons, t=kinds)
        pair = "setp.{c}.{b}.s" + bits + " {x}, {0}, {1}, {n}; xor.pred {D}, {D}, %q;"
        rows.put("p", pool * 2 + "p", pair, c="lt eq", b="and or xor", x="{D}|%q %q|{D}", n="{2} !{2}")
        rows.put("r", pool * 2, "set.{c}.{d}.{s}" + bits + " {D}, {0}, {1};", c="lt ge", d="u32 s32", s="s u")
        rows.put("f", pool * 2, "set.{c}.f32.{s}" + bits + " {D}, {0}, {1};", c="lt ne", s="s u")
        rows.put("h", pool * 2, "set.{c}.{d}.{s}" + bits + " {D}, {0}, {1};", c="lt ne", d="f16 bf16", s="s u")
        rows.put("r", pool * 2 + "p", "set.{c}.{b}.u32.s" + bits + " {D}, {0}, {1}, {2};", c="lt", b="and or xor")
    for pool, kind, flags in (("f", "f32", "- .ftz"), ("g", "f64", "-"), ("h", "f16", "- .ftz"), ("h", "bf16", "-")):
        rows.put("p", pool * 2, "setp.{c}{z}." + kind + " {D}, {0}, {1};", c=FLOAT_COMPARISONS, z=flags)
        rows.put("p", pool * 2 + "p", "setp.{c}.{b}." + kind + " {D}, {0}, {1}, {2};", c="lt neu", b="and or xor")
        rows.put("r", pool * 2, "set.{c}{z}.{d}." + kind + " {D}, {0}, {1};", c="lt geu", z=flags, d="u32 s32")
    for pool, kind in FLOATS.items():
        rows.put("p", pool * 2, "setp.{c}." + kind + " {x}, {0}, {1};", c="lt nan", x="{D}|%q %q|{D}")
        rows.put("f", pool * 2, "set.{c}.f32." + kind + " {D}, {0}, {1};", c="lt geu")
    for kind, flags in (("f16", "- .ftz"), ("bf16", "-")):
        rows.put("h", "hh", "set.{c}{z}.{d}." + kind + " {D}, {0}, {1};", c="lt neu", z=flags, d=f"{kind} u16 s16")
        comparisons = {"c": FLOAT_COMPARISONS, "z": flags}
        rows.put("p", "rr", "setp.{c}{z}." + kind + "x2 {D}|%q, {0}, {1}; xor.pred {D}, {D}, %q;", **comparisons)
        rows.put("r", "rr", "set.{c}{z}.{d}." + kind + "x2 {D}, {0}, {1};", **comparisons, d=f"{kind}x2 u32 s32")
        rows.put("r", "rrp", "set.{c}.{b}.{d}." + kind + "x2 {D}, {0}, {1}, !{2};", c="lt", b="and or xor",
                 d=f"{kind}x2")  # fmt: skip


def _from_floats(rows):
    """To integers: of 16 bits and more into registers of their size, of 8 bits into 32."""
    for pool, kind, flags in (("f", "f32", "- .ftz"), ("g", "f64", "-"), ("h", "f16", "-"), ("h", "bf16", "-")):
        for target, bits in WORDS.items():
            rows.put(target, pool, "cvt.{m}{z}.{s}" + f"{bits}.{kind} {{D}}, {{0}};", m="rni rzi rmi rpi", z=flags,
                     s="s u")  # fmt: skip
            if kind != "bf16":
                rows.put(target, pool, "cvt.{m}.sat.{s}" + f"{bits}.{kind} {{D}}, {{0}};", m="rni", s="s u")
        if kind != "bf16":
            rows.put("r", pool, "cvt.{m}.{s}8." + kind + " {D}, {0};", m="rni rzi rmi rpi", s="s u")


def _to_floats(rows):
    for pool, kind in (("f", "f32"), ("g", "f64"), ("h", "f16"), ("h", "bf16")):
        for source, bits in WORDS.items():
            rows.put(pool, source, "cvt.{m}." + kind + ".{s}" + bits + " {D}, {0};", m=MODES, s="s u")
        if kind != "bf16":
            rows.put(pool, "r", "cvt.{m}{z}." + kind + ".{s}8 {D}, {0};", m="rn rz", z="- .sat", s="s u")
    sizes = {"h": ("8", "16"), "r": ("8", "16", "32"), "d": ("8", "16", "32", "64")}
    for target in sizes:
        for source in sizes:
            for to in sizes[target]:
                for of in sizes[source]:
                    text = "cvt{z}.{s}" + to + ".{t}" + of + " {D}, {0};"
                    rows.put(target, source, text, z="-", s="s u", t="s u")
                    # .sat is legal only where the source has values outside of the target
                    rows.put(target, source, text, z=".sat", s="u", t="s")
                    if int(to) <= int(of):
                        rows.put(target, source, text, z=".sat", s="s", t="u")
                    if int(to) < int(of):
                        rows.put(target, source, text, z=".sat", s="s", t="s")
                        rows.put(target, source, text, z=".sat", s="u", t="u")


def _between_floats(rows):
    """Between numbers, and to the same type rounded to an integral value or saturated."""
    rows.put("f", "g", "cvt.{m}{z}.f32.f64 {D}, {0};", m=MODES, z="- .ftz .sat .ftz.sat")
    rows.put("g", "f", "cvt{z}.f64.f32 {D}, {0};", z="- .ftz .sat")
    rows.put("h", "f", "cvt.{m}{z}.f16.f32 {D}, {0};", m=MODES, z="- .ftz .sat")
    rows.put("h", "g", "cvt.{m}{z}.f16.f64 {D}, {0};", m=MODES, z="- .sat")
    rows.put("h", "g", "cvt.{m}.bf16.f64 {D}, {0};", m=MODES)
    rows.put("h", "f", "cvt.{m}{r}{z}.{t}.f32 {D}, {0};", m="rn rz", r="- .relu", z="- .satfinite", t="f16 bf16")
    rows.put("h", "f", "cvt.{m}.bf16.f32 {D}, {0};", m="rm rp")
    rows.put("h", "h", "cvt.{m}.{t} {D}, {0};", m=MODES, t="f16.bf16 bf16.f16")
    rows.put("f", "h", "cvt{z}.f32.{t} {D}, {0};", z="- .ftz .sat", t="f16")
    rows.put("f", "h", "cvt.f32.bf16 {D}, {0};")
    rows.put("g", "h", "cvt{z}.f64.f16 {D}, {0};", z="- .sat")
    rows.put("g", "h", "cvt.f64.bf16 {D}, {0};")
    for pool, kind, flags in (("f", "f32", "- .ftz .sat"), ("g", "f64", "- .sat"), ("h", "f16", "- .sat"),
                              ("h", "bf16", "-")):  # fmt: skip
        rows.put(pool, pool, "cvt.{m}{z}." + f"{kind}.{kind} {{D}}, {{0}};", m="rni rzi rmi rpi", z=flags)
        if kind != "bf16":
            rows.put(pool, pool, "cvt{z}." + f"{kind}.{kind} {{D}}, {{0}};", z=flags)


def _narrow_floats(rows):
    rows.put("r", "f", "cvt.{m}{z}{r}.tf32.f32 {D}, {0};", m="rn rz", z="- .satfinite", r="- .relu")
    rows.put("r", "f", "cvt.rna{z}.tf32.f32 {D}, {0};", z="- .satfinite")
    rows.put("r", "ff", "cvt.{m}{r}{z}.{t}.f32 {D}, {0}, {1};", m="rn rz", r="- .relu", z="- .satfinite",
             t="f16x2 bf16x2")  # fmt: skip
    small = "e4m3x2 e5m2x2 e2m3x2 e3m2x2"
    # numbers of these formats' range, and the pool's own
    near = "and.b32 %i, {1}, 0x8FFFFFFF; or.b32 %i, %i, 0x38000000; mov.b32 %t, %i;"
    rows.put("h", "ff", "cvt.rn.satfinite{r}.{t}.f32 {D}, {0}, {1};", r="- .relu", t=small)
    rows.put("h", "fr", near + "cvt.rn.satfinite{r}.{t}.f32 {D}, %t, {0};", r="- .relu", t=small)
    rows.put("h", "r", "cvt.rn.satfinite{r}.{t}.f16x2 {D}, {0};", r="- .relu", t="e4m3x2 e5m2x2")
    rows.put("r", "h", "cvt.rn{r}.f16x2.{t} {D}, {0};", r="- .relu", t="e4m3x2 e5m2x2")
    rows.put("r", "h", "and.b16 %w, {0}, 0x3F3F; cvt.rn{r}.f16x2.{t} {D}, %w;", r="- .relu", t="e2m3x2 e3m2x2")
    rows.put("h", "fr", near + "cvt.rn.satfinite{r}.e2m1x2.f32 %m0, {0}, %t; mov.b16 {D}, {%m0, %m0};", r="- .relu")
    rows.put("r", "h", "mov.b16 {%m0, %m1}, {0}; cvt.rn{r}.f16x2.e2m1x2 {D}, %m0;", r="- .relu")
    rows.put("h", "ff", "cvt.{m}{z}.ue8m0x2.f32 {D}, {0}, {1};", m="rz rp", z="- .satfinite")
    rows.put("h", "r", "cvt.{m}{z}.ue8m0x2.bf16x2 {D}, {0};", m="rz rp", z="- .satfinite")
    rows.put("r", "h", "cvt.rn.bf16x2.ue8m0x2 {D}, {0};")


def _lanes(rows):
    """Warp-wide instructions; what reads a lane that does not run is made the same by the instruction before it."""
    for mode in ("up", "down", "bfly", "idx"):
        rows.put("r", "rr", f"shfl.sync.{mode}.b32 {{D}}|%q, {{0}}, {{1}}, {{c}}, -1; selp.b32 {{D}}, {{D}}, 9, %q;",
                 c="31 0 0x181f 0x1000")  # fmt: skip
    rows.put("r", "rrr", "shfl.sync.{m}.b32 {D}, {0}, {1}, {2}, -1;", m="up down bfly idx")
    rows.put("r", "p", "vote.sync.ballot.b32 {D}, {n}, -1;", n="{0} !{0}")
    rows.put("p", "p", "vote.sync.{m}.pred {D}, {n}, -1;", m="any all uni", n="{0} !{0}")
    rows.put("r", "r", "match.any.sync.b32 {D}, {0}, -1;")
    rows.put("r", "d", "match.any.sync.b64 {D}, {0}, -1;")
    rows.put("r", "r", "match.all.sync.b32 {D}|%q, {0}, -1; selp.b32 {D}, {D}, 9, %q;")
    rows.put("r", "d", "and.b64 %a, {0}, 0; match.all.sync.b64 {D}|%q, %a, -1; selp.b32 {D}, {D}, 9, %q;")
    rows.put("r", "r", "redux.sync.{o} {D}, {0}, -1;", o="add.s32 add.u32 min.s32 min.u32 max.s32 max.u32 and.b32 "
             "or.b32 xor.b32")  # fmt: skip
    rows.put("f", "f", "redux.sync.{o}{a}{n}.f32 {D}, {0}, -1;", o="min max", a="- .abs", n="- .NaN")
    rows.put("r", "", "activemask.b32 {D};")
    rows.put("r", "", "elect.sync {D}|%q, -1; selp.b32 {D}, {D}, 99, %q;")
    rows.put("p", "", "elect.sync _|{D}, -1;")
