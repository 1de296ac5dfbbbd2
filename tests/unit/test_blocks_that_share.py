"""Predictions of kernels whose blocks take parts of a work that they share: each gets its part, not everything."""

import numpy as np
import pytest
from equal_fields import assert_equal
from reference.interpreter.interpreter import interpret

import ppt_gpu
from ppt_gpu.emulator.cache import traces
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.run.launch_state import SHORTEST_TURN
from ppt_gpu.emulator.run.run import run
from ppt_gpu.ptx import parse_module
from ppt_gpu.workload.workload import Argument, Buffer, Launch

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
ENTER = """
  .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<12>; .reg .f32 %f<3>; .shared .align 4 .b32 item;
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u64 %rd3, [head]; ld.param.u32 %r1, [items];
  mov.u32 %r2, %tid.x; mov.u32 %r3, %ntid.x; mov.u32 %r10, %ctaid.x; mov.u32 %r11, %nctaid.x;
"""
#: part %r4 of the work: so many elements as the block has threads, some arithmetic on each
PART = """
  mad.lo.u32 %r5, %r4, %r3, %r2; mul.wide.u32 %rd4, %r5, 4; add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4;
  ld.global.f32 %f1, [%rd5]; mov.u32 %r6, 0;
WORK:
  fma.rn.f32 %f1, %f1, 0f3FC00000, 0f3F800000; fma.rn.f32 %f1, %f1, 0f3FC00000, 0f3F800000;
  add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 20; @%p2 bra WORK;
  st.global.f32 [%rd6], %f1;
"""
PARAMETERS = "(.param .u64 in, .param .u64 out, .param .u64 head, .param .u32 items)\n{"
#: thread 0 of each block takes the next part from a counter until there is none
QUEUE = f"""{HEAD}.visible .entry queue{PARAMETERS}{ENTER}
NEXT:
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra TAKEN;
  atom.global.add.u32 %r4, [%rd3], 1;
  st.shared.u32 [item], %r4;
TAKEN:
  bar.sync 0; ld.shared.u32 %r4, [item]; bar.sync 0;
  setp.ge.u32 %p3, %r4, %r1; @%p3 bra END;
{PART}
  bra NEXT;
END: ret;
}}
"""
#: and one of each block of a cluster, which wait for each other
CLUSTERS = QUEUE.replace(PARAMETERS, PARAMETERS.replace("\n{", "\n.reqnctapercluster 2\n{")).replace(
    "bar.sync 0; ld.shared", "barrier.cluster.arrive; barrier.cluster.wait; bar.sync 0; ld.shared"
)
#: the same parts, dealt out beforehand
DEALT = f"""{HEAD}.visible .entry dealt{PARAMETERS}{ENTER}
  mov.u32 %r4, %r10;
NEXT:
  bar.sync 0; bar.sync 0;
  setp.ge.u32 %p3, %r4, %r1; @%p3 bra END;
{PART}
  add.u32 %r4, %r4, %r11;
  bra NEXT;
END: ret;
}}
"""
#: each block draws one ticket and does that part
TICKETS = QUEUE.replace("queue", "tickets").replace("bra NEXT", "bra END")
#: lane 0 of each warp takes a row, all lanes add it up, with shuffles, which lanes that run apart would spoil
ROWS = f"""{HEAD}.visible .entry rows(.param .u64 in, .param .u64 out, .param .u64 head, .param .u32 items)
{{
  .reg .pred %p<6>; .reg .b32 %r<16>; .reg .b64 %rd<12>;
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u64 %rd3, [head]; ld.param.u32 %r1, [items];
  mov.u32 %r2, %tid.x; and.b32 %r2, %r2, 31; setp.ne.u32 %p1, %r2, 0;
  bra NEXT;
STORE:
  mul.wide.u32 %rd4, %r4, 4; add.s64 %rd5, %rd2, %rd4; st.global.u32 [%rd5], %r7;
NEXT:
  @%p1 bra TAKEN;
  atom.global.add.u32 %r4, [%rd3], 1;
TAKEN:
  shfl.sync.idx.b32 %r4|%p2, %r4, 0, 31, -1;
  setp.ge.u32 %p3, %r4, %r1; @%p3 bra END;
  mov.u32 %r7, 0; and.b32 %r8, %r4, 63; mov.u32 %r5, %r2;
  setp.ge.u32 %p4, %r5, %r8; @%p4 bra ADDED;
EACH:
  mad.lo.u32 %r6, %r4, 64, %r5; mul.wide.u32 %rd4, %r6, 4; add.s64 %rd5, %rd1, %rd4;
  ld.global.u32 %r9, [%rd5]; add.u32 %r7, %r7, %r9; add.u32 %r5, %r5, 32;
  setp.lt.u32 %p4, %r5, %r8; @%p4 bra EACH;
ADDED:
  {" ".join(f"shfl.sync.bfly.b32 %r10|%p5, %r7, {d}, 31, -1; add.u32 %r7, %r7, %r10;" for d in (16, 8, 4, 2, 1))}
  @%p1 bra NEXT;
  bra STORE;
END: ret;
}}
"""


