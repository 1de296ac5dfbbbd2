"""Machine code computes what its PTX does, with the accesses that the rewritten trace says."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from random_ptx import kernels
from some_examples import examples
from test_exec_agree import BLOCKS, inputs

from ppt_gpu.common.paths import data_dir
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.machine.code import MachineCode, machine_code
from ppt_gpu.machine.trace import as_machine_code
from ppt_gpu.ptx import parse_module
from ppt_gpu.ptx.instructions import is_branch, is_exit
from ppt_gpu.ptx.module import Instruction, Module, Sym
from ppt_gpu.spec import load_gpu
from ppt_gpu.workload.workload import Argument, Buffer, Launch


def along(path: np.ndarray, machine: MachineCode, module: Module) -> Module:
    """The module with a kernel that runs these machine instructions one after another, without a branch."""
    plain = module.kernels[machine.kernel.name]
    named = [i for i in plain.instructions if any(isinstance(operand, Sym) for operand in i.operands)]  # keep variables
    code = [machine.kernel.instructions[pc] for pc in path]
    code = [*named, *(i for i in code if not is_branch(i) and not is_exit(i))]
    code.append(Instruction(0, "ret", (), None, (), (), 1, 1))
    code = [replace(instruction, index=n) for n, instruction in enumerate(code)]
    made = replace(plain, instructions=tuple(code), registers=machine.kernel.registers, labels={})
    # compiled code is kept by the text: other code along the same numbers, as for other registers, is another text
    return replace(module, kernels={made.name: made}, lines=(*module.lines, f"// along a path: {code}"))


def accesses(trace: Trace) -> list[np.ndarray]:
    """Of each access: its space and the addresses of all lanes."""
    lanes = trace.pattern_offset[trace.access_pattern] + trace.access_base[:, None].astype(np.int64)
    mask = trace.pattern_mask[trace.access_pattern]
    on = mask[:, None] >> np.arange(32, dtype=np.uint32) & 1 != 0
    return [trace.access_start, trace.access_space, mask, np.where(on, lanes, 0)]


@examples(6, 300, kernels(), st.integers(0, 1000), st.sampled_from((20, 255)))
def test_random_kernels(text, seed, registers):
    """Threads alone, so that no warp takes two ways."""
    assume(not re.search("clock|timer", text))  # they see how many instructions there are
    rows = inputs(seed)[:BLOCKS]
    module = parse_module(text, "random.ptx")
    machine = machine_code(module.kernels["k"], registers, load_gpu("a100").isa)
    arguments = (Argument("u64", buffer="in"), Argument("u64", buffer="out"))
    launch = Launch("k", (BLOCKS, 1, 1), (1, 1, 1), arguments)
    memories = [DeviceMemory.build(module, [Buffer(n, "b8", rows.size) for n in ("in", "out")]) for _ in range(2)]
    for memory in memories:
        memory.bytes_of("in")[:] = rows.ravel()
    for block in range(BLOCKS):
        trace = run(module.kernels["k"], module, launch, memories[0], [block])
        expected = as_machine_code(trace, machine)
        straight = along(expected.path_pc, machine, module)
        found = run(straight.kernels["k"], straight, launch, memories[1], [block])
        for name in ("in", "out"):
            assert np.array_equal(memories[0].bytes_of(name), memories[1].bytes_of(name)), text
        for one, other in zip(accesses(expected), accesses(found), strict=True):
            assert np.array_equal(one, other), text


SGEMM = data_dir("validation") / "measured" / "kernels" / "sgemm.ptx"
#: kernel -> threads along x and y of a block
PRODUCTS = {
    "row_from_x": (16, 16),
    "coalesced": (1024, 1),
    "shared32": (1024, 1),
    "tiled16": (16, 16),
    "micro2x2": (16, 16),
    "micro4x1": (16, 16),
    "tiling1d": (512, 1),
    "tiling2d": (256, 1),
    "vectorised": (256, 1),
}

WIDE = ("tiled16", "micro2x2", "micro4x1")  # sides of 64 bits, no factors


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if PRODUCTS[n] == (256, 1) else []) for n in PRODUCTS]
)
def test_matrix_products(name):
    """Loops unrolled, loads joined, addresses shared; blocks of many warps, which all take the same way."""
    x, y = PRODUCTS[name]
    n = 128
    module = parse_module(SGEMM.read_text(), str(SGEMM))
    machine = machine_code(module.kernels[name], 128, load_gpu("a100").isa)
    a, b, c = (Argument("u64", buffer=each) for each in "abc")
    arguments: tuple[Argument, ...]
    if name in WIDE:
        arguments = (a, b, c, *(Argument("u64", value=n),) * 3)
    else:
        arguments = (*(Argument("i32", value=n),) * 3, Argument("f32", value=1.5), a, b, Argument("f32", value=0.5), c)
    launch = Launch(name, (1, 1, 1), (x, y, 1), arguments)
    memories = [DeviceMemory.build(module, [Buffer(b, "f32", n * n) for b in "abc"]) for _ in range(2)]
    rng = np.random.default_rng(1)
    for values, buffer in zip(rng.standard_normal((3, n * n)).astype(np.float32), "abc", strict=True):
        for memory in memories:
            memory.view(buffer, np.float32)[:] = values
    trace = run(module.kernels[name], module, launch, memories[0], [0])
    assert len(trace.path_start) == 2
    expected = as_machine_code(trace, machine)
    straight = along(expected.path_pc, machine, module)
    found = run(straight.kernels[name], straight, launch, memories[1], [0])
    for buffer in "abc":
        assert np.array_equal(memories[0].bytes_of(buffer), memories[1].bytes_of(buffer))
    for one, other in zip(accesses(expected), accesses(found), strict=True):
        assert np.array_equal(one, other)
    if name == "row_from_x":  # whose loop is unrolled in its PTX, as often as ptxas would
        assert len(expected.path_pc) == len(trace.path_pc)
    else:
        assert len(expected.path_pc) < len(trace.path_pc)
    code = machine.kernel
    assert expected.pc_executed.sum() == len(expected.path_pc) * len(expected.warp_path)
    assert all(code.origin[pc] < len(module.kernels[name].instructions) for pc in expected.path_pc)
