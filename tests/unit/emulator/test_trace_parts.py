"""A trace put together from single blocks is, array for array, the trace of a run of these blocks."""

import dataclasses

import numpy as np
import pytest
from equal_fields import assert_equal
from jit_kernels import Case, file_case, integer, pointer, text_case
from small_samples import small_workload

from ppt_gpu.emulator.analysis.data_dependence import steered_by_memory
from ppt_gpu.emulator.trace import trace
from ppt_gpu.emulator.trace.global_accesses import global_accesses
from ppt_gpu.emulator.trace.trace_parts import join_blocks, join_global, only_blocks
from ppt_gpu.workload.workload import Buffer

GUARDED = """
.visible .entry k(.param .u64 out, .param .u32 n)
{
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<4>;
  ld.param.u64 %d1, [out]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x; mov.u32 %r4, 0;
  rem.u32 %r5, %r2, 3;
$L:
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p1, %r3, %r2;
  @%p1 add.u32 %r6, %r6, %r3;
  setp.le.u32 %p2, %r4, %r5;
  @%p2 bra $L;
  mad.lo.u32 %r7, %r2, 64, %r3;
  setp.ge.u32 %p1, %r7, %r1;
  @%p1 ret;
  mul.wide.u32 %d2, %r7, 4; add.u64 %d3, %d1, %d2;
  st.global.u32 [%d3], %r6;
  @%p2 st.global.u32 [%d3], %r4;
  ret;
}
"""


def small_case(name):
    """The first launch of a shipped sample, small."""
    workload, module = small_workload(name)
    launch = workload.launches[0]
    case = Case.__new__(Case)
    case.module, case.kernel, case.launch = module, module.kernels[launch.kernel], launch
    case.buffers, case.symbols, case.fill = workload.buffers, workload.symbols, {}
    return case


def cases():
    yield (
        "guarded",
        text_case(GUARDED, (9,), (64,), [pointer("out"), integer(64 * 9 - 7)], [Buffer("out", "u32", 64 * 9)]),
    )
    for name in ("sgemm", "stencil7", "stencil7_shared", "reduction", "transpose_tiled", "vecadd"):
        yield name, small_case(name)


@pytest.mark.parametrize("name, case", list(cases()), ids=[name for name, _ in cases()])
def test_join_is_run(name, case):
    assert not steered_by_memory(case.kernel)
    rng = np.random.default_rng(7)
    count = min(case.launch.blocks, 40)
    blocks = [int(b) for b in rng.permutation(case.launch.blocks)[:count]]
    parts = np.array_split(np.array(sorted(blocks)), 3)
    place = {}
    for part in parts:
        _, part_trace = case.run(blocks=part.tolist())
        place |= {block: (part_trace, at) for at, block in enumerate(part.tolist())}
    for wanted in (blocks, blocks[: count // 2], sorted(blocks), blocks[:1]):
        _, expected = case.run(blocks=wanted)
        found = join_blocks([place[block] for block in wanted])
        assert_equal(found, expected)
        globals_of = {id(part): global_accesses(case.kernel, part) for part, _ in place.values()}
        joined = join_global([(globals_of[id(place[b][0])], place[b][1]) for b in wanted])
        assert_equal(joined, global_accesses(case.kernel, expected))


def test_globals_are_the_global_accesses():
    """Against the trace read in plain Python."""
    case = small_case("stencil7_shared")
    _, trace = case.run(blocks=[1, 0])
    found = global_accesses(case.kernel, trace)
    expected = []
    traced = [i.index for i in case.kernel.instructions if i.base in ("ld", "st") and ".param" not in i.opcode]
    for w in range(trace.warps):
        path = trace.path_pc[trace.path_start[trace.warp_path[w]] : trace.path_start[trace.warp_path[w] + 1]]
        pcs = [pc for pc in path.tolist() if pc in traced]
        for k, pc in zip(range(trace.access_start[w], trace.access_start[w + 1]), pcs, strict=True):
            if trace.access_space[k] == 0:
                expected.append((int(trace.warp_block[w]), pc, int(trace.access_base[k])))
    owner = np.repeat(np.arange(2), np.diff(found.start))
    assert list(zip(owner.tolist(), found.pc.tolist(), found.base.tolist(), strict=True)) == expected


def test_histogram_of_loaded_values_is_steered():
    case = file_case(
        "mixed.ptx", "histogram", (1,), (32,), [pointer("a"), pointer("b"), integer(32)],
        [Buffer("a", "u32", 32), Buffer("b", "u32", 64)],
    )  # fmt: skip
    assert steered_by_memory(case.kernel)


def test_a_grid_too_large_for_counts_of_each_block(monkeypatch):
    """Single blocks are taken out all the same; each instruction has as many threads as blocks have in the mean."""
    case = text_case(GUARDED, (9,), (64,), [pointer("out"), integer(64 * 9)], [Buffer("out", "u32", 64 * 9)])
    wanted = [4, 1, 7]
    _, expected = case.run(blocks=wanted)
    expected = dataclasses.replace(expected, block_threads=None)
    monkeypatch.setattr(trace, "LARGEST_COUNTS", 0)
    _, whole = case.run()
    assert whole.block_threads is None
    found = only_blocks(whole, wanted)
    each = whole.pc_threads / np.maximum(whole.pc_executed, 1)
    assert np.array_equal(found.pc_threads, np.rint(expected.pc_executed * each))
    unguarded = [i.index for i in case.kernel.instructions if not i.guard]
    assert len(unguarded) > 10
    assert np.array_equal(found.pc_threads[unguarded], expected.pc_threads[unguarded])
    assert_equal(dataclasses.replace(found, pc_threads=expected.pc_threads), expected)