def predict(text, items, grid=160, level="steady", gpu="v100", **more):
    size = 128 * max(items, 1)
    arguments = [np.ones(size, np.float32), np.zeros(size, np.float32), np.zeros(1, np.uint32), np.uint32(items)]
    found = ppt_gpu.predict(text, gpu, grid=grid, block=128, args=arguments, level=level, **more)
    return found.launches[0]


def test_a_queue_is_like_parts_dealt_out():
    queue, dealt = predict(QUEUE, 3200), predict(DEALT, 3200)
    cycles = dealt.value("kernel.cycles")
    assert cycles < queue.value("kernel.cycles") < 2 * cycles  # it asks for each part; 160 times as long if one did all
    assert any("the whole grid was run" in note for note in queue.assumptions)
    assert not any("the whole grid was run" in note for note in dealt.assumptions)


def test_levels_see_the_same_queue():
    steady, grid = predict(QUEUE, 1600), predict(QUEUE, 1600, level="grid")
    assert steady.value("kernel.cycles") == pytest.approx(grid.value("kernel.cycles"), rel=0.1)


@pytest.mark.parametrize("items", [1600, 1601, 100, 0])
def test_every_block_gets_its_part_and_every_part_is_done_once(items):
    trace, memory, _ = ran(QUEUE, items, grid=160)
    done = memory.view("out", np.float32)
    assert np.count_nonzero(done) == 128 * items and memory.view("head", np.uint32)[0] == items + 160
    store = next(i.index for i in parse_module(QUEUE).kernels["queue"].instructions if i.opcode == "st.global.f32")
    assert trace.block_threads is not None
    parts = trace.block_threads[:, store] // 128 if items else np.zeros(160, int)
    assert parts.sum() == items
    assert parts.max() - parts.min() <= 2


@pytest.mark.parametrize(
    ("text", "items"), [(QUEUE, 61), pytest.param(CLUSTERS, 61, marks=pytest.mark.slow), (ROWS, 300)]
)
def test_the_plain_reference_gives_the_same_turns(text, items):
    """Which block gets which part, too."""
    (compiled, left, _), (plain, right, _) = (ran(text, items, grid=4, engine=engine) for engine in (run, interpret))
    assert np.array_equal(left.view("out", np.uint32), right.view("out", np.uint32))
    assert_equal(compiled, plain)


def test_blocks_of_clusters_share_too():
    trace, memory, _ = ran(CLUSTERS, 1600, grid=160)
    assert memory.view("head", np.uint32)[0] == 1600 + 160
    work = trace.warp_threads.reshape(160, -1).sum(axis=1)
    assert work.max() < 1.5 * work.min()


def test_tickets_are_drawn_by_all_blocks():
    """Blocks that were run alone would all draw the first tickets, and share what is theirs alone."""
    found = predict(TICKETS, 1600, grid=1600)
    read = 1600 * 128 * 4
    assert found.value("memory.dram_read_bytes") == pytest.approx(read, rel=0.1)
    assert any("the whole grid was run" in note for note in found.assumptions)


def test_a_grid_too_large_to_run_whole_is_said(monkeypatch):
    monkeypatch.setattr(traces, "SHARED_INSTRUCTIONS", 1000)
    found = predict(TICKETS, 1601, grid=1601)  # nothing is kept of it
    assert any("the grid is too large to run whole" in note for note in found.assumptions)


def test_kept_traces_say_the_same(tmp_path):
    first = predict(QUEUE, 800, trace_out=str(tmp_path / "queue.trace"))
    again = predict(QUEUE, 800, trace_in=str(tmp_path / "queue.trace"))
    assert again.value("kernel.cycles") == first.value("kernel.cycles")
    assert again.assumptions == first.assumptions


def ran(text, items, grid, block=128, engine=run):
    module = parse_module(text)
    (name,) = module.kernels
    size = 128 * max(items, 1)
    kind = "u32" if name == "rows" else "f32"
    buffers = [Buffer("in", kind, size), Buffer("out", kind, size), Buffer("head", "u32", 1)]
    memory = DeviceMemory.build(module, buffers)
    memory.view("in", np.uint32 if kind == "u32" else np.float32)[:] = np.arange(size) % 1000 if kind == "u32" else 1
    arguments = (*(Argument("u64", buffer=each.name) for each in buffers), Argument("u32", value=items))
    launch = Launch(name, (grid, 1, 1), (block, 1, 1), arguments)
    return engine(module.kernels[name], module, launch, memory, range(grid)), memory, launch


@pytest.mark.parametrize(("engine", "grid", "items"), [(run, 1, 3000), (run, 40, 6000), (interpret, 1, 900)])
def test_lanes_that_shuffle_stay_together(engine, grid, items):
    """Turns end anywhere in a loop that takes work; lanes that stand at a join must not go on without the others."""
    _, memory, _ = ran(ROWS, items, grid, engine=engine)
    values = (np.arange(128 * items, dtype=np.uint32) % 1000)[: 64 * items].reshape(items, 64)
    expected = [values[row, : row & 63].sum() for row in range(items)]
    assert np.array_equal(memory.view("out", np.uint32)[:items], expected)
    assert items * 10 > SHORTEST_TURN  # turns end on the way
