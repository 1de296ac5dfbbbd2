"""Affine addresses: held against the addresses of functional runs, of all samples and of kernels made for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ppt_gpu.emulator.memory.initial_memory import device_memory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.frontends.prepare import prepare
from ppt_gpu.inputs import open_workload
from ppt_gpu.models.affine.affine import Affine, disjoint_sum, index, product, span
from ppt_gpu.models.affine.registers import affine_addresses
from ppt_gpu.models.affine.static_accesses import matched
from ppt_gpu.ptx.instructions import memory_space
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.ptx.linking.linked import LinkedKernel
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Dim3, Launch, Workload

SAMPLES = {
    "vecadd": 3, "saxpy": 3, "sgemm": 3, "transpose_naive": 8, "transpose_tiled": 8, "jacobi": 7, "reduction": 2,
    "stencil7": 32, "spmv": 1, "mandelbrot": 1, "histogram": 2,
}  # fmt: skip

KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n, .param .u32 step)
{
    .reg .pred %p<4>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [n];
    ld.param.u32 %r2, [step];
    mov.u32 %r3, %tid.x;
    mov.u32 %r4, %ctaid.x;
    BODY
    ret;
}
"""


def kernel_of(workload: Workload) -> tuple[LinkedKernel, Launch, Trace]:
    """The linked first kernel of a workload, its launch, and the trace of its first and last block."""
    prepared = prepare(workload, (8, 0))
    launch = prepared.workload.launches[0]
    kernel = link(prepared.module.kernels[launch.kernel], prepared.module)
    memory = device_memory(prepared.module, prepared.workload, {}, Budget())
    return kernel, launch, run(kernel, prepared.module, launch, memory, sorted({0, launch.blocks - 1}))


def body(tmp_path: Path, text: str, block: str = "[64]", grid: str = "[3]") -> tuple[LinkedKernel, Launch, Trace]:
    (tmp_path / "k.ptx").write_text(KERNEL.replace("BODY", text))
    (tmp_path / "k.toml").write_text(
        f'ptx = "k.ptx"\ngrid = {grid}\nblock = {block}\narguments = ["out", "i32=4", "i32=256"]\n'
        '[buffers]\nout = "f32[65536]"\n'
    )
    return kernel_of(open_workload(tmp_path / "k.toml"))


