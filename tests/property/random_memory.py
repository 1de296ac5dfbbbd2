"""Rows of `random_ptx.TABLE` for memory: loads, stores and atomics of all types, vector lengths and state spaces.

A thread may use the first 8 bytes of its row at [%at], `scratch` (64 bytes of shared memory, read and written by
all) and `depot` (32 bytes of local memory). Temporaries: %i, %u (32 bits), %t (f32), %a, %b (64 bits), %w, %x (16
bits), %v, %y (128 bits), %q.
"""

#: %i: an address of shared memory, aligned to 8 and with 8 bytes left; to 16
SHARED = "and.b32 %i, {0}, 56;"
WIDE = "and.b32 %i, {0}, 48;"
#: %a: a generic address of shared or local memory, or of the thread's own bytes in global memory, lane by lane
MIXED = (
    "mov.u64 %a, scratch; cvta.shared.u64 %a, %a; mov.u64 %b, depot; cvta.local.u64 %b, %b;"
    "selp.b64 %a, %a, %b, {p}; and.b32 %i, {0}, 3; setp.eq.s32 %q, %i, 0; selp.b64 %a, %at, %a, %q;"
)
#: the same without local memory, for atomics
ATOMIC = "mov.u64 %a, scratch; cvta.shared.u64 %a, %a; selp.b64 %a, %a, %at, {p}; and.b32 %i, {0}, 3;"

_PLAIN = [
    ("r", "r", "createpolicy.fractional.L2::evict_last.b64 %b, 1.0; ld.global.L2::cache_hint.b32 {D}, [%at], %b;"),
    ("r", "r", "ld.global.nc.L1::no_allocate.L2::128B.b32 {D}, [%at]; prefetch.global.L2 [%at];"),
    ("r", "r", "ldu.global.b32 {D}, [%at+4];"),
    ("r", "r", "SHARED st.shared.u8 [%i+3], {0}; ld.shared.s8 {D}, [%i+3];"),
    ("r", "r", "SHARED st.shared.b16 [%i+2], {0}; ld.shared.s16 {D}, [%i+2];"),
    ("h", "rh", "SHARED st.shared.b8 [%i+7], {1}; ld.shared.u8 {D}, [%i+7];"),
    ("d", "rd", "SHARED st.shared.b64 [%i], {1}; ld.shared.s32 {D}, [%i+4];"),
    ("d", "", "ld.global.s8 {D}, [%at+7];"),
    ("f", "rf", "SHARED st.shared.f32 [%i], {1}; ld.shared.f32 {D}, [%i];"),
    ("g", "rg", "SHARED st.shared.f64 [%i], {1}; ld.shared.f64 {D}, [%i];"),
    ("r", "rr", "WIDE st.shared.v4.b32 [%i], {{0}, {1}, %u, {0}}; ld.shared.v4.b32 {{D}, _, %u, _}, [%i];"),
    ("h", "rh", "SHARED st.shared.v4.b16 [%i], {{1}, %w, {1}, %w}; ld.shared.v4.u16 {%w, _, %x, {D}}, [%i];"),
    ("d", "rd", "WIDE st.shared.v2.b64 [%i], {{1}, %at}; ld.shared.v2.b64 {_, {D}}, [%i];"),
    ("r", "r", "SHARED ld.shared.v4.u8 {%w, {D}, _, %x}, [%i];"),
    ("r", "r", "SHARED ld.shared.v2.s16 {{D}, %w}, [%i+4];"),
    ("d", "rd", "WIDE mov.b128 %v, {{1}, %at}; st.shared.b128 [%i], %v; ld.shared.b128 %y, [%i];"
     "mov.b128 {%b, {D}}, %y;"),
    # parameters by register and as generic addresses
    ("d", "", "mov.b64 %a, in; ld.param.u64 {D}, [%a+8];"),
    ("d", "", "mov.b64 %a, in; cvta.param.u64 %a, %a; ld.u64 {D}, [%a];"),
    ("r", "p", "mov.b64 %a, in; cvta.param.u64 %a, %a; selp.b64 %a, %a, %at, {0}; ld.u32 {D}, [%a+4];"),
    # lanes in different state spaces
    ("r", "rrp", "MIXED st.b32 [%a], {1}; ld.b32 {D}, [%a+4];"),
    ("d", "rdp", "MIXED st.v2.b32 [%a], {%u, %i}; ld.b64 {D}, [%a];"),
    ("h", "rhp", "MIXED st.v4.b16 [%a], {{1}, %w, %x, {1}}; ld.v4.b16 {_, {D}, %w, _}, [%a];"),
    ("r", "rrp", "ATOMIC atom.add.u32 {D}, [%a], {1};"),
    ("f", "rfp", "ATOMIC atom.add.f32 {D}, [%a], {1};"),
    ("d", "rdp", "ATOMIC atom.cas.b64 {D}, [%a], {1}, %at;"),
    # atomics
    ("d", "rd", "atom.acq_rel.sys.global.cas.b64 {D}, [%at], {1}, %at;"),
    ("h", "rh", "SHARED atom.shared.cas.b16 {D}, [%i+2], {1}, {1};"),
    ("f", "rf", "SHARED atom.shared.add.f32 {D}, [%i], {1};"),
    ("f", "f", "atom.global.add.f32 {D}, [%at], {0};"),
    ("g", "rg", "SHARED atom.shared.add.f64 {D}, [%i], {1};"),
    ("g", "g", "red.global.add.f64 [%at], {0}; ld.global.f64 {D}, [%at];"),
    ("f", "f", "atom.global.v2.f32.add {%t, {D}}, [%at], {{0}, %t};"),
    ("f", "f", "red.global.v2.f32.add [%at], {{0}, %t}; ld.global.f32 {D}, [%at];"),
    ("d", "rd", "WIDE mov.b128 %v, {{1}, %at}; atom.shared.b128.exch %y, [%i], %v;"
     "atom.shared.b128.cas %v, [%i], %v, %y; mov.b128 {{D}, %b}, %v;"),
]  # fmt: skip


