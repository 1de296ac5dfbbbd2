"""Bulk copies in a trace and in the SM: what they move of global memory, and who waits for them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from jit_kernels import Case, check_against_interpreter, integer, pointer, text_case

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.memory.mbarrier_word import SYNC_SPACE
from ppt_gpu.emulator.trace.block_features import features_of
from ppt_gpu.emulator.trace.trace_file import Record, read_traces, write_traces
from ppt_gpu.ptx import load_module
from ppt_gpu.ptx.instructions import access_bytes, is_traced
from ppt_gpu.sm.lowering.lower import lower_trace
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.sm.program.program import EVENT_COUNTS, EVENT_LATE, KIND_ATOMIC, KIND_LOAD, KIND_STORE, events_of
from ppt_gpu.spec import load_gpu
from ppt_gpu.translation.translate import translate
from ppt_gpu.workload.argument_text import parse_argument
from ppt_gpu.workload.box import MASK, SIGNAL, SIGNALLED, Box, are_boxes, are_empty_boxes, together
from ppt_gpu.workload.workload import Buffer

MODULE = load_module(Path(__file__).parents[2] / "data" / "matrix" / "bulk.ptx")
GPU = load_gpu("h100")
ROUNDS, BYTES = 5, 2048


def rounds():
    buffers = [Buffer("in", "s32", 512 * ROUNDS), Buffer("out", "s32", 512 * ROUNDS), Buffer("sum", "s32", 512)]
    arguments = [pointer("in"), pointer("out"), pointer("sum"), integer(ROUNDS)]
    return Case(MODULE, "rounds", (1,), (64,), arguments, buffers)


@pytest.fixture(scope="module")
def traced():
    case = rounds()
    _, trace = check_against_interpreter(case)
    return case, trace


def lowered(case, trace):
    return lower_trace(case.kernel, trace, GPU, launch=case.launch, active_sms=1)


def sectors(program, kind):
    """32-byte sectors that operations of a kind move, by access."""
    accesses = [
        access
        for w in range(len(program.warp_path))
        for access, op in zip(
            range(program.warp_access[w], program.warp_access[w + 1]), memory_operations(program, w), strict=True
        )
        if program.op_kind[op] == kind
    ]
    return [
        int(np.bitwise_count(program.tx_sectors[program.access_start[k] : program.access_start[k + 1]]).sum())
        for k in accesses
    ]


def memory_operations(program, warp):
    path = program.warp_path[warp]
    ops = program.entry_op[program.path_start[path] : program.path_start[path + 1]]
    return [op for op in ops.tolist() if 3 <= program.op_kind[op] <= 6]


def test_every_sector_is_there(traced):
    """One warp copies 2 KiB a round from memory, 2 KiB to it, and adds 2 KiB up there; the other copies nothing."""
    program = lowered(*traced)
    for kind in (KIND_LOAD, KIND_STORE, KIND_ATOMIC):
        assert [n for n in sectors(program, kind) if n] == [BYTES // 32] * ROUNDS
    assert features_of(traced[1]).sectors.tolist() == [3 * ROUNDS * BYTES // 32]


def test_waits_wait_for_the_data(traced, monkeypatch):
    """Every round needs the data of its copy: without the waits the rounds pass in a fraction of that time."""
    cycles = simulate(lowered(*traced), GPU, resident_blocks=1, active_sms=1).cycles
    assert cycles > ROUNDS * GPU.dram.latency
    monkeypatch.setattr("ppt_gpu.sm.lowering.code.find_events", lambda *given: None)
    assert simulate(lowered(*traced), GPU, resident_blocks=1, active_sms=1).cycles > ROUNDS * GPU.dram.latency
    monkeypatch.setattr("ppt_gpu.sm.lowering.code.copy_groups", lambda kernel, events: None)
    loose = simulate(lowered(*traced), GPU, resident_blocks=1, active_sms=1).cycles
    assert loose < cycles - (ROUNDS - 1) * GPU.dram.latency


LANES = """.visible .entry k(.param .u64 a)
{ .reg .pred %p, %q; .reg .b32 %r<9>; .reg .b64 %d<9>; .shared .align 128 .b8 s[4096]; .shared .align 8 .b8 bar[8];
mov.u32 %r1, %tid.x; mov.u32 %r2, s; mov.u32 %r3, bar; ld.param.u64 %d1, [a];
mbarrier.init.shared.b64 [%r3], 1; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r3], 4096;
mad.lo.u32 %r4, %r1, 64, %r2; mad.wide.u32 %d2, %r1, 256, %d1;
COPY [%r4], [%d2], 64, [%r3];
setp.gt.u32 %p, %r1, 40; @%p COPY [%r4], [%d2], 64, [%r3];
mul.lo.u32 %r5, %r1, %r1; mad.wide.u32 %d3, %r5, 64, %d1; setp.lt.u32 %q, %r1, 4;
@%q COPY [%r4], [%d3], 32, [%r3];
ret; }""".replace("COPY", "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes")


def test_copies_of_several_lanes():
    case = text_case(LANES, (1,), (32,), [pointer("a")], [Buffer("a", "u8", 16384)])
    _, trace = check_against_interpreter(case)
    start = next(r.start for r in trace.ranges if r.name == "a")
    expected = [Box(start, 64, ((32, 256),)), None, Box(start, 128)]
    of_memory = trace.access_space != SYNC_SPACE
    assert trace.access_base[of_memory].tolist() == [start, 0, start]
    for box, p in zip(expected, trace.access_pattern[of_memory], strict=True):
        assert trace.pattern_mask[p] == (MASK if box else 0)
        words = trace.pattern_offset[p].copy()
        told = int(words[SIGNAL]), int(words[SIGNALLED])
        assert told == ((4096 + 1, box.bytes) if box else (0, 0))  # the mbarrier stands behind the 4 KiB
        words[[SIGNAL, SIGNALLED]] = 0
        assert tuple(words.tolist()) == (box.words() if box else (0,) * 32)
    assert [n for n in sectors(lowered(case, trace), KIND_LOAD) if n] == [64, 4]


def test_which_copies_are_recorded():
    bulk = [i for i in MODULE.kernels["rounds"].instructions if "bulk" in i.modifiers]
    assert [is_traced(i) for i in bulk] == [True, True, True, False, False]
    assert all(access_bytes(i) == 0 for i in bulk)
    text = LANES.replace("global.mbarrier", "shared::cta.mbarrier").replace("%d2]", "%r4]").replace("%d3]", "%r4]")
    case = text_case(text, (1,), (32,), [pointer("a")], [Buffer("a", "u8", 16384)])
    assert not any(is_traced(i) for i in case.kernel.instructions if i.base != "mbarrier")


def test_trace_files_hold_boxes(traced):
    case, trace = traced
    launch, kernel = case.launch, case.kernel
    head = (0, kernel.name, launch.grid, launch.threads_per_block, len(kernel.instructions), "identity", True)
    (back,) = read_traces(write_traces([Record(*head, trace)]), "x")
    assert np.array_equal(back.content.pattern_offset, trace.pattern_offset)
    offset = trace.pattern_offset.copy()
    offset[are_boxes(offset, trace.pattern_mask), 2] = 1 << 30
    with pytest.raises(PptError, match="a bulk copy of no possible size"):
        read_traces(write_traces([Record(*head, replace(trace, pattern_offset=offset))]), "x")


def outside():
    """A box that lies beside its tensor: only zeros come."""
    tensor = parse_argument("tensormap(in, dims=100x64, box=32x8, type=u16, strides=208)", 0)[0]
    buffers = [Buffer("in", "u16", 64 * 104), Buffer("seen", "u16", 256)]
    arguments = [tensor, tensor, pointer("seen"), *(integer(value) for value in (200, 0, 0, 0))]
    return Case(MODULE, "boxes", (1,), (32,), arguments, buffers)


def test_a_copy_that_moves_nothing_tells_its_mbarrier():
    """PTX ISA: complete_tx counts the bytes of the box, also those that are filled with zeros."""
    case = outside()
    _, trace = check_against_interpreter(case)
    (told,) = trace.pattern_offset[are_empty_boxes(trace.pattern_offset, trace.pattern_mask)]
    assert told[SIGNALLED] == 512
    program = lowered(case, trace)
    assert not program.unheard
    assert program.event_count.max() == 2  # the arrival, and the copy
    assert sum(sectors(program, KIND_LOAD)) == 0
    loads = np.flatnonzero(program.op_copies)
    assert (events_of(program)[loads] == EVENT_COUNTS | EVENT_LATE).all()
    assert simulate(program, GPU, resident_blocks=1, active_sms=1).cycles < GPU.dram.latency + 1000


def test_trace_files_hold_copies_that_move_nothing():
    case = outside()
    _, trace = check_against_interpreter(case)
    head = (0, case.kernel.name, case.launch.grid, 32, len(case.kernel.instructions), "identity", True)
    (back,) = read_traces(write_traces([Record(*head, trace)]), "x")
    assert np.array_equal(back.content.pattern_offset, trace.pattern_offset)
    offset = trace.pattern_offset.copy()
    offset[are_empty_boxes(offset, trace.pattern_mask), 3] = 16
    with pytest.raises(PptError, match="an inactive lane with an address"):
        read_traces(write_traces([Record(*head, replace(trace, pattern_offset=offset))]), "x")


def test_lanes_that_copy_nothing_beside_one_that_does():
    told = Box(0, 0, (), (64, 512))
    assert together([told, Box(1024, 256, (), (64, 256))]) == Box(1024, 256, (), (64, 768))
    assert together([told, told]) == Box(0, 0, (), (64, 1024))


def test_task_lists_state_the_traffic():
    case = text_case(LANES, (1,), (32,), [pointer("a")], [Buffer("a", "u8", 16384)])
    _, trace = case.run()
    found = translate(case.kernel, case.module, trace, case.launch)
    counts = [task.memory.pattern.count for task in found.body if task.op == "load.global"]
    assert counts == [64, 4]  # nothing for what no lane does