def lanes_of(warp: int, block: Dim3) -> list[np.ndarray]:
    """x, y and z of the 32 threads of a warp."""
    thread = np.arange(32) + 32 * warp
    return [thread % block[0], thread // block[0] % block[1], thread // (block[0] * block[1])]


def lane_parts(address: Affine, warp: int, launch: Launch) -> np.ndarray:
    """[32] what of an address differs between the lanes of a warp."""
    x, y, z = lanes_of(warp, launch.block)
    found = np.zeros(32, np.int64)
    for name, factor in address.terms:
        symbol, _, part = name.partition(" ")
        value = {"tid.x": x, "tid.y": y, "tid.z": z, "laneid": np.arange(32)}.get(symbol)
        if value is None:
            continue  # the same for all lanes
        word, _, unit = part.partition(" ")
        found += factor * (value if not word else value % int(unit) if word == "mod" else value // int(unit))
    return found


def hold_against(kernel: LinkedKernel, launch: Launch, trace: Trace, addresses: dict[int, Affine]) -> int:
    """Assert that lanes lie as the addresses say in every access of the trace; how many were looked at."""
    pcs, accesses = matched(kernel, trace)
    warp_of = np.repeat(np.arange(trace.warps), np.diff(trace.access_start))
    per_block = -(-launch.threads_per_block // 32)
    looked = 0
    for pc, access in zip(pcs.tolist(), accesses.tolist(), strict=True):
        pattern = trace.access_pattern[access]
        on = np.flatnonzero(trace.pattern_mask[pattern] >> np.arange(32, dtype=np.uint32) & np.uint32(1))
        if pc not in addresses or not len(on):
            continue
        parts = lane_parts(addresses[pc], int(warp_of[access]) % per_block, launch)[on]
        assert np.array_equal(trace.pattern_offset[pattern][on], parts - parts[0]), kernel.instructions[pc]
        looked += 1
    return looked


@pytest.mark.parametrize("name", SAMPLES)
def test_samples(name: str) -> None:
    kernel, launch, trace = kernel_of(open_workload(name))
    addresses = affine_addresses(kernel, launch)
    off_chip = {at: value for at, value in addresses.items() if memory_space(kernel.instructions[at]) == "global"}
    assert len(off_chip) == SAMPLES[name]
    assert hold_against(kernel, launch, trace, addresses) > 0


def only(kernel: LinkedKernel, launch: Launch) -> list[Affine | None]:
    """The addresses of the stores, in text order."""
    addresses = affine_addresses(kernel, launch)
    return [addresses.get(item.index) for item in kernel.instructions if item.base == "st"]


STORE = "mul.wide.s32 %rd2, {0}, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r3;"

LOOP = """
    mov.u32 %r5, 0;
    mov.u32 %r6, %r3;
again:
    {store}
    add.s32 %r6, %r6, 64;
    add.s32 %r5, %r5, 1;
    setp.lt.s32 %p1, %r5, %r1;
    @%p1 bra again;
    {after}
"""


def test_a_loop_steps_by_a_constant_and_its_end_is_not_known(tmp_path: Path) -> None:
    text = LOOP.format(store=STORE.format("%r6"), after=STORE.format("%r6"))
    kernel, launch, trace = body(tmp_path, text)
    inside, after = only(kernel, launch)
    assert inside is not None and inside.coefficient("tid.x") == 4
    assert [factor for name, factor in inside.terms if name.startswith("loop")] == [256]
    assert after is None
    assert hold_against(kernel, launch, trace, affine_addresses(kernel, launch)) == 2 * 2 * 4


def test_a_loop_that_doubles_has_no_affine_address(tmp_path: Path) -> None:
    text = LOOP.replace("add.s32 %r6, %r6, 64", "add.s32 %r6, %r6, %r6").format(store=STORE.format("%r6"), after="")
    assert only(*body(tmp_path, text)[:2]) == [None]


def test_nested_loops_have_a_step_each(tmp_path: Path) -> None:
    inner = """
    mov.u32 %r7, 0;
    mov.u32 %r8, %r6;
inner:
    {store}
    add.s32 %r8, %r8, 1024;
    add.s32 %r7, %r7, 1;
    setp.lt.s32 %p2, %r7, 3;
    @%p2 bra inner;
    """.format(store=STORE.format("%r8"))
    (address,) = only(*body(tmp_path, LOOP.format(store=inner, after=""))[:2])
    assert address is not None
    assert sorted(factor for name, factor in address.terms if name.startswith("loop")) == [256, 4096]


def test_paths_that_disagree_leave_nothing_known(tmp_path: Path) -> None:
    text = """
    setp.lt.s32 %p1, %r3, 7;
    mov.u32 %r6, %r3;
    @%p1 bra there;
    {change}
there:
    {store}
    """
    differ = body(tmp_path, text.format(change="add.s32 %r6, %r6, 1;", store=STORE.format("%r6")))
    assert only(*differ[:2]) == [None]
    same = body(tmp_path, text.format(change="add.s32 %r6, %r3, 0;", store=STORE.format("%r6")))
    assert only(*same[:2])[0] is not None
    guarded = body(
        tmp_path, f"setp.lt.s32 %p1, %r3, 7; mov.u32 %r6, %r3; @%p1 add.s32 %r6, %r6, 1; {STORE.format('%r6')}"
    )
    assert only(*guarded[:2]) == [None]


@pytest.mark.parametrize(
    "text",
    [
        "shl.b32 %r5, %r4, 6; or.b32 %r6, %r5, %r3;",
        "and.b32 %r5, %r3, 15; shr.u32 %r6, %r3, 4; mad.lo.s32 %r6, %r6, 100, %r5;",
        "rem.u32 %r5, %r3, 32; div.u32 %r6, %r3, 32; mad.lo.s32 %r6, %r6, 100, %r5;",
        "mov.u32 %r5, %laneid; mul.lo.s32 %r6, %r5, %r2;",
        "sub.s32 %r5, %r3, %r4; neg.s32 %r6, %r5; add.s32 %r6, %r6, 4096;",
        "and.b32 %r5, %r3, 63; xor.b32 %r6, %r5, 1024;",
    ],
)
def test_bit_arithmetic_agrees_with_the_run(tmp_path: Path, text: str) -> None:
    kernel, launch, trace = body(tmp_path, text + STORE.format("%r6"))
    assert hold_against(kernel, launch, trace, affine_addresses(kernel, launch)) == 4


@pytest.mark.parametrize("text", ["xor.b32 %r6, %r3, 5;", "mul.lo.s32 %r6, %r3, %r3;", "and.b32 %r6, %r3, 5;"])
def test_what_is_not_affine_is_not_called_so(tmp_path: Path, text: str) -> None:
    assert only(*body(tmp_path, text + STORE.format("%r6"))[:2]) == [None]


def test_expressions() -> None:
    x, y = index("x"), index("y")
    extents = {"x": 16, "y": 3}
    assert x.plus(y.times(16)).minus(x) == y.times(16)
    assert product(x, Affine(3)) == product(Affine(3), x) == x.times(3)
    assert product(x, y) is None and product(Affine(0), x) == Affine(0)
    assert span(x.times(2).minus(y).plus(Affine(1)), extents) == (-1, 31)
    assert span(index("z"), extents) is None
    assert disjoint_sum(y.times(16), x, extents) == disjoint_sum(x, y.times(16), extents) == y.times(16).plus(x)
    assert disjoint_sum(y.times(8), x, extents) is None
