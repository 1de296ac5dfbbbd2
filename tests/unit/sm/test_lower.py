"""Lowering of traces made by hand: every array of the Program, and the errors."""

from __future__ import annotations

import numpy as np
import pytest
from lower_fixtures import UNIT, code, make_gpu, make_launch, make_trace

from ppt_gpu.common.errors import PptError
from ppt_gpu.sm.lowering.lower import lower_trace, pipe_order
from ppt_gpu.sm.program.program import (
    KIND_ATOMIC,
    KIND_BARRIER,
    KIND_BRANCH,
    KIND_COMPUTE,
    KIND_CONSTANT,
    KIND_LOAD,
    KIND_SHARED,
    KIND_STORE,
    Program,
)
from ppt_gpu.spec.gpu import TASK_CLASSES, Gpu
from ppt_gpu.workload.workload import Range

SAXPY = code(
    ("ld.param.u64", [0], []),
    ("mov.u32", [1], []),
    ("ld.global.f32", [2], [0, 1]),
    ("fma.rn.f32", [3], [2, 2, 3]),
    ("st.global.f32", [], [0, 3]),
    ("ret", [], []),
)
WHOLE = [0, 1, 2, 3, 4, 5]
GLOBAL, SHARED, LOCAL = 0, 1, 2
NOBODY = (None,) * 32


def saxpy(gpu: Gpu, shift: int = 64, **keywords: object) -> Program:
    """Two warps of one block; the second one's addresses lie `shift` and 128 bytes further."""
    trace = make_trace(
        SAXPY,
        [(WHOLE, [(4096, UNIT, 0), (8192, UNIT, 0)]), (WHOLE, [(4096 + shift, UNIT, 0), (8192 + 128, UNIT, 0)])],
        per_block=2,
        ranges=(Range("x", 4096, 128, True), Range("y", 8192, 256, False)),
    )
    return lower_trace(SAXPY, trace, gpu, launch=make_launch(64, 1), active_sms=4, **keywords)  # type: ignore[arg-type]


def test_operations() -> None:
    gpu = make_gpu()
    program = saxpy(gpu)
    assert program.op_name == (
        "load.constant", "int32.mov", "load.global", "fp32.fma", "store.global", "branch.ret",
    )  # fmt: skip
    kinds = [KIND_CONSTANT, KIND_COMPUTE, KIND_LOAD, KIND_COMPUTE, KIND_STORE, KIND_BRANCH]
    assert program.op_kind.tolist() == kinds
    pipes = [pipe_order(gpu)[i] for i in program.op_pipe]
    assert pipes == ["lsu", "alu", "lsu", "alu", "lsu", "alu"]
    assert program.op_latency[3] == gpu.isa.op("fp32.fma").latency
    assert program.op_latency[0] == gpu.memory.constant_latency
    assert [TASK_CLASSES[c] for c in program.op_class] == [
        "load.constant", "int32", "load.global", "fp32", "store.global", "branch",
    ]  # fmt: skip
    assert program.op_pc.tolist() == WHOLE


def test_stream_and_warps() -> None:
    program = saxpy(make_gpu())
    assert program.path_start.tolist() == [0, 6]
    assert program.warp_path.tolist() == [0, 0]
    assert program.block_warp.tolist() == [0, 2]
    assert program.warp_access.tolist() == [0, 2, 4]
    assert program.thread_instructions == 2 * 6 * 32
    # param and mov feed the load; the load the fma; the fma the store; store and ret feed nobody
    assert [int(w) for w in program.entry_wait] == [0, 0, 0b11, 0b1, 0b1, 0]
    assert program.entry_slot.tolist() == [0, 1, 0, 0, -1, -1]


def test_transactions_and_lines() -> None:
    program = saxpy(make_gpu())
    assert program.access_start.tolist() == [0, 1, 2, 4, 5]
    assert program.access_cycles.tolist() == [1, 1, 2, 1]
    assert program.line_address[program.tx_line].tolist() == [4096, 8192, 4096, 4096 + 128, 8192 + 128]
    assert program.tx_sectors.tolist() == [15, 15, 0b1100, 0b0011, 15]
    assert len(set(program.line_address.tolist())) == len(program.line_address)
    assert (program.line_bytes, program.sector_bytes) == (128, 32)


def test_lookups_take_the_front_end_s_time() -> None:
    assert saxpy(make_gpu(transactions_per_cycle=0.5)).access_cycles.tolist() == [2, 2, 4, 2]
    assert saxpy(make_gpu(transactions_per_cycle=4.0)).access_cycles.tolist() == [1, 1, 1, 1]


