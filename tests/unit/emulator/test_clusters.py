"""Clusters of blocks: shared memory of other blocks, the barrier of the cluster, its special registers."""

import dataclasses

import numpy as np
import pytest
from jit_kernels import Case, assert_same_trace, check_against_interpreter, pointer, text_case
from reference.interpreter.interpreter import interpret

from ppt_gpu.common.errors import InputErrors, PptError
from ppt_gpu.emulator.run.run import run
from ppt_gpu.ptx import parse_module
from ppt_gpu.workload.workload import Buffer

HEAD = (
    ".reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %d<20>; ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x;"
    "mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %cluster_nctarank; mov.u32 %r4, s; mov.u32 %r5, %ctaid.x;"
    "shl.b32 %r6, %r1, 2; add.u32 %r7, %r4, %r6; mov.u32 %r8, %ntid.x; mad.lo.u32 %r9, %r5, %r8, %r1;"
    "mul.wide.u32 %d2, %r9, 4; add.s64 %d3, %d1, %d2;\n"
)
SYNC = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"


def kernel(body, *, grid=(8,), block=(40,), cluster=(4, 1, 1), directives="", count=None):
    text = (
        ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 16 .b8 s[256];\n"
        f".visible .entry k(.param .u64 p) {directives}\n{{\n{HEAD}{body}\nret;\n}}"
    )
    blocks = int(np.prod(grid))
    buffers = [Buffer("a", "u32", count or blocks * block[0])]
    case = Case(parse_module(text, "test.ptx"), "k", grid, block, [pointer("a")], buffers)
    case.launch = dataclasses.replace(case.launch, cluster=cluster)
    return case


#: the next block of the cluster writes to this one: rank r writes r * 100 + tid to rank (r + 1) % n
RING = "add.u32 %r10, %r2, 1; rem.u32 %r10, %r10, %r3; mad.lo.u32 %r11, %r2, 100, %r1;"


@pytest.mark.parametrize(
    "store",
    ["mapa.shared::cluster.u32 %r12, %r7, %r10; st.shared::cluster.u32 [%r12], %r11;",
     "cvt.u64.u32 %d4, %r7; cvta.shared.u64 %d4, %d4; mapa.u64 %d5, %d4, %r10; st.u32 [%d5], %r11;",
     "mov.u32 %r13, 0; st.shared.u32 [%r7], 0; barrier.cluster.arrive; barrier.cluster.wait;"
     "mapa.shared::cluster.u32 %r12, %r7, %r10; atom.shared::cluster.add.u32 %r14, [%r12], %r11;"],
)  # fmt: skip
def test_a_ring_of_blocks(store):
    case = kernel(f"{RING} {store} {SYNC} ld.shared.u32 %r20, [%r7]; st.global.u32 [%d3], %r20;")
    memory, trace = check_against_interpreter(case)
    out = memory.view("a", "u4").reshape(8, 40)
    for block in range(8):
        before = (block % 4 - 1) % 4
        assert out[block].tolist() == [before * 100 + t for t in range(40)]
    remote = trace.access_base[trace.access_space == 1] >> 24
    assert set(remote.tolist()) == {0, 1, 2, 3, 4}, "another block's rank + 1 stands above the offset"