def memory_rows():
    """(text, destination pool, source pools), as in `random_ptx.TABLE`."""
    rows = [(destination, sources, text) for destination, sources, text in _PLAIN]
    for cache in (".volatile", ".relaxed.gpu", ".acquire.cta"):
        rows.append(("r", "r", f"ld{cache}.global.b32 {{D}}, [%at+4];"))
        rows.append(("r", "r", f"SHARED ld{cache}.shared.u32 {{D}}, [%i+4];"))
    for cache in (".volatile", ".relaxed.sys", ".release.cluster", ".wb", ".cg"):
        rows.append(("r", "r", f"st{cache}.global.b32 [%at], {{0}}; ld.global.ca.b32 {{D}}, [%at];"))
    for space in ("shared", "local", "global", "const", "param", "shared::cta", "shared::cluster"):
        rows.append(("p", "rrp", f"MIXED isspacep.{space} {{D}}, %a;"))
    for pool, kinds in (("r", ("u32", "s32")), ("d", ("u64", "s64"))):
        for operation in [f"{op}.{kind}" for op in ("add", "min", "max") for kind in kinds]:
            rows.append((pool, "r" + pool, f"SHARED atom.shared.{operation} {{D}}, [%i], {{1}};"))
            rows.append((pool, pool, f"atom.relaxed.gpu.global.{operation} {{D}}, [%at], {{0}};"))
    for operation in ("and.b64", "or.b64", "xor.b64", "exch.b64"):
        rows.append(("d", "rd", f"SHARED atom.shared.{operation} {{D}}, [%i], {{1}};"))
    for kind in ("f16", "bf16"):
        rows.append(("h", "rh", f"SHARED atom.shared.add.noftz.{kind} {{D}}, [%i], {{1}};"))
        rows.append(("r", "rr", f"SHARED atom.shared.add.noftz.{kind}x2 {{D}}, [%i], {{1}};"))
        for op in ("add", "min", "max"):
            rows.append(("h", "h", f"atom.global.v2.{kind}.{op}.noftz {{{{D}}, %w}}, [%at], {{{{0}}, %x}};"))
            rows.append(("r", "rr", f"atom.global.v2.{kind}x2.{op}.noftz {{%u, {{D}}}}, [%at], {{{{0}}, {{1}}}};"))
    return [(_complete(text), destination, sources) for destination, sources, text in rows]


def _complete(text):
    for name, start in (("SHARED ", SHARED), ("WIDE ", WIDE), ("MIXED ", MIXED), ("ATOMIC ", ATOMIC)):
        text = text.replace(name, start + " ")
    return text.replace("{p}", "{2}")