def test_fermi_loads_whole_lines_and_stores_sectors() -> None:
    program = saxpy(make_gpu(coalescing="line", capability=(2, 0)))
    assert program.tx_sectors.tolist() == [15, 15, 15, 15, 15]
    kernel = code(("ld.global.f32", [0], [1]), ("st.global.f32", [], [0, 1]))
    one = (0, *NOBODY[1:])
    trace = make_trace(kernel, [([0, 1], [(4096, one, 0), (4096, one, 0)])])
    gpu = make_gpu(coalescing="line", capability=(2, 0))
    assert lower_trace(kernel, trace, gpu, launch=make_launch(32, 1), active_sms=1).tx_sectors.tolist() == [15, 1]
    gpu = make_gpu(coalescing="line", capability=(2, 0), l1_size=0)
    assert lower_trace(kernel, trace, gpu, launch=make_launch(32, 1), active_sms=1).tx_sectors.tolist() == [1, 1]


def test_free_instructions_hand_their_sources_on() -> None:
    kernel = code(
        ("ld.global.f32", [0], [9]),
        ("cvta.to.global.u64", [1], [0]),
        ("cvta.to.global.u64", [2], [1]),
        ("add.f32", [3], [2, 2]),
        ("add.f32", [4], [0, 3]),
    )
    trace = make_trace(kernel, [([0, 1, 2, 3, 4], [(0, UNIT, 0)])])
    gpu = make_gpu(expand={"cvta": ()})
    program = lower_trace(kernel, trace, gpu, launch=make_launch(32, 1), active_sms=1)
    assert program.op_pc.tolist() == [0, 3, 4]
    assert [int(w) for w in program.entry_wait] == [0, 1, 1]  # the last waits for the add only: the load is done


def test_an_instruction_becomes_a_chain() -> None:
    kernel = code(("div.rn.f32", [1], [0, 0]), ("add.f32", [2], [1, 1]))
    gpu = make_gpu(expand={"div.rn": ("sfu", "fp32.fma", "fp32.fma")})
    program = lower_trace(kernel, make_trace(kernel, [([0, 1], [])]), gpu, launch=make_launch(32, 1), active_sms=1)
    assert program.op_name == ("sfu", "fp32.fma", "fp32.fma", "fp32.add")
    assert program.op_pc.tolist() == [0, 0, 0, 1]
    assert [int(w) for w in program.entry_wait] == [0, 1, 1, 1]
    assert program.entry_slot.tolist() == [0, 0, 0, -1]


@pytest.mark.parametrize(("width", "waits"), [(1, 0), (2, 1)])
def test_edges_that_cannot_bind_go(width: int, waits: int) -> None:
    """The fourth instruction after a 4-cycle producer issues 4 cycles later, or 2 with dual issue."""
    kernel = code(*(("add.f32", [i], []) for i in range(4)), ("add.f32", [4], [0]))
    gpu = make_gpu(issue_width=width)
    program = lower_trace(
        kernel, make_trace(kernel, [([0, 1, 2, 3, 4], [])]), gpu, launch=make_launch(32, 1), active_sms=1
    )
    assert int(program.entry_wait[4]) == waits


def test_guards_are_read_and_do_not_hide_earlier_writers() -> None:
    kernel = code(
        ("ld.global.f32", [0], [8]),
        ("setp.lt.f32", [7], [8]),
        ("ld.global.f32", [0], [8], 7),
        ("add.f32", [1], [0]),
    )
    trace = make_trace(kernel, [([0, 1, 2, 3], [(0, UNIT, 0), (128, UNIT, 0)])])
    program = lower_trace(kernel, trace, make_gpu(), launch=make_launch(32, 1), active_sms=1)
    assert [int(w) for w in program.entry_wait] == [0, 0, 0b10, 0b11]


def test_barriers_of_the_block_only() -> None:
    kernel = code(("bar.sync", [], []), ("bar.warp.sync", [], []), ("membar.gl", [], []), ("mov.u32", [0], []))
    trace = make_trace(kernel, [([0, 1, 2, 3], [])])
    program = lower_trace(kernel, trace, make_gpu(), launch=make_launch(32, 1), active_sms=1)
    assert program.op_kind.tolist() == [KIND_BARRIER, KIND_COMPUTE, KIND_COMPUTE, KIND_COMPUTE]
    assert [int(w) for w in program.entry_wait] == [0, 0, 0, 1]  # what follows a fence waits for it


