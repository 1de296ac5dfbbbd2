"""Forms of instructions with results worked out by hand from the PTX ISA's pseudo code, in both engines."""

import pytest
from ptx_lanes import lanes
from reference.interpreter.interpreter import interpret

from ppt_gpu.emulator.run.run import run

ENGINES = pytest.mark.parametrize("engine", [interpret, run], ids=["interpreter", "compiled"])
M = 0xFFFFFFFF
NAN16, NAN32 = 0x7FFF, 0x7FFFFFFF
ONE, TWO = 0x3C00, 0x4000  # f16

#: (instruction, input types, output type, [(inputs..., expected), ...])
CASES = [
    # packed integers
    ("add.u16x2 %d, %a, %b;", "b32 b32", "b32", [(0xFFFF0001, 0x0001FFFF, 0x00000000)]),
    ("min.s16x2 %d, %a, %b;", "b32 b32", "b32", [(0x8000_0005, 0x0001_FFFF, 0x8000_FFFF)]),
    ("max.relu.s16x2 %d, %a, %b;", "b32 b32", "b32", [(0x8000_0005, 0xFFFF_FFFF, 0x0000_0005)]),
    ("max.u16x2 %d, %a, %b;", "b32 b32", "b32", [(0x8000_0005, 0x0001_FFFF, 0x8000_FFFF)]),
    ("min.relu.s32 %d, %a, %b;", "s32 s32", "s32", [(-5, 3, 0), (7, 3, 3)]),
    # bits
    ("lop3.or.b32 %d|%p, %a, %b, %c, 0x80, %q; selp.b32 %t32, 1, 0, %p; add.u32 %d, %d, %t32;", "b32 b32 b32", "b32",
     [(6, 6, 4, 5), (1, 2, 4, 0)]),
    ("prmt.b32.f4e %d, %a, %b, %c;", "b32 b32 b32", "b32", [(0x33221100, 0x77665544, 2, 0x55443322)]),
    ("prmt.b32.b4e %d, %a, %b, %c;", "b32 b32 b32", "b32",
     [(0x33221100, 0x77665544, 0, 0x55667700), (0x33221100, 0x77665544, 3, 0x00112233)]),
    ("prmt.b32.rc8 %d, %a, %b, %c;", "b32 b32 b32", "b32", [(0x33221100, 0, 6, 0x22222222)]),
    ("prmt.b32.ecl %d, %a, %b, %c;", "b32 b32 b32", "b32", [(0x33221100, 0, 2, 0x33222222)]),
    ("prmt.b32.ecr %d, %a, %b, %c;", "b32 b32 b32", "b32", [(0x33221100, 0, 2, 0x22221100)]),
    ("fns.b32 %d, %a, %b, %c;", "b32 b32 s32", "b32",
     [(0b101100, 0, 1, 2), (0b101100, 3, 2, 5), (0b101100, 4, -1, 3), (0b101100, 31, -3, 2), (0b101100, 0, 4, M),
      (0b101100, 3, 0, 3), (0b101100, 4, 0, M), (0b101100, 1, -1, M)]),
    ("szext.wrap.s32 %d, %a, %b;", "b32 b32", "b32", [(0xFF, 8, M), (0x7F, 8, 0x7F), (0xFF, 32, 0), (0xFF, 40, M)]),
    ("szext.clamp.u32 %d, %a, %b;", "b32 b32", "b32", [(0xABCD, 8, 0xCD), (0x8000ABCD, 99, 0x8000ABCD)]),
    ("bmsk.wrap.b32 %d, %a, %b;", "b32 b32", "b32", [(36, 34, 0x30)]),
    ("cvt.pack.sat.s16.s32 %d, %a, %b;", "s32 s32", "b32", [(70000, -70000, 0x7FFF8000), (-1, 5, 0xFFFF0005)]),
    ("cvt.pack.sat.u8.s32.b32 %d, %a, %b, %c;", "s32 s32 b32", "b32", [(300, -3, 0x12345678, 0x5678FF00)]),
    ("cvt.pack.sat.s4.s32.b32 %d, %a, %b, %c;", "s32 s32 b32", "b32", [(9, -2, 0x12345678, 0x3456787E)]),
    ("addc.cc.u64 %t64, %a, %a; addc.u64 %d, %b, 0;", "u64 u64", "u64", [(2**63, 7, 8), (1, 7, 7)]),
    ("add.cc.u32 %t32, %b, %b; madc.hi.sat.s32 %d, %a, %b, %c;", "s32 s32 s32", "s32",
     [(1, -1, 5, 5), (1, 1, 5, 5), (-2, -1, -(2**31), -(2**31) + 1), (2**30, -(2**31), -(2**31), -(2**31))]),
    ("mov.b128 %q1, {%a, %b, %a, %c}; mov.b128 {%t64, %d}, %q1;", "b32 b32 b32", "b64", [(1, 2, 3, 3 << 32 | 1)]),
    ("mov.b128 %q1, {%a, %b}; mov.b128 {%t32, %u32, %d, _}, %q1;", "b64 b64", "b32", [(1, 7 << 32 | 5, 5)]),
    # a form that ptxas would refuse
    ("setp.eq.u32 %p, %a, %b; cnot.pred %p, %p; selp.b32 %d, 1, 0, %p;", "b32 b32", "b32", [(1, 1, 0), (1, 2, 1)]),
    ("mov.v2.b32 {%t32, %d}, {%a, %b};", "b32 b32", "b32", [(1, 2, 2)]),
    ("mov.v2.b32 {%t32, %d}, {%a, %b}; mov.v2.b32 {%t32, %d}, {%d, %t32}; sub.u32 %d, %t32, %d;", "b32 b32", "b32",
     [(1, 5, 4)]),
    ("mad24.hi.sat.s32 %d, %a, %b, %c;", "s32 s32 s32", "s32", [(2**22, 2**22, 2**31 - 1, 2**31 - 1)]),
    # scalar video
    ("vadd.s32.u32.s32 %d, %a.b1, %b.h1;", "b32 b32", "s32", [(0xFF80, 0xFFFE0000, 253)]),
    ("vsub.u32.u32.u32.sat %d, %a, %b;", "b32 b32", "u32", [(3, 5, 0), (5, 3, 2)]),
    ("vadd.u32.u32.u32.sat %d.b2, %a, %b, %c;", "b32 b32 b32", "b32", [(200, 100, 0x11223344, 0x11FF3344)]),
    ("vadd.u32.u32.u32 %d, %a.b2, %b;", "b32 b32", "b32", [(0x00110000, 2, 0x13)]),
    ("vadd.u32.u32.u32 %d, %a, %b.b2;", "b32 b32", "b32", [(2, 0x00110000, 0x13)]),
    ("vadd.u32.u32.u32 %d.b2, %a, %b, %c;", "b32 b32 b32", "b32", [(2, 3, 0, 0x00050000)]),
    ("vabsdiff.s32.s32.s32.add %d, %a, %b, %c;", "s32 s32 s32", "s32", [(-7, 5, 100, 112)]),
    ("vmin.s32.s32.u32.max %d, %a, %b, %c;", "s32 u32 s32", "s32", [(-7, 5, -3, -3), (9, 5, -3, 5)]),
    ("vshl.u32.u32.u32.sat.clamp %d, %a, %b;", "u32 u32", "u32", [(1, 31, 2**31), (3, 31, M), (1, 99, M), (0, 99, 0)]),
    ("vshr.s32.s32.u32.wrap %d, %a, %b;", "s32 u32", "s32", [(-8, 33, -4)]),
    ("vset.s32.u32.lt %d, %a, %b;", "s32 u32", "u32", [(-1, 0, 1), (5, 5, 0)]),
    ("vmad.s32.s32.u32.shr7 %d, %a, %b, %c;", "s32 u32 s32", "s32", [(-128, 256, 128, -255)]),
    ("vmad.s32.u32.u32.sat %d, -%a, %b, %c;", "u32 u32 s32", "s32", [(3, 5, 20, 5), (2**16, 2**16, 0, -(2**31))]),
    ("vmad.s32.u32.u32 %d, %a, %b, -%c;", "u32 u32 s32", "s32", [(3, 5, 20, -5)]),
    ("vmad.u32.u32.u32.po %d, %a, %b, %c;", "u32 u32 u32", "u32", [(3, 5, 20, 36)]),
    # SIMD video
    ("vadd2.s32.s32.s32.sat %d, %a, %b, %c;", "b32 b32 b32", "b32", [(0x7FFF_8000, 0x0001_FFFF, 0, 0x7FFF_8000)]),
    ("vadd2.u32.u32.u32 %d.h1, %a, %b, %c;", "b32 b32 b32", "b32",
     [(0x0003_0004, 0x0010_0020, 0xAAAABBBB, 0x0013BBBB)]),
    ("vadd4.u32.u32.u32.add %d, %a, %b, %c;", "b32 b32 b32", "b32", [(0x01020304, 0xFF000001, 1000, 1266)]),
    ("vabsdiff4.u32.u32.u32.add %d, %a, %b, %c;", "b32 b32 b32", "b32", [(0x01020304, 0x0200FF04, 0, 1 + 2 + 252)]),
    ("vavrg4.u32.u32.u32 %d, %a, %b, %c;", "b32 b32 b32", "b32", [(0x01020304, 0x02020202, 0, 0x02020303)]),
    ("vavrg2.s32.s32.s32 %d, %a, %b, %c;", "b32 b32 b32", "b32", [(0xFFFD_0001, 0xFFFE_0002, 0, 0xFFFD_0002)]),
    ("vmax4.s32.s32.s32 %d, %a.b0123, %b, %c;", "b32 b32 b32", "b32", [(0x01FF0380, 0x00000000, 0, 0x00030001)]),
    ("vset4.u32.u32.ne %d, %a, %b, %c;", "b32 b32 b32", "b32", [(0x01020304, 0x01000300, 0, 0x00010001)]),
    # minimum and maximum of floats
    ("min.f32 %d, %a, %b, %c;", "b32 b32 b32", "b32", [(0x3F800000, 0x7FC00000, 0xBF800000, 0xBF800000)]),
    ("max.NaN.abs.f32 %d, %a, %b, %c;", "b32 b32 b32", "b32",
     [(0x3F800000, 0xC0000000, 0xBF800000, 0x40000000), (0x3F800000, 0xFFC00001, 0, NAN32)]),
    ("max.xorsign.abs.f32 %d, %a, %b;", "b32 b32", "b32",
     [(0xBF800000, 0x40000000, 0xC0000000), (0xBF800000, 0xC0000000, 0x40000000)]),
    ("max.f16 %d, %a, %b;", "b16 b16", "b16", [(0x8000, 0, 0), (0x7E01, ONE, ONE), (0x7E01, 0xFE00, NAN16)]),
    ("min.bf16x2 %d, %a, %b;", "b32 b32", "b32", [(0x3F80_BF80, 0x4000_7FC0, 0x3F80_BF80)]),
    # half precision
    ("add.sat.f16 %d, %a, %b;", "b16 b16", "b16", [(ONE, ONE, ONE), (0xBC00, 0, 0), (0x7E00, ONE, 0)]),
    ("fma.rn.relu.f16 %d, %a, %b, %c;", "b16 b16 b16", "b16", [(ONE, 0xC000, ONE, 0), (0x7E00, 0, 0, NAN16)]),
    ("mul.ftz.f16 %d, %a, %b;", "b16 b16", "b16", [(0x0400, 0x3800, 0), (0x0001, 0x7800, 0), (0x8400, 0x3800, 0x8000)]),
    ("set.lt.u32.f16x2 %d, %a, %b;", "b32 b32", "b32", [(0x3C00_4000, 0x4000_3C00, 0xFFFF_0000)]),
    ("set.gt.f16x2.f16x2 %d, %a, %b;", "b32 b32", "b32", [(0x3C00_4000, 0x4000_3C00, 0x0000_3C00)]),
    ("setp.lt.f16x2 %p|%q, %a, %b; selp.b32 %d, 1, 0, %p; selp.b32 %t32, 2, 0, %q; or.b32 %d, %d, %t32;", "b32 b32",
     "b32", [(0x3C00_4000, 0x4000_3C00, 2), (0x4000_3C00, 0x3C00_4000, 1)]),
    ("add.rn.ftz.f32x2 %d, %a, %b;", "b64 b64", "b64",
     [(0x00000001_3F800000, 0x00000001_3F800000, 0x00000000_40000000)]),
    # a negated predicate as a number, which ptxas would refuse
    ("setp.gt.u32 %p, %a, 1; add.u32 %d, %b, !%p;", "u32 u32", "u32", [(0, 5, 6), (2, 5, 5)]),
    # conversions
    ("cvt.rn.satfinite.e4m3x2.f32 %d, %a, %b;", "f32 f32", "b16",
     [(1.0, -448.0, 0x38FE), (1e9, 0.0009765625, 0x7E00), (float("nan"), 0.001953125, 0x7F01)]),
    ("cvt.rn.satfinite.e5m2x2.f32 %d, %a, %b;", "f32 f32", "b16", [(1e9, -1.0, 0x7BBC)]),
    ("cvt.rn.f16x2.e4m3x2 %d, %a;", "b16", "b32", [(0x387F, 0x3C00_7FFF), (0xFE01, 0xDF00_1800)]),
    ("cvt.rn.satfinite.relu.e2m3x2.f32 %d, %a, %b;", "f32 f32", "b16", [(100.0, -1.0, 0x1F00), (7.5, 0.125, 0x1F01)]),
    ("cvt.rp.satfinite.ue8m0x2.f32 %d, %a, %b;", "f32 f32", "b16", [(1.5, 1.0, 0x807F), (float("inf"), 0.0, 0xFE00)]),
    ("cvt.rn.bf16x2.ue8m0x2 %d, %a;", "b16", "b32", [(0x807F, 0x4000_3F80), (0xFF00, 0x7FFF_0040)]),
    ("cvt.rna.tf32.f32 %d, %a;", "b32", "b32",
     [(0x3F801000, 0x3F802000), (0x7F7FFFFF, 0x7F800000), (0x7F800001, NAN32)]),
    ("cvt.rn.relu.satfinite.f16x2.f32 %d, %a, %b;", "f32 f32", "b32", [(1e6, -1e6, 0x7BFF_0000)]),
    ("cvt.rzi.u64.f32 %d, %a;", "f32", "u64", [(float("nan"), 2**63), (-1.0, 0)]),
    ("cvt.rni.s32.f64 %d, %a;", "f64", "s32", [(float("nan"), -(2**31)), (2.5, 2)]),
    # NaN
    ("add.f32 %d, %a, %b;", "b32 b32", "b32", [(0xFFC12345, 0, NAN32), (0x7F800000, 0xFF800000, NAN32)]),
    ("mul.f64 %d, %a, %b;", "b64 b64", "b64", [(0x7FF8000000000123, 0, 0xFFF8000000000000)]),
    ("sqrt.approx.ftz.f32 %d, %a;", "b32", "b32", [(0xBF800000, NAN32), (0x80000001, 0x80000000)]),
    ("neg.f32 %d, %a;", "b32", "b32", [(0x7FC12345, 0xFFC12345)]),
    ("mov.f32 %d, 0f80000000;", "b32", "b32", [(0, 0x80000000)]),
]  # fmt: skip


@ENGINES
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].split(";")[0].replace("%", ""))
def test_form(engine, case):
    body, inputs, output, rows = case
    columns = list(zip(*rows, strict=True))
    found = lanes("setp.ne.u32 %q, %i, %i; " + body, inputs.split(), output, *columns[:-1], run=engine)
    assert found.tolist() == list(columns[-1]), [hex(x) for x in found.tolist()]
