"""Kernels called from Python with NumPy arrays: PTX text and files, results, arguments of every kind, bad calls."""

from pathlib import Path

import numpy as np
import pytest

import ppt_gpu
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.paths import data_dir

SAXPY = data_dir("tasklists") / "saxpy.ptx"
HEAD = ".version 7.0\n.target sm_70\n.address_size 64\n"
#: out[0..3] = the four words of a struct passed by value
STRUCT = (
    HEAD
    + """
.visible .entry words(.param .u64 out, .param .align 8 .b8 s[16])
{
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [s];
    ld.param.u64 %rd3, [s+8];
    st.global.u64 [%rd1], %rd2;
    st.global.u64 [%rd1+8], %rd3;
    ret;
}
"""
)
#: out[0] = a + b, as 64-bit integers; out[1] = bits of f and d, rounded to f32
SCALARS = (
    HEAD
    + """
.visible .entry sums(.param .u64 out, .param .u32 a, .param .u64 b, .param .f32 f, .param .f64 d)
{
    .reg .b64 %rd<6>;
    .reg .b32 %r<2>;
    .reg .f64 %d<4>;
    .reg .f32 %f<2>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.f32 %f1, [f];
    ld.param.f64 %d1, [d];
    cvt.s64.s32 %rd3, %r1;
    add.s64 %rd4, %rd3, %rd2;
    st.global.u64 [%rd1], %rd4;
    cvt.f64.f32 %d2, %f1;
    add.f64 %d3, %d2, %d1;
    st.global.f64 [%rd1+8], %d3;
    ret;
}
"""
)


@pytest.mark.parametrize("source", [SAXPY, str(SAXPY), SAXPY.read_text()], ids=["path", "name", "text"])
def test_launch_writes_results_and_predict_does_not(source: object) -> None:
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    call = {"grid": (4,), "block": 128, "args": [1000, 2.0, x, y]}
    result = ppt_gpu.predict(source, "a100", **call)
    assert result.time > 0 and (y == 1).all()
    ppt_gpu.launch(source, **call)
    assert (y == 1 + 2 * np.arange(1000)).all()


def test_the_prediction_is_that_of_the_workload_file(tmp_path: Path) -> None:
    x, y = np.full(4096, 0.5, np.float32), np.zeros(4096, np.float32)
    called = ppt_gpu.predict(SAXPY, "v100", grid=32, block=128, args=[4096, 2.0, x, y], registers=12)
    text = f'ptx = "{SAXPY}"\ngrid = 32\nblock = 128\nregisters = 12\n'
    text += 'arguments = ["i32=4096", "f32=2.0", "f32[4096]=const:0.5", "f32[4096]"]\n'
    (tmp_path / "saxpy.toml").write_text(text)
    assert called.main.value("kernel.cycles") == ppt_gpu.predict(tmp_path / "saxpy.toml", "v100").main.value(
        "kernel.cycles"
    )


def test_structs_are_bytes_or_structured_scalars() -> None:
    kind = np.dtype([("a", "f4"), ("b", "i4"), ("c", "f8")], align=True)
    value = np.array((1.5, -2, 3.25), kind)
    for given in (value[()], value.tobytes()):
        out = np.zeros(1, kind)
        ppt_gpu.launch(STRUCT, grid=1, block=1, args=[out, given])
        assert out[0] == value


def test_a_struct_with_a_pointer_is_a_tuple() -> None:
    out, data = np.zeros(2, np.uint64), np.zeros(4, np.float32)
    ppt_gpu.launch(STRUCT, grid=1, block=1, args=[out, (np.int16(-2), np.float32(1.5), data)])
    assert out[0] == 0x3FC00000_0000FFFE and out[1] % 512 == 0 and out[1] > 0
    with pytest.raises(PptError, match="a float has no size"):
        ppt_gpu.launch(STRUCT, grid=1, block=1, args=[out, (1.5, data)])


def test_python_numbers_take_the_types_of_their_parameters() -> None:
    out = np.zeros(2, np.int64)
    for a, b in ((-3, 10), (2**31 - 1, -(2**62)), (True, 0)):
        ppt_gpu.launch(SCALARS, grid=1, block=1, args=[out, a, b, 1, 0.1])
        assert out[0] == a + b
        assert out[1:].view(np.float64)[0] == 1 + 0.1
    ppt_gpu.launch(SCALARS, grid=1, block=1, args=[out, np.int32(4), np.uint64(5), np.float32(0.1), np.float64(0.5)])
    assert out[0] == 9 and out[1:].view(np.float64)[0] == float(np.float32(0.1)) + 0.5


def test_an_array_given_twice_is_one_buffer_and_order_is_kept() -> None:
    x = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4))
    ppt_gpu.launch(SAXPY, grid=1, block=32, args=[12, 2.0, x, x])
    assert x.flags.f_contiguous and (x == 3 * np.arange(12).reshape(3, 4)).all()


def test_read_only_arrays_are_read_and_not_written() -> None:
    x, y = np.ones(4, np.float32), np.ones(4, np.float32)
    x.flags.writeable = False
    ppt_gpu.launch(SAXPY, grid=1, block=32, args=[4, 2.0, x, y])
    assert (x == 1).all() and (y == 3).all()
    with pytest.raises(PptError, match="writes 'arg3', an array that is read-only"):
        ppt_gpu.launch(SAXPY, grid=1, block=32, args=[4, 2.0, y, x])
    assert (x == 1).all()


