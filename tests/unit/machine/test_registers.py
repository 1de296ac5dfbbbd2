"""Registers that ptxas would give a thread."""

import dataclasses

import pytest

from ppt_gpu.machine.code import machine_code
from ppt_gpu.machine.registers import Registers, compiled_registers, register_room, same_warps
from ppt_gpu.ptx.linking.liveness import estimate_registers
from ppt_gpu.ptx.module import Kernel
from ppt_gpu.ptx.parsing.parser import parse_module
from ppt_gpu.spec.isa import load_isa


def kernel_of(body: str, directives: str = "") -> Kernel:
    names = ".reg .f32 %f<99>; .reg .u64 %rd<9>;"
    text = f".version 8.0\n.target sm_75\n.entry k(.param .u64 a) {directives} {{ {names} {body} ret; }}"
    return parse_module(text).kernels["k"]


def loads(count: int) -> str:
    """So many loads, each used just behind it: a sum."""
    body = "ld.param.u64 %rd1, [a]; mov.f32 %f0, 0f00000000;"
    for number in range(1, count + 1):
        body += f" ld.global.f32 %f{number}, [%rd1+{4 * number}]; add.f32 %f0, %f0, %f{number};"
    return body + " st.global.f32 [%rd1], %f0;"


def values(count: int) -> str:
    """So many values that live at once, in any order: all are sums with the last one."""
    body = " ".join(f"ld.global.f32 %f{n}, [{4 * n}];" for n in range(count))
    body += " bar.sync 0;"
    return body + " ".join(f"st.global.f32 [{4 * n}], %f{n};" for n in range(count))


@pytest.mark.parametrize(
    ("arch", "directives", "room"),
    [  # as ptxas 13.0 keeps sgemm, micro2x2, nbody and convolution within them
        ("sm_75", "", 64),
        ("sm_80", "", 32),
        ("sm_86", "", 40),
        ("sm_86", ".maxntid 512, 1, 1", 40),
        ("sm_86", ".maxntid 1024, 1, 1", 64),
        ("sm_80", ".maxntid 256, 1, 1", 32),
        ("sm_80", ".reqntid 256, 1, 1", 32),
        ("sm_80", ".maxntid 256, 1, 1 .minnctapersm 4", 64),
        ("sm_80", ".maxntid 256, 1, 1 .minnctapersm 2", 128),
        ("sm_80", ".maxntid 16, 16, 1 .minnctapersm 8", 32),
        ("sm_80", ".maxntid 32, 1, 1 .minnctapersm 1", 255),
        ("sm_80", ".maxnreg 24", 24),
    ],
)
def test_room(arch: str, directives: str, room: int) -> None:
    assert register_room(kernel_of("", directives), load_isa(arch)) == room


def test_loads_in_flight_take_what_there_is() -> None:
    """Forty loads want forty registers; where fewer are left they come in groups."""
    kernel = kernel_of(loads(40))
    assert estimate_registers(kernel) == 8
    assert compiled_registers(kernel, load_isa("sm_75")) == Registers(40, 64)
    assert compiled_registers(kernel, load_isa("sm_80")) == Registers(32, 32)
    assert compiled_registers(kernel, load_isa("sm_86")) == Registers(40, 40)
    code = machine_code(kernel, 64, load_isa("sm_75"))
    order = [code.kernel.instructions[index].base for index in code.templates[0].code]
    assert order[: order.index("add")].count("ld") > 30


def test_values_that_no_order_makes_fewer() -> None:
    kernel = kernel_of(values(50))
    assert compiled_registers(kernel, load_isa("sm_75")) == Registers(56, 64)
    assert compiled_registers(kernel, load_isa("sm_80")) == Registers(56, 56)


@pytest.mark.parametrize(
    ("needed", "most"),
    [(40, 40), (48, 48), (56, 56), (72, 72), (88, 96), (96, 96), (104, 128), (136, 168), (176, 256), (255, 256)],
)
def test_registers_beyond_those_of_full_occupancy_are_all_that_cost_no_warp(needed: int, most: int) -> None:
    """As ptxas 13.0 keeps the products of validation/published within 48, 56, 128 and 168."""
    assert same_warps(needed, load_isa("sm_80")) == most


def test_an_isa_that_says_nothing_of_its_compiler() -> None:
    kernel, isa = kernel_of(loads(40)), load_isa("sm_80")
    unknown = dataclasses.replace(isa, sm_registers=0, sm_threads=0)
    assert compiled_registers(kernel, unknown) == Registers(8, 8)
    assert compiled_registers(kernel, dataclasses.replace(isa, scheduled=False)) == Registers(8, 8)


def test_loads_stay_together_where_more_is_live_than_there_are_registers() -> None:
    """44 values live in any order, 40 of them while four loads are stored at once: as if there were room for 44."""
    body = "ld.param.u64 %rd1, [a]; " + " ".join(f"ld.global.f32 %f{n}, [%rd1+{4 * n}];" for n in range(44))
    body += " bar.sync 0; " + " ".join(f"st.global.f32 [%rd1+{4 * n}], %f{n};" for n in range(40, 44)) + " bar.sync 0; "
    body += " ".join(f"ld.global.f32 %f{n}, [%rd1+{4 * n}]; st.shared.f32 [{4 * n}], %f{n};" for n in range(90, 94))
    body += " bar.sync 0; " + " ".join(f"st.global.f32 [%rd1+{4 * n}], %f{n};" for n in range(40))
    made = machine_code(kernel_of(body), 32)
    (template,) = made.templates
    opcodes = [made.kernel.instructions[index].base for index in template.code]
    behind = [place for place, opcode in enumerate(opcodes) if opcode == "bar"][1]
    assert opcodes[behind + 1 : behind + 9] == ["ld"] * 4 + ["st"] * 4
    assert made.live == 44
