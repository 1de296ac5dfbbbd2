"""The order of the machine code: a kernel in that order computes the same, and its trace is the reordered one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st
from random_ptx import kernels
from some_examples import examples
from test_exec_agree import BLOCKS, execute, inputs

import ppt_gpu
from ppt_gpu.exec.machine_order import machine_order, reordered
from ppt_gpu.exec.memory import DeviceMemory
from ppt_gpu.exec.run import run
from ppt_gpu.exec.trace import Trace
from ppt_gpu.exec.workload import Argument, Buffer, Launch
from ppt_gpu.paths import data_dir
from ppt_gpu.ptx import parse_module
from ppt_gpu.ptx.cfg import control_flow
from ppt_gpu.ptx.liveness import most_live
from ppt_gpu.ptx.module import Kernel, Module


def rewritten(module: Module, kernel: Kernel, order) -> Module:
    """The module with the kernel's instructions really in that order."""
    code = tuple(replace(kernel.instructions[old], index=place) for place, old in enumerate(order))
    changed = replace(kernel, instructions=code)
    return replace(module, kernels={kernel.name: changed}, lines=(*module.lines, "// in another order"))


def streams(trace: Trace) -> list[list[int]]:
    """What each warp executed."""
    return [trace.path_pc[trace.path_start[p] : trace.path_start[p + 1]].tolist() for p in trace.warp_path]


def accesses(trace: Trace):
    patterns = trace.pattern_offset[trace.access_pattern], trace.pattern_mask[trace.access_pattern]
    return trace.access_start, trace.access_base, trace.access_space, *patterns