@pytest.mark.parametrize("value", [np.float16(1.5), "f16=1.5", np.array(1.5, "f2").tobytes()])
def test_a_half_is_a_struct_of_two_bytes(value: object) -> None:
    """What nvcc makes of `__half a` as a parameter."""
    text = HEAD + (
        ".visible .entry half(.param .u64 out, .param .align 2 .b8 a[2])\n{ .reg .b64 %rd<2>; .reg .b16 %h<2>;\n"
        "ld.param.u64 %rd1, [out]; ld.param.u16 %h1, [a]; st.global.u16 [%rd1], %h1; ret; }\n"
    )
    out = np.zeros(1, np.float16)
    ppt_gpu.launch(text, grid=1, block=1, args=[out, value])
    assert out[0] == 1.5
    for wrong, hint in ((np.float32(1.5), "write f16=1.5"), (1.5, "write f16=1.5"), (np.zeros(1), "write f16=1.5")):
        with pytest.raises(PptError, match=f"(?s)struct of 2 bytes.*{hint}"):
            ppt_gpu.launch(text, grid=1, block=1, args=[out, wrong])


def test_text_forms_of_the_command_line_are_arguments_too() -> None:
    y = np.ones(1000, np.float32)
    ppt_gpu.launch(SAXPY, grid=8, block=128, args=["i32=1000", 1.0, "f32[1000]=iota", y])
    assert (y == 1 + np.arange(1000)).all()


X, Y = np.ones(64, np.float32), np.ones(64, np.float32)
BAD = {
    "no grid": ({"block": 32}, "needs grid"),
    "neither": ({"args": [1]}, "needs grid and block"),
    "bad grid": ({"grid": "a", "block": 32}, "expected one to three integers"),
    "fraction": ({"grid": 4.7, "block": 32}, "grid=4.7: expected one to three integers"),
    "text": ({"grid": 1, "block": "32"}, "block='32': expected one to three integers"),
    "zero grid": ({"grid": 0, "block": 32}, "grid.x is 0"),
    "big block": ({"grid": 1, "block": (64, 64)}, "too large"),
    "too few": ({"grid": 1, "block": 32, "args": [64, 1.0, X]}, "3 arguments given; missing"),
    "too many": ({"grid": 1, "block": 32, "args": [64, 1.0, X, Y, 5]}, "surplus: u64=5"),
    "wrong width": ({"grid": 1, "block": 32, "args": [np.int64(64), 1.0, X, Y]}, "argument 1"),
    "array for scalar": ({"grid": 1, "block": 32, "args": [X, 1.0, X, Y]}, "not a pointer"),
    "float for integer": ({"grid": 1, "block": 32, "args": [6.5, 1.0, X, Y]}, "argument 1"),
    "too large": ({"grid": 1, "block": 32, "args": [2**40, 1.0, X, Y]}, "does not fit u32"),
    "no value": ({"grid": 1, "block": 32, "args": [64, 1.0, X, None]}, "a NoneType is no kernel argument"),
    "a list": ({"grid": 1, "block": 32, "args": [64, 1.0, X, [1, 2]]}, "a list is no kernel argument"),
    "strided": ({"grid": 1, "block": 32, "args": [32, 1.0, X[::2], Y]}, "not contiguous"),
    "overlap": ({"grid": 1, "block": 32, "args": [32, 1.0, X[:40], X[20:]]}, "overlaps"),
    "objects": ({"grid": 1, "block": 32, "args": [32, 1.0, np.array([{}]), Y]}, "Python objects"),
    "byte order": ({"grid": 1, "block": 32, "args": [32, 1.0, X.astype(">f4"), Y]}, "in the other order than a GPU's"),
    "by name": ({"grid": 1, "block": 32, "args": {"n": 1}}, "a list, in order"),
    "warps": ({"grid": 1, "block": 32, "num_warps": 4}, "takes no num_warps"),
    "registers": ({"grid": 1, "block": 32, "registers": "some"}, "registers='some'"),
    "kernel": ({"grid": 1, "block": 32, "kernel": "saxpi"}, "did you mean 'saxpy'?"),
    "options": ({"grid": 1, "block": 32, "compiler_options": ["-O1"]}, "takes no compiler_options"),
}


@pytest.mark.parametrize("call, expected", BAD.values(), ids=BAD)
def test_bad_calls(call: dict[str, object], expected: str) -> None:
    with pytest.raises(PptError) as caught:
        ppt_gpu.predict(SAXPY, "a100", **call)
    assert expected in str(caught.value)


def test_what_is_no_kernel() -> None:
    with pytest.raises(PptError, match="a function is not a kernel to launch"):
        ppt_gpu.predict(lambda: None, "a100", grid=1, block=1)
    with pytest.raises(PptError, match="'sgemm' is not a kernel to launch"):
        ppt_gpu.launch("sgemm", grid=1, block=1)
    with pytest.raises(TypeError, match="gird"):
        ppt_gpu.predict(SAXPY, "a100", gird=1)
    with pytest.raises(PptError, match="a Workload says these itself"):
        ppt_gpu.predict(ppt_gpu.open_workload("saxpy"), "a100", grid=1)
