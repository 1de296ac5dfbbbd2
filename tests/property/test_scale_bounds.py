"""No simulation is faster than a bound: random programs on GPUs of four generations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator

from ppt_gpu.bounds.bounds import bounds
from ppt_gpu.bounds.work import work_of
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.sm.program.ops import build_ops
from ppt_gpu.sm.program.program import (
    FORCED_DRAM,
    FORCED_L1,
    FORCED_L2,
    KIND_ATOMIC,
    KIND_LOAD,
    KIND_SHARED,
    KIND_STORE,
    Program,
)
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu

GPUS = {name: load_gpu(name) for name in ("gtx480", "k40", "v100", "a100")}
OPS = (
    "fp32.fma", "fp64.fma", "int32", "sfu", "branch", "barrier", "shuffle", "load.global", "store.global",
    "atomic.global", "load.local", "load.shared", "store.shared", "load.constant",
)  # fmt: skip
#: server times are kept in 1/65536 cycle
ROUNDING = 1e-4


def random_program(gpu: Gpu, random: Generator, blocks: int, warps: int, length: int) -> Program:
    """All warps of a block run one of two paths; memory operations touch random sectors of few lines."""
    ops = build_ops([[name] for name in random.choice(OPS, 5)], gpu)
    value, memory = ops.value, ops.recorded
    entry_op, entry_wait, entry_slot, path_start = [], [], [], [0]
    for _ in range(2):
        pending: list[int] = []
        for _ in range(length):
            op = int(random.integers(len(ops.name)))
            waits = [slot for slot in pending if random.random() < 0.3]
            pending = [slot for slot in pending if slot not in waits]
            slot = -1
            if value[op] and len(pending) < 60 and random.random() < 0.7:
                slot = next(s for s in range(64) if s not in pending)
                pending.append(slot)
            entry_op.append(op)
            entry_wait.append(sum(1 << s for s in waits))
            entry_slot.append(slot)
        path_start.append(len(entry_op))
    warp_path = np.repeat(random.integers(2, size=blocks), warps)
    per_path = [[op for op in entry_op[path_start[p] : path_start[p + 1]] if memory[op]] for p in range(2)]
    executed = [op for path in warp_path for op in per_path[path]]
    shared = np.array([ops.kind[op] == KIND_SHARED for op in executed], bool)
    counts = np.where(shared, 0, random.integers(0, 9, len(executed)))
    start = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    lines = 40
    line = random.integers(0, lines, start[-1])
    forced = random.random(start[-1]) < 0.2
    line[forced] = random.choice([FORCED_L1, FORCED_L2, FORCED_DRAM], int(forced.sum()))
    return Program(
        op_name=ops.name, op_pipe=ops.pipe, op_latency=ops.latency, op_ii=ops.ii, op_kind=ops.kind, op_pc=ops.pc,
        op_class=ops.task_class,
        path_start=np.array(path_start, np.int64),
        entry_op=np.array(entry_op, np.int32),
        entry_wait=np.array(entry_wait, np.uint64),
        entry_slot=np.array(entry_slot, np.int8),
        warp_path=warp_path.astype(np.int32),
        warp_access=np.concatenate(([0], np.cumsum([len(per_path[path]) for path in warp_path]))).astype(np.int64),
        block_warp=np.arange(blocks + 1, dtype=np.int64) * warps,
        access_start=start,
        access_cycles=np.where(shared, random.integers(1, 33, len(executed)), np.maximum(counts, 1)).astype(np.int32),
        tx_line=line.astype(np.int32),
        tx_sectors=random.integers(1, 16, start[-1]).astype(np.uint8),
        line_address=np.arange(lines, dtype=np.uint64) * np.uint64(128),
        line_warm=random.integers(0, 2, lines).astype(np.uint8),
        access_atomic=random.integers(1, 33, len(executed)).astype(np.int32),
    )  # fmt: skip


@given(
    name=st.sampled_from(sorted(GPUS)),
    policy=st.sampled_from(["lrr", "gto"]),
    seed=st.integers(0, 10**6),
    blocks=st.integers(1, 6),
    warps=st.integers(1, 8),
    length=st.integers(1, 60),
    resident=st.integers(1, 4),
    perfect=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_no_simulation_beats_a_bound(
    name: str, policy: str, seed: int, blocks: int, warps: int, length: int, resident: int, perfect: bool
) -> None:
    gpu = replace(GPUS[name], perfect_memory=perfect)
    program = random_program(gpu, np.random.default_rng(seed), blocks, warps, length)
    sms = 1 + seed % gpu.sm.count
    result = simulate(program, gpu, resident_blocks=resident, active_sms=sms, policy=policy)
    for bound in bounds(work_of(program, gpu), result, gpu, resident=resident, active_sms=sms):
        assert bound.cycles <= result.cycles * (1 + ROUNDING), bound


def test_kinds_of_the_random_programs() -> None:
    """The generator makes every kind of memory operation, or the property above would say little."""
    seen = set()
    for seed in range(20):
        program = random_program(GPUS["v100"], np.random.default_rng(seed), 1, 1, 30)
        seen |= set(program.op_kind[program.entry_op].tolist())
    assert seen >= {KIND_LOAD, KIND_STORE, KIND_ATOMIC, KIND_SHARED}
