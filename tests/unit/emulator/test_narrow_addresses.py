"""PTX of the first years: addresses of 32 bits, no .address_size, coordinates in fours, both engines."""

import numpy as np
import pytest
from jit_kernels import Case
from reference.interpreter.interpreter import interpret

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.memory.initial_memory import device_memory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.ptx import parse_module
from ppt_gpu.workload.arguments import check_arguments
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.reader import load_workload
from ppt_gpu.workload.workload import Argument, Buffer

ENGINES = pytest.mark.parametrize("engine", [interpret, run], ids=["interpreter", "compiled"])
HEAD = ".version 1.4\n.target sm_13, map_f64_to_f32\n"
POINTERS = "(.param .u32 x, .param .u32 .ptr .global .align 4 y)"


def case(text, fill, head=HEAD):
    module = parse_module(head + text, "old.ptx")
    buffers = [Buffer("x", "f32", 32), Buffer("y", "f32", 32)]
    arguments = [Argument("u64", buffer="x"), Argument("u64", buffer="y")]
    return Case(module, "k", (1,), (32,), arguments, buffers, fill=fill)


ADD = """
.const .align 4 .b8 c[16] = {0,0,128,63, 0,0,0,64, 0,0,64,64, 0,0,128,64};
.entry k POINTERS
{
.reg .u32 %r<9>; .reg .u16 %h; .reg .f32 %f<4>; .shared .f32 s[32];
$begin:
mov.u16 %h, %tid.x; cvt.u32.u16 %r1, %h; mul24.lo.u32 %r2, %r1, 4;
ld.param.u32 %r3, [x]; add.u32 %r3, %r3, %r2; ld.global.f32 %f1, [%r3+0];
and.b32 %r4, %r2, 12; mov.u32 %r5, c; add.u32 %r5, %r5, %r4; ld.const.f32 %f2, [%r5]; mad.f32 %f1, %f1, %f2, %f2;
mov.u32 %r6, s; add.u32 %r6, %r6, %r2; st.shared.f32 [%r6+0], %f1; bar.sync 0; ld.shared.f32 %f3, [s+4];
add.f32 %f1, %f1, %f3; ld.param.u32 %r7, [y]; add.u32 %r7, %r7, %r2; red.global.add.f32 [%r7], %f1;
exit;
$end:
} // k
""".replace("POINTERS", POINTERS)


@ENGINES
def test_pointers_of_32_bits(engine):
    x = np.arange(32, dtype="f4") % 7
    memory, _ = case(ADD, {"x": x, "y": np.ones(32, "f4")}).run(engine=engine)
    factors = np.arange(32) % 4 + 1
    own = x * factors + factors
    assert memory.view("y", "f4").tolist() == (own + own[1] + 1).tolist()


TEX = """
.tex .u32 image;
.entry k POINTERS
{
.reg .u32 %r<9>; .reg .f32 %f<9>;
cvt.u32.u16 %r1, %tid.x; mul24.lo.u32 %r2, %r1, 4; xor.b32 %r3, %r1, 3; mov.u32 %r4, 0;
tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [image, {%r3, %r4, %r4, %r4}];
ld.param.u32 %r5, [y]; add.u32 %r5, %r5, %r2; st.global.f32 [%r5], %f1; exit;
}
""".replace("POINTERS", POINTERS)


@ENGINES
def test_textures_with_four_coordinates(engine, tmp_path):
    (tmp_path / "k.ptx").write_text(HEAD + TEX)
    (tmp_path / "k.toml").write_text(
        'ptx = "k.ptx"\ngrid = 1\nblock = 32\narguments = ["x", "y"]\n[buffers]\nx = "f32[32]=iota"\ny = "f32[32]"\n'
        '[textures]\nimage = "texture(x, width=32)"\n'
    )
    module = parse_module(HEAD + TEX, "k.ptx")
    workload = load_workload(tmp_path / "k.toml")
    memory = device_memory(module, workload, {}, Budget())
    engine(module.kernels["k"], module, workload.launches[0], memory, [0])
    assert memory.view("y", "f4").tolist() == [k ^ 3 for k in range(32)]


def test_a_buffer_for_32_bits_of_a_wide_module_is_an_error():
    wide = case(ADD, {}, head=".version 3.0\n.target sm_20\n.address_size 64\n")
    with pytest.raises(PptError, match="the parameter x is u32, not a pointer"):
        check_arguments(wide.launch, wide.kernel)