def test_shared_local_and_atomics() -> None:
    kernel = code(
        ("ld.shared.f32", [0], [9]),
        ("st.shared.f32", [], [0, 9]),
        ("atom.shared.add.u32", [1], [9, 9]),
        ("red.global.add.u32", [], [9, 9]),
        ("ld.local.f32", [2], [9]),
        ("ld.global.f32", [3], [9]),
    )
    two = (0, 128) * 16
    trace = make_trace(
        kernel,
        [(
            [0, 1, 2, 3, 4, 5],
            [(0, two, SHARED), (0, UNIT, SHARED), (0, two, SHARED), (256, (0,) * 32, GLOBAL), (1 << 40, UNIT, LOCAL),
             (512, NOBODY, GLOBAL)],
        )],
    )  # fmt: skip
    program = lower_trace(kernel, trace, make_gpu(), launch=make_launch(32, 1), active_sms=1)
    assert program.op_kind.tolist() == [KIND_SHARED] * 3 + [KIND_ATOMIC, KIND_LOAD, KIND_LOAD]
    assert program.access_cycles.tolist() == [2, 1, 32, 1, 1, 1]
    assert program.access_atomic.tolist() == [1, 1, 16, 32, 1, 1]
    assert np.diff(program.access_start).tolist() == [0, 0, 0, 1, 1, 0]
    assert program.op_latency[0] == make_gpu().shared.latency
    assert program.entry_slot[1] == -1  # a store to shared memory announces nothing


def test_generic_accesses_are_where_the_run_saw_them() -> None:
    kernel = code(("ld.f32", [0], [9]), ("st.f32", [], [0, 9]), ("ld.f32", [1], [9]), ("ret", [], []))
    trace = make_trace(
        kernel,
        [
            ([0, 1, 3], [(0, UNIT, SHARED), (4096, UNIT, GLOBAL)]),
            ([0, 1, 3], [(0, UNIT, SHARED), (0, UNIT, SHARED)]),
        ],
    )
    program = lower_trace(kernel, trace, make_gpu(), launch=make_launch(32, 2), active_sms=1)
    assert program.op_name[:3] == ("load.shared", "store.global", "load.global")
    assert np.diff(program.access_start).tolist() == [0, 1, 0, 0]


def test_an_instruction_with_two_memory_operations_repeats_its_access() -> None:
    kernel = code(("atom.shared.add.f32", [0], [9, 9]), ("ld.shared.f32", [1], [9]))
    gpu = make_gpu(expand={"atom.shared": ("load.shared", "fp32.add", "store.shared")})
    trace = make_trace(kernel, [([0, 1], [(0, (0, 128) * 16, SHARED), (0, UNIT, SHARED)])] * 2)
    program = lower_trace(kernel, trace, gpu, launch=make_launch(32, 2), active_sms=1)
    assert program.warp_access.tolist() == [0, 3, 6]
    assert program.access_cycles.tolist() == [32, 32, 1] * 2


def test_loops_and_several_paths() -> None:
    long, short = [0, 1, 2, 3, 2, 3, 4, 5], [0, 1, 5]
    warps = [
        (short, []),
        (long, [(4096, UNIT, 0), (4224, UNIT, 0), (8192, UNIT, 0)]),
        (short, []),
    ]
    trace = make_trace(SAXPY, warps)
    program = lower_trace(SAXPY, trace, make_gpu(), launch=make_launch(32, 3), active_sms=1)
    assert program.path_start.tolist() == [0, 3, 11]
    assert program.entry_op.tolist() == short + long
    assert program.warp_access.tolist() == [0, 0, 3, 3]
    assert program.line_address[program.tx_line].tolist() == [4096, 4224, 8192]


def test_no_memory_at_all() -> None:
    kernel = code(("mov.u32", [0], []), ("ret", [], []))
    program = lower_trace(
        kernel, make_trace(kernel, [([0, 1], [])]), make_gpu(), launch=make_launch(32, 1), active_sms=8
    )
    assert len(program.tx_line) == len(program.line_address) == 0
    assert program.l2_share_factor == 1.0


def test_same_input_same_arrays() -> None:
    one, two = saxpy(make_gpu()), saxpy(make_gpu())
    for name, value in vars(one).items():
        assert np.array_equal(value, getattr(two, name)), name


def test_missing_timing_is_an_error() -> None:
    with pytest.raises(PptError, match=r"no timing for operation 'fp32\.fma' in ISA sm_70"):
        saxpy(make_gpu(drop=["fp32"]))


def test_a_trace_of_another_launch_is_an_error() -> None:
    trace = make_trace(SAXPY, [(WHOLE, [(0, UNIT, 0), (0, UNIT, 0)])])
    with pytest.raises(PptError, match="1 warps, not 2 in each of 1 blocks"):
        lower_trace(SAXPY, trace, make_gpu(), launch=make_launch(64, 1), active_sms=1)


def test_a_trace_of_another_kernel_is_an_error() -> None:
    trace = make_trace(SAXPY, [(WHOLE, [(0, UNIT, 0)])])
    with pytest.raises(PptError, match="warp 0 of the trace has 1 memory accesses, its path 2"):
        lower_trace(SAXPY, trace, make_gpu(), launch=make_launch(32, 1), active_sms=1)
