"""From kernels of a few instructions to the representation: every number by hand."""

from pathlib import Path

import pytest

from ppt_gpu.inputs import open_workload
from ppt_gpu.multicore.base.core_file import load_core
from ppt_gpu.multicore.base.operations import CLASSES, of_machine_operation
from ppt_gpu.multicore.representation.ir import Ir
from ppt_gpu.multicore.representation.ir_to_m import footprint_off_chip, m_inputs_of_ir
from ppt_gpu.multicore.representation.ir_to_s import s_inputs_of_ir
from ppt_gpu.ptx.instructions import operation
from ppt_gpu.ptx.parsing.parser import load_module
from ppt_gpu.representations import chosen_blocks, representations
from ppt_gpu.spec import load_gpu
from ppt_gpu.workload.workload import Launch

HEAD = ".version 7.0\n.target sm_70\n.address_size 64\n"
#: y[t] = x[2 t] * x[0] after a barrier; the upper half of each warp loads nothing else
KERNEL = (
    HEAD
    + """
.visible .entry k(.param .u64 x, .param .u64 y)
{
    .reg .b32 %r<4>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<8>;
    .reg .pred %p<2>;
    .shared .align 4 .b8 s[256];
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 8;
    add.s64 %rd4, %rd1, %rd3;
    ld.global.f32 %f1, [%rd4];
    ld.global.f32 %f2, [%rd1];
    bar.sync 0;
    mul.f32 %f3, %f1, %f2;
    mul.wide.u32 %rd5, %r1, 4;
    add.s64 %rd6, %rd2, %rd5;
    setp.lt.u32 %p1, %r1, 16;
    @%p1 st.global.f32 [%rd6], %f3;
    ret;
}
"""
)


@pytest.fixture
def found(tmp_path: Path) -> Ir:
    path = tmp_path / "k.ptx"
    path.write_text(KERNEL)
    workload = open_workload(path, grid=(8,), block=(64,), args=["f32[4096]=random", "f32[4096]"])
    ((ir, needs, runs),) = representations(workload, None, "all", ())
    assert (needs[1], runs) == (256, 1)
    return ir


def test_operations(found: Ir) -> None:
    threads, warps = 8 * 64, 8 * 2
    counted = {name: (amount.threads, amount.groups) for name, amount in found.operations.items()}
    assert counted == {
        "local_load": (2 * threads, 2 * warps), "move": (threads, warps), "int_mul": (2 * threads, 2 * warps),
        "int_add": (3 * threads, 3 * warps), "load": (2 * threads, 2 * warps), "fp_mul": (threads, warps),
        "store": (8 * 16, warps), "branch": (threads, warps),
    }  # fmt: skip
    assert (found.threads, found.width, found.group_threads, found.inner_loops) == (threads, 32, 64, 1)


def test_memory(found: Ir) -> None:
    """Each block reads 2 x 64 floats of x and writes 16 of y; its 256 B of shared memory count."""
    assert found.scratch == 256
    assert found.footprint == 2 * 64 * 4 + 16 * 4 + 256
    pairs = {"2": 16 * 31, "0": 16 * 31, "1": 8 * 15}
    total = sum(pairs.values())
    assert found.strides == pytest.approx({name: count / total for name, count in pairs.items()})
    assert found.element == 4


def test_on_a_cpu(found: Ir) -> None:
    """Four lanes of SSE: half-active stores make two chunks; distance 2 costs an access a thread."""
    core = load_core("nehalem")
    inputs = s_inputs_of_ir(found, core)
    assert inputs.n_i["fp_mul"] == 512 / 4
    regular = found.strides["0"] + found.strides["1"]
    assert inputs.n_i["load"] == pytest.approx(1024 / 4 * regular + 1024 * (1 - regular))
    assert inputs.n_i["store"] == pytest.approx(128 / 4 * regular + 128 * (1 - regular))
    assert inputs.n_i["branch"] == 512 / 4 + 512 / 4
    assert inputs.N_mL1 == inputs.N_mL2 == inputs.N_mL3 == 0


def test_on_another_gpu(found: Ir) -> None:
    """What the run touched of global memory leaves the chip; shared memory stays. A warp is a warp."""
    gpu = load_gpu("gtx660ti")
    inputs = m_inputs_of_ir(found, gpu)
    assert footprint_off_chip(found, gpu) == 2 * 64 * 4 + 16 * 4
    assert (inputs.warps, inputs.N_sync, inputs.N_mem, inputs.N_SFU) == (16, 1, 3, 0)
    assert inputs.N_off_chip == pytest.approx((2 * 64 * 4 + 16 * 4) / (128 * 16))
    moved = found.strides["0"] * 1 + found.strides["1"] * 1 + found.strides["2"] * 2
    assert inputs.avg_trans_warp == pytest.approx(moved)


def test_a_sample_counts_for_the_grid(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(KERNEL)
    workload = open_workload(path, grid=(64,), block=(64,), args=["f32[4096]=random", "f32[4096]"])
    (whole, _, _), (sample, _, _) = (representations(workload, None, blocks, ())[0] for blocks in ("all", 8))
    assert sample.operations.keys() == whole.operations.keys()
    for name, amount in whole.operations.items():
        assert sample.operations[name].threads == pytest.approx(amount.threads)
    assert sample.notes == ("8 of 64 blocks ran",)


@pytest.mark.parametrize("grid", [(1, 1, 1), (7, 1, 1), (1000, 1, 1), (40, 30, 1), (3, 3, 3)])
@pytest.mark.parametrize("blocks", ["sample", "all", 1, 5, 16])
def test_chosen_blocks(grid: tuple[int, int, int], blocks: str | int) -> None:
    launch = Launch("k", grid, (32, 1, 1), ())
    chosen = chosen_blocks(launch, blocks)
    assert chosen == sorted(set(chosen)) and chosen[0] >= 0 and chosen[-1] < launch.blocks
    wanted = {"sample": 16, "all": launch.blocks}.get(blocks, blocks)  # type: ignore[call-overload]
    assert len(chosen) <= min(wanted, launch.blocks)
    assert len(chosen) >= min(wanted, launch.blocks) - 2


@pytest.mark.parametrize(
    "path", sorted(Path(__file__).parents[3].joinpath("tasklists").glob("*.ptx")), ids=lambda p: p.stem
)
def test_every_instruction_of_the_samples_has_a_class(path: Path) -> None:
    for kernel in load_module(path).kernels.values():
        for instruction in kernel.instructions:
            name = operation(instruction).replace("generic", "global")
            assert all(each in CLASSES for each, _ in of_machine_operation(name))