def test_remote_reads_and_ranks_of_addresses():
    """Every block sums what all blocks of its cluster hold; addresses know whose they are."""
    body = (
        f"mad.lo.u32 %r10, %r5, 1000, %r1; st.shared.u32 [%r7], %r10; {SYNC} mov.u32 %r11, 0; mov.u32 %r12, 0;"
        "next: mapa.shared::cluster.u32 %r13, %r7, %r12; ld.shared::cluster.u32 %r14, [%r13]; add.u32 %r11, %r11, %r14;"
        "getctarank.shared::cluster.u32 %r15, %r13; add.u32 %r11, %r11, %r15; add.u32 %r12, %r12, 1;"
        "setp.lt.u32 %p1, %r12, %r3; @%p1 bra next; cvt.u64.u32 %d4, %r7; cvta.shared.u64 %d4, %d4;"
        " mapa.u64 %d5, %d4, 1;"
        "isspacep.shared::cta %p2, %d5; selp.u32 %r16, 100000, 0, %p2; add.u32 %r11, %r11, %r16;"
        "isspacep.shared::cluster %p3, %d5; selp.u32 %r16, 1000000, 0, %p3; add.u32 %r11, %r11, %r16;"
        f"{SYNC} st.global.u32 [%d3], %r11;"
    )
    memory, _ = check_against_interpreter(kernel(body, grid=(6,), cluster=(3, 1, 1)))
    out = memory.view("a", "u4").reshape(6, 40)
    for block in range(6):
        total = sum((block // 3 * 3 + rank) * 1000 for rank in range(3)) + 3 + 1_000_000
        own = 100_000 if block % 3 == 1 else 0
        assert out[block].tolist() == [total + 3 * t + own for t in range(40)]


def test_special_registers_of_two_axes():
    names = ["cluster_ctaid.x", "cluster_ctaid.y", "cluster_nctaid.x", "cluster_nctaid.y", "clusterid.x", "clusterid.y",
             "nclusterid.x", "nclusterid.y", "cluster_ctarank", "cluster_nctarank"]  # fmt: skip
    body = "mov.u32 %r10, 0; mov.u32 %r12, %ctaid.y; mad.lo.u32 %r12, %r12, 4, %r5; mul.wide.u32 %d4, %r12, 40;"
    body += "add.s64 %d4, %d4, %d1; mov.pred %p1, %is_explicit_cluster; @!%p1 trap;"
    body += "".join(f"mov.u32 %r11, %{name}; st.global.u32 [%d4+{4 * k}], %r11;" for k, name in enumerate(names))
    case = kernel(body, grid=(4, 6), block=(1,), cluster=(2, 3, 1), count=240)
    memory, _ = check_against_interpreter(case)
    out = memory.view("a", "u4").reshape(24, 10).tolist()
    for block in range(24):
        x, y = block % 4, block // 4
        assert out[block] == [x % 2, y % 3, 2, 3, x // 2, y // 3, 2, 2, y % 3 * 2 + x % 2, 6]


def test_blocks_asked_for_bring_their_clusters():
    body = f"{RING} mapa.shared::cluster.u32 %r12, %r7, %r10; st.shared::cluster.u32 [%r12], %r11; {SYNC}"
    case = kernel(body + "ld.shared.u32 %r20, [%r7]; st.global.u32 [%d3], %r20;")
    _, whole = case.run(blocks=range(4, 8))
    memory, trace = case.run(blocks=[6, 4])
    _, plain = case.run(blocks=[6, 4], engine=interpret)
    assert trace.blocks.tolist() == [6, 4]
    assert_same_trace(trace, plain)
    assert trace.warp_instructions == whole.warp_instructions // 2
    assert memory.view("a", "u4").reshape(8, 40)[7].tolist() == [200 + t for t in range(40)]
    assert not memory.view("a", "u4").reshape(8, 40)[:4].any()


def test_the_kernel_itself_asks_for_a_cluster():
    case = kernel(
        f"{SYNC} st.global.u32 [%d3], %r3;", cluster=None, directives=".explicitcluster .reqnctapercluster 2, 1, 1"
    )
    memory, _ = check_against_interpreter(case)
    assert (memory.view("a", "u4") == 2).all()


def test_one_block_is_a_cluster_and_exited_threads_have_arrived():
    body = f"setp.gt.u32 %p1, %r1, 35; @%p1 exit; {SYNC} st.global.u32 [%d3], 7; {SYNC}"
    memory, _ = check_against_interpreter(kernel(body, cluster=None, grid=(2,)))
    assert memory.view("a", "u4").reshape(2, 40).tolist() == [[7] * 36 + [0] * 4] * 2


def test_warps_and_blocks_arrive_at_different_times():
    """Arrive early, work, wait; blocks of the cluster leave at different times."""
    body = (
        "barrier.cluster.arrive; mov.u32 %r10, 0; mul.lo.u32 %r11, %r2, 50; loop: add.u32 %r10, %r10, 1;"
        "setp.lt.u32 %p1, %r10, %r11; @%p1 bra loop; barrier.cluster.wait; setp.eq.u32 %p2, %r2, 3; @%p2 exit;"
        f"{SYNC} atom.global.add.u32 %r12, [%d1], 1;"
    )
    memory, _ = check_against_interpreter(kernel(body))
    assert memory.view("a", "u4")[0] == 2 * 3 * 40


@pytest.mark.parametrize(
    "send",
    ["st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r12], %r11, [%r15];",
     "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r12], %r11, [%r15];"],
)  # fmt: skip
def test_asynchronous_stores_complete_at_the_barrier_of_the_other_block(send):
    """Every thread sends a word to the next block, whose threads wait at an mbarrier for all the bytes."""
    body = (
        "mov.u32 %r14, s; add.u32 %r14, %r14, 248; setp.eq.u32 %p1, %r1, 0;"
        " @%p1 mbarrier.init.shared.b64 [%r14], 1; st.shared.u32 [%r7], 0;"
        f"@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r14], 160; {SYNC} {RING}"
        f"mapa.shared::cluster.u32 %r12, %r7, %r10; mapa.shared::cluster.u32 %r15, %r14, %r10; {send}"
        "wait: mbarrier.try_wait.parity.shared.b64 %p2, [%r14], 0; @!%p2 bra wait;"
        f"ld.shared.u32 %r20, [%r7]; st.global.u32 [%d3], %r20; {SYNC}"
    )
    case = kernel(body)
    memory, _ = check_against_interpreter(case)
    out = memory.view("a", "u4").reshape(8, 40)
    for block in range(8):
        assert out[block].tolist() == [(block % 4 - 1) % 4 * 100 + t for t in range(40)]


ERRORS = [
    ("mapa.shared::cluster.u32 %r12, %r4, 4; ld.shared::cluster.u32 %r13, [%r12];", ""),
    ("mapa.shared::cluster.u32 %r12, %r4, 1; st.shared::cluster.u32 [%r12+256], %r1;", "256"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "text"), ERRORS)
def test_errors(body, text):
    for engine in (run, interpret):
        with pytest.raises(PptError) as caught:
            kernel(body).run(engine=engine)
        assert text in str(caught.value) and caught.value.line is not None


def test_a_block_that_never_arrives():
    """Block 0 of each cluster waits for a value that nobody writes, the others for it."""
    spin = "spin: ld.volatile.global.u32 %r10, [%d1]; setp.ne.u32 %p2, %r10, 77; @%p2 bra spin;"
    case = kernel(f"setp.ne.u32 %p1, %r2, 0; @%p1 bra meet; {spin} meet: {SYNC}")
    for engine in (run, interpret):
        with pytest.raises(PptError, match="waits for ever"):
            case.run(engine=engine)


def test_clusters_must_divide_the_grid():
    with pytest.raises(InputErrors, match="no whole number of clusters of 3x1x1 blocks"):
        kernel("", cluster=(3, 1, 1)).run()
    with pytest.raises(InputErrors, match="a cluster of 32x1x1 blocks"):
        kernel("", cluster=(32, 1, 1), grid=(32,)).run()
    with pytest.raises(InputErrors, match="requires clusters of 2x1x1 blocks, not 4x1x1"):
        kernel("", directives=".reqnctapercluster 2, 1, 1").run()


def test_no_launch_is_left_to_cancel():
    """The answer is no in all blocks of the cluster. Words that another answer would have are read in their places."""
    body = """
    .shared .align 16 .b8 answer[16]; .shared .align 8 .b64 bar; .reg .b128 %q; .reg .b64 %d<4>; .reg .b32 %r<9>;
    .reg .pred %p<4>;
    ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0;
    mov.b64 %d2, -1; mov.b128 %q, {%d2, %d2}; st.shared.b128 [answer], %q;
    @%p1 mbarrier.init.shared.b64 [bar], 1;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
    barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
    setp.eq.and.u32 %p2, %r2, 0, %p1;
    @%p2 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128
        [answer], [bar];
wait:
    mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;
    @!%p3 bra wait;
    ld.shared.b128 %q, [answer];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q;
    selp.u32 %r3, 100, 7, %p3;
    mov.b64 %d2, 0x0000000500000001; mov.b64 %d3, 0x0000000900000003; mov.b128 %q, {%d2, %d3};
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r4, %r5, %r6, _}, %q;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %r7, %q;
    mad.lo.u32 %r3, %r4, 10, %r3; mad.lo.u32 %r3, %r5, 100, %r3; mad.lo.u32 %r3, %r6, 1000, %r3;
    mad.lo.u32 %r3, %r7, 10000, %r3;
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q;
    selp.u32 %r4, 100000, 0, %p3; add.u32 %r3, %r3, %r4;
    mov.u32 %r4, %ctaid.x; mul.wide.u32 %d2, %r4, 4; add.s64 %d2, %d1, %d2; st.global.u32 [%d2], %r3;
    """
    text = f".visible .entry k(.param .u64 out) .reqnctapercluster 2, 1, 1\n{{{body} ret; }}"
    memory, _ = check_against_interpreter(text_case(text, (4,), (32,), [pointer("o")], [Buffer("o", "u32", 4)]))
    assert memory.view("o", "u4").tolist() == [199357] * 4