@examples(16, 300, kernels(), st.integers(0, 1000), st.sampled_from((20, 255)))
def test_random_kernels(text, seed, registers):
    rows = inputs(seed)
    module = parse_module(text, "random.ptx")
    kernel = module.kernels["k"]
    order = machine_order(kernel, registers)
    for first, end in zip(control_flow(kernel).block_start, control_flow(kernel).block_end, strict=True):
        assert sorted(order[first:end]) == list(range(first, end))
    results = []
    for version in (module, rewritten(module, kernel, order)):
        memory = DeviceMemory.build(version, [Buffer("in", "b8", rows.size), Buffer("out", "b8", rows.size)])
        memory.bytes_of("in")[:] = rows.ravel()
        arguments = (Argument("u64", buffer="in"), Argument("u64", buffer="out"))
        launch = Launch("k", (BLOCKS, 1, 1), (len(rows) // BLOCKS, 1, 1), arguments)
        trace = run(version.kernels["k"], version, launch, memory, list(range(BLOCKS)))
        results.append((memory.bytes_of("out").copy(), memory.bytes_of("in").copy(), trace))
    (out, left, trace), (new_out, new_left, new_trace) = results
    assert np.array_equal(out, new_out) and np.array_equal(left, new_left), text
    moved = reordered(trace, kernel, order)
    assert streams(moved) == [[int(order[place]) for place in stream] for stream in streams(new_trace)]
    for one, other in zip(accesses(moved), accesses(new_trace), strict=True):
        assert np.array_equal(one, other), text
    assert np.array_equal(moved.pc_executed, trace.pc_executed)


def kernel_of(
    body: str, registers: str = ".reg .pred %p; .reg .b32 %r<40>; .reg .f32 %f<40>; .reg .b64 %rd<8>;"
) -> Kernel:
    head = ".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 a)\n{\n" + registers
    return parse_module(f"{head}\nld.param.u64 %rd1, [a];\n{body}\nret;\n}}\n", "k.ptx").kernels["k"]


def opcodes(kernel: Kernel, order) -> list[str]:
    return [kernel.instructions[number].base for number in order]


PAIRS = "".join(
    f"ld.global.f32 %f{2 * n + 1}, [%rd1+{8 * n}];\nld.global.f32 %f{2 * n + 2}, [%rd1+{8 * n + 4}];\n"
    f"fma.rn.f32 %f0, %f{2 * n + 1}, %f{2 * n + 2}, %f0;\n"
    for n in range(6)
)


def test_loads_go_ahead_of_the_arithmetic_between_them():
    kernel = kernel_of("mov.f32 %f0, 0f00000000;\n" + PAIRS + "st.global.f32 [%rd1], %f0;")
    found = [name for name in opcodes(kernel, machine_order(kernel, 255)) if name in ("ld", "fma", "st")]
    assert found == ["ld", *["ld"] * 12, *["fma"] * 6, "st"]


def test_not_beyond_the_registers():
    kernel = kernel_of("mov.f32 %f0, 0f00000000;\n" + PAIRS + "st.global.f32 [%rd1], %f0;")
    live = []
    for registers in (8, 10, 12, 255):
        order = machine_order(kernel, registers)
        code = tuple(replace(kernel.instructions[old], index=place) for place, old in enumerate(order))
        live.append(most_live(replace(kernel, instructions=code)))
    assert live == sorted(live) and live[0] <= 8 and live[1] <= 10 and live[2] <= 12 < live[-1]


@pytest.mark.parametrize(
    ("between", "moves"),
    [
        ("st.global.f32 [%rd1+64], %f1;", False),
        ("st.shared.f32 [%r1], %f1;", True),
        ("bar.sync 0;", False),
        ("membar.gl;", False),
        ("atom.global.add.u32 %r3, [%rd1+64], 1;", False),
        ("fma.rn.f32 %f1, %f1, %f1, %f1;", True),
    ],
)
def test_what_a_load_may_pass(between, moves):
    before, load = "mov.u32 %r1, 0;\nmov.f32 %f1, 0f00000000;", "ld.global.f32 %f2, [%rd1];"
    kernel = kernel_of(f"{before}\n{between}\n{load}\nadd.f32 %f3, %f2, %f2;\nst.global.f32 [%rd1+4], %f3;")
    order = machine_order(kernel, 255).tolist()
    wall = next(i.index for i in kernel.instructions if f"{i.opcode} " in between.replace(";", " "))
    loads = [i.index for i in kernel.instructions if i.opcode == "ld.global.f32"]
    assert (order.index(loads[0]) < order.index(wall)) == moves


def test_loads_of_constant_memory_pass_stores():
    kernel = kernel_of(
        "st.global.f32 [%rd1], %f1;\nld.global.nc.f32 %f2, [%rd1+64];\n"
        "fma.rn.f32 %f3, %f2, %f2, %f2;\nst.global.f32 [%rd1+4], %f3;"
    )
    order = opcodes(kernel, machine_order(kernel, 255))
    assert order.index("st") > 1 and order[1] == "ld"


def test_a_block_that_is_left_in_its_middle_keeps_its_order():
    text = """
.version 8.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
  .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .f32 %f<8>;
  ld.param.u64 %rd1, [in];
  mov.u32 %r1, %tid.x;
  ld.global.f32 %f1, [%rd1];
  add.f32 %f2, %f1, %f1;
  ld.global.f32 %f3, [%rd1+4];
  setp.gt.u32 %p, %r1, 1000;
  @!%p exit;
  ld.global.f32 %f4, [%rd1+8];
  add.f32 %f5, %f4, %f4;
  ld.global.f32 %f6, [%rd1+12];
  st.global.f32 [%rd1], %f6;
  ret;
}
"""
    module = parse_module(text, "k.ptx")
    rows = inputs(1)
    _, _, trace = execute(run, text, rows)
    kernel = module.kernels["k"]
    order = machine_order(kernel, 255)
    moved = reordered(trace, kernel, order)
    assert moved.path_pc.tolist() == order[:7].tolist()  # `exit` ends the block


def test_an_isa_asks_for_it(tmp_path):
    path = tmp_path / "ordered.toml"
    path.write_text('base = "sm_80"\nscheduled = true\n')
    kernel = data_dir("validation") / "measured" / "kernels" / "sgemm.ptx"
    matrix = np.zeros(128 * 128, np.float32)
    arguments = [np.int32(128), np.float32(1), matrix, matrix, np.float32(0), matrix.copy()]
    options = {"kernel": "column_from_x", "grid": (8, 8), "block": (16, 16), "args": arguments}
    plain, ordered = (
        ppt_gpu.predict(kernel, "a100", overrides=overrides, **options).launches[0].value("kernel.cycles")
        for overrides in ([], [f"isa={path}"])
    )
    assert ordered < 0.7 * plain  # eight loads in flight instead of two
