"""Which loops are unrolled: each as ptxas 13.0 for sm_80 decided, by the multiply-adds that its code has."""

import pytest

from ppt_gpu.common.errors import PptError
from ppt_gpu.frontends.disassemble import disassemble, disassembler
from ppt_gpu.machine.analysis.loops import UNROLLED, factor
from ppt_gpu.ptx import parse_module
from ppt_gpu.ptx.module import Module
from ppt_gpu.sass.counts import counted
from ppt_gpu.spec.isa import load_isa
from ppt_gpu.validate.isa.expansions import expanded

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n, .param .u32 s)
{
.shared .align 4 .b8 tile[4096]; .reg .pred %p<4>; .reg .f32 %f<20>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
ld.param.u64 %rd1,[p]; ld.param.u32 %r1,[n]; ld.param.u32 %r2,[s];
cvta.to.global.u64 %rd2,%rd1; mov.u32 %r3,%tid.x; mul.wide.s32 %rd3,%r3,4; add.s64 %rd4,%rd2,%rd3;
mov.u32 %r4,0; mov.u32 %r6,tile; ld.global.f32 %f1,[%rd2]; ld.global.f32 %f2,[%rd4];
"""
BODY = "L: fma.rn.f32 %f2,%f2,%f1,%f2;\n"
ONE = "add.s32 %r4,%r4,1; setp.lt.s32 %p1,%r4,%r1; @%p1 bra L;\n"
TAIL = "st.global.f32 [%rd4],%f2;\nret;\n}\n"
MORE = BODY[2:]
LOAD = "ld.global.f32 %f1,[%rd4]; add.s64 %rd4,%rd4,512;\n"
SELECT = "setp.gt.f32 %p2,%f2,%f1; selp.f32 %f2,%f1,%f2,%p2; fma.rn.f32 %f2,%f2,%f1,%f2;\n"


def products(count: int, far: int, near: int = 0, stored: int = 0) -> str:
    """So many multiply-adds, each with one of what `far` loads from global and `near` from shared memory load."""
    loaded = [f"ld.global.f32 %f{8 + each},[%rd4+{128 * each}];" for each in range(far)]
    loaded += [f"ld.shared.f32 %f{8 + far + each},[%r6+{128 * each}];" for each in range(near)]
    code = [f"fma.rn.f32 %f2,%f2,%f{8 + n % (far + near)},%f2;" for n in range(count)]
    code += [f"st.shared.f32 [%r6+{2048 + 128 * each}],%f{8 + each};" for each in range(stored)]
    moved = ["add.s64 %rd4,%rd4,512;"] * (far > 0) + ["add.s32 %r6,%r6,4;"] * (near > 0)
    return "L: " + "\n".join([*loaded, *code, *moved]) + "\n"


#: name -> (the loop, multiply-adds that ptxas makes of it: 7 where four, two and one iterations are side by side)
LOOPS = {
    "constant step": (BODY + ONE, 7),
    "steps of 16": (BODY + ONE.replace(",1;", ",16;"), 7),
    "down to zero": (
        "mov.u32 %r4,%r1;" + BODY + "add.s32 %r4,%r4,-1; setp.ne.s32 %p1,%r4,0; @%p1 bra L;\n",
        7,
    ),
    "start of the thread": ("mov.u32 %r4,%r3;" + BODY + ONE, 7),
    "bound from memory": ("ld.global.u32 %r1,[%rd2];" + BODY + ONE, 7),
    "step in a register": (BODY + "add.s32 %r4,%r4,%r2; setp.lt.s32 %p1,%r4,%r1; @%p1 bra L;\n", 1),
    "halving": ("mov.u32 %r4,%r1;" + BODY + "shr.u32 %r4,%r4,1; setp.ne.s32 %p1,%r4,0; @%p1 bra L;\n", 1),
    "second condition": (
        BODY + "setp.gt.f32 %p2,%f2,0f40000000; add.s32 %r4,%r4,1; setp.lt.s32 %p1,%r4,%r1; "
        "and.pred %p1,%p1,%p2; @%p1 bra L;\n",
        1,
    ),
    "second exit": (BODY + "setp.gt.f32 %p2,%f2,0f40000000; @%p2 bra M;" + ONE + "M:\n", 1),
    "store": (BODY + "st.global.f32 [%rd4+64],%f2;" + ONE, 7),
    "barrier": (BODY + "bar.sync 0;" + ONE, 7),
    "barrier, bound computed": ("add.s32 %r1,%r1,7;" + BODY + "bar.sync 0;" + ONE, 1),
    "computed bound": ("add.s32 %r1,%r1,7;" + BODY + ONE, 7),
    "6 selects": ("L: " + SELECT * 6 + ONE, 42),
    "8 selects": ("L: " + SELECT * 8 + ONE, 8),
    "2 rsqrt": (BODY + "rsqrt.approx.f32 %f2,%f2;\n" * 2 + ONE, 7),
    "4 rsqrt": (BODY + "rsqrt.approx.f32 %f2,%f2;\n" * 4 + ONE, 1),
    "3 rsqrt": (BODY + "rsqrt.approx.f32 %f2,%f2;\n" * 3 + ONE, 1),
    "8 rsqrt without denormals": (BODY + "rsqrt.approx.ftz.f32 %f2,%f2;\n" * 8 + ONE, 7),
    "18 products": (BODY + MORE * 17 + ONE, 126),
    "19 products": (BODY + MORE * 18 + ONE, 19),
    "44 products, a load": (BODY + LOAD + MORE * 43 + ONE, 308),
    "45 products, a load": (BODY + LOAD + MORE * 44 + ONE, 45),
    "30 products, 8 loads": (products(30, 8) + ONE, 210),
    "31 products, 8 loads": (products(31, 8) + ONE, 31),
    "14 selects, a load": (BODY + LOAD + SELECT * 14 + ONE, 105),
    "16 selects, a load": (BODY + LOAD + SELECT * 16 + ONE, 17),
    "7 rsqrt, a load": (BODY + LOAD + "rsqrt.approx.f32 %f2,%f2;\n" * 7 + ONE, 7),
    "9 rsqrt, a load": (BODY + LOAD + "rsqrt.approx.f32 %f2,%f2;\n" * 9 + ONE, 1),
    "30 products, 4 loads from shared memory": (products(30, 0, 4) + ONE, 210),
    "31 products, 4 loads from shared memory": (products(31, 0, 4) + ONE, 31),
    "30 products, 4 loads and 4 from shared memory": (products(30, 4, 4) + ONE, 210),
    "31 products, 4 loads and 4 from shared memory": (products(31, 4, 4) + ONE, 31),
    "34 products, 4 loads and 8 from shared memory": (products(34, 4, 8) + ONE, 238),
    "35 products, 4 loads and 8 from shared memory": (products(35, 4, 8) + ONE, 35),
    "26 products, 8 loads from and stores to shared memory": (products(26, 0, 8, 8) + ONE, 182),
    "27 products, 8 loads from and stores to shared memory": (products(27, 0, 8, 8) + ONE, 27),
    "shuffle": (BODY + "shfl.sync.bfly.b32 %f2,%f2,1,31,-1;" + ONE, 1),
    "shuffle, 4 iterations": (BODY + "shfl.sync.bfly.b32 %f2,%f2,1,31,-1;" + ONE.replace("%r4,%r1", "%r4,4"), 1),
    "vote": (BODY + "vote.sync.ballot.b32 %r5,%p1,-1;" + ONE, 1),
    "fence": (BODY + "membar.cta;" + ONE, 1),
    "warp's barrier": (BODY + "bar.warp.sync -1;" + ONE, 1),
}


def module(loop: str) -> Module:
    return parse_module(HEAD + loop + TAIL, "loop.ptx")


@pytest.mark.parametrize("name", LOOPS)
def test_as_ptxas_decides(name: str) -> None:
    loop, products = LOOPS[name]
    assert expanded(module(loop).kernels["k"], load_isa("sm_80"), unroll=True)["fp32.fma"] == products


def test_ptxas_still_decides_so() -> None:
    try:
        tools = disassembler("80")
    except PptError as error:
        pytest.skip(error.message)
    for name, (loop, products) in LOOPS.items():
        functions = disassemble(tools, module(loop), "80").functions
        opcodes = counted(functions["k"])
        assert sum(count for opcode, count in opcodes.items() if opcode.startswith("FFMA")) == products, name


def test_a_loop_within_another_grows_with_its_accesses_to_shared_memory():
    """As ptxas 13.0 unrolls generated loops of multiply-adds, of 8 iterations within another loop."""
    assert factor(40 + 3, 8, 0) == 8 and factor(56 + 3, 8, 0) == UNROLLED
    assert factor(148 + 8 + 5, 8, 8) == 8 and factor(172 + 8 + 5, 8, 8) == 1
    assert factor(148 + 8 + 5, 8, None) == 1  # alone
