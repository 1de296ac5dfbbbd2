"""Numbers without a type take the types of the parameters; empty structs and structs of one byte."""

import struct

import pytest

from ppt_gpu.common.errors import PptError
from ppt_gpu.ptx import parse_module
from ppt_gpu.workload.argument_text import parse_argument
from ppt_gpu.workload.arguments import pack_parameters, workload_from_arguments
from ppt_gpu.workload.binding import bind_workload
from ppt_gpu.workload.literals import literal

PARAMETERS = ".u32 n, .param .f32 a, .param .s16 s, .param .b32 bits, .param .b64 wide, .param .f64 d, .param .u64 p"
TEXT = f".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param {PARAMETERS})\n{{\nret;\n}}\n"


def bound(*texts, text=TEXT):
    module = parse_module(text)
    workload = workload_from_arguments("k.ptx", "", (1,), (32,), texts)
    return module.kernels["k"], bind_workload(workload, module).launches[0]


def test_numbers_take_the_types_of_the_parameters():
    kernel, launch = bound("256", "2", "-3", "2.5", "-1", "1e-3", "0x10")
    assert [a.type for a in launch.arguments] == ["u32", "f32", "s16", "f32", "s64", "f64", "u64"]
    wanted = struct.pack("<Ifh2xf", 256, 2.0, -3, 2.5) + struct.pack("<qdQ", -1, 1e-3, 16)
    assert pack_parameters(kernel, launch, {}.__getitem__) == wanted


def test_a_negative_number_for_an_int_that_ptx_calls_unsigned():
    kernel, launch = bound("-1", "0", "0", "0", "0", "0", "0")
    assert pack_parameters(kernel, launch, {}.__getitem__)[:4] == b"\xff" * 4


@pytest.mark.parametrize(
    ("number", "given", "message"),
    [
        (0, "2.5", "argument 1 (u32=2.5) of kernel 'k': 2.5 is not an integer, and u32 is an integer type"),
        (0, "0x100000000", "argument 1 (u32=4294967296) of kernel 'k': 4294967296 does not fit u32"),
        (2, "40000", "argument 3 (s16=40000) of kernel 'k': 40000 does not fit s16"),
    ],
)
def test_numbers_that_do_not_fit(number, given, message):
    texts = ["0"] * 7
    texts[number] = given
    with pytest.raises(PptError) as caught:
        bound(*texts)
    assert message in str(caught.value)


def test_surplus_numbers_and_numbers_for_structs():
    with pytest.raises(PptError, match="surplus: 9"):
        bound(*["0"] * 7, "9")
    with pytest.raises(PptError, match=r"argument 1 \(9\) of kernel 'k': the parameter v is struct of 8 bytes"):
        bound("9", text=TEXT.replace(PARAMETERS, ".align 4 .b8 v[8]"))


@pytest.mark.parametrize("given", ["struct()", "struct(u8=0)", "0", "u8=0"])
def test_an_empty_class_by_value(given):
    kernel, launch = bound("7", given, text=TEXT.replace(PARAMETERS, ".u32 n, .param .align 1 .b8 empty[1]"))
    assert pack_parameters(kernel, launch, {}.__getitem__) == b"\x07\0\0\0\0"


@pytest.mark.parametrize("given", ["struct(u8=1, u8=2)", "struct(u16=1)"])
def test_a_struct_that_is_no_byte(given):
    with pytest.raises(PptError, match=r"argument 2 \(struct of 2 bytes\) of kernel 'k': the parameter empty is b8"):
        bound("7", given, text=TEXT.replace(PARAMETERS, ".u32 n, .param .align 1 .b8 empty[1]"))


@pytest.mark.parametrize("text", ["x", "", "1__0", "0x", "1.5f", "1 2", ".", "1e", "--1", "nan", "inf"])
def test_no_numbers(text):
    assert literal(text) is None


def test_the_round_of_a_loop_needs_its_type():
    with pytest.raises(PptError, match="round"):
        workload_from_arguments("k.ptx", "", (1,), (32,), ["round"])
    assert parse_argument("i32=round", 0)[0].step == 1
