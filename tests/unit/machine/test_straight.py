"""What straight-line code becomes that takes values apart."""

import pytest

from ppt_gpu.machine.analysis.values import Values
from ppt_gpu.machine.code import machine_code
from ppt_gpu.ptx import parse_module
from ppt_gpu.ptx.instructions import copied
from ppt_gpu.ptx.module import Kernel, Reg
from ppt_gpu.spec.isa import load_isa


def kernel_of(body: str) -> Kernel:
    registers = ".reg .b32 %r<9>; .reg .b16 %h<9>; .reg .b64 %l<9>; .reg .f64 %d<9>;"
    text = f".version 8.0\n.target sm_80\n.entry k() {{ {registers}\n{body}\nret; }}"
    return parse_module(text).kernels["k"]


@pytest.mark.parametrize("parts", ["{_, %h1}", "{%h1, _}", "{%h1, %h2}"])
def test_a_part_of_a_value_is_no_copy_of_it(parts: str) -> None:
    kernel = kernel_of(f"ld.global.u32 %r1, [0]; mov.b32 {parts}, %r1; add.u16 %h3, %h1, %h1; st.global.u16 [4], %h3;")
    assert copied(kernel.instructions[1]) is None
    machine = machine_code(kernel, 64, load_isa("sm_80"))
    code = [machine.kernel.instructions[n] for n in machine.templates[0].code]
    (sum_,) = [i for i in code if i.base == "add"]
    names = [machine.kernel.registers[operand.id].name for operand in sum_.operands[1:] if isinstance(operand, Reg)]
    assert names == ["%h1", "%h1"]


def test_two_parts_of_a_value_are_different() -> None:
    kernel = kernel_of("mov.b32 {_, %h1}, %r1; mov.b32 {%h2, _}, %r1; mov.b32 %r2, %r1;")
    values = Values()
    for instruction in kernel.instructions[:3]:
        values.run(instruction)
    names = [register.name for register in kernel.registers]
    assert values.of[names.index("%h1")] != values.of[names.index("%h2")]
    assert values.of[names.index("%r2")] == values.of[names.index("%r1")]


def test_a_result_that_is_wider_than_its_operands_is_copied_whole() -> None:
    kernel = kernel_of("ld.global.u32 %r1, [0]; cvt.rn.f64.u32 %d1, %r1; st.global.f64 [8], %d1;"
                       "ld.global.u64 %l1, [8]; popc.b64 %r2, %l1; popc.b64 %r3, %l1;"
                       "mul.wide.u32 %l2, %r1, %r2; mul.wide.u32 %l3, %r1, %r2;"
                       "st.global.u64 [16], %l2; st.global.u64 [24], %l3; st.global.u32 [32], %r3;"
                       "cvt.rn.f64.u32 %d1, %r1; st.global.f64 [40], %d1;")  # fmt: skip
    machine = machine_code(kernel, 64, load_isa("sm_80"))
    code = [machine.kernel.instructions[n] for n in machine.templates[0].code]
    assert sorted(i.opcode for i in code if i.base in ("popc", "mul", "mov", "cvt")) == [
        "cvt.rn.f64.u32", "cvt.rn.f64.u32", "mul.wide.u32", "popc.b64",
    ]  # fmt: skip
