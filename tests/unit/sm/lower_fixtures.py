"""A small GPU, PTX instructions and traces made by hand: no other stage is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.ptx.module import Guard, Instruction, Kernel, Register
from ppt_gpu.spec.gpu import (
    TASK_CLASSES,
    Dram,
    Gpu,
    Host,
    Interconnect,
    Isa,
    L1Cache,
    L2Cache,
    MemoryPipe,
    Op,
    Pipe,
    SharedMemory,
    Sm,
)
from ppt_gpu.workload.workload import Launch, Range

LATENCY = {"fp32": 4, "int32": 5, "sfu": 20, "branch": 8, "fence": 30}


def make_gpu(
    *,
    coalescing: str = "sector",
    capability: tuple[int, int] = (7, 0),
    issue_width: int = 1,
    banks: int = 32,
    bank_width: int = 4,
    transactions_per_cycle: float = 1.0,
    expand: Mapping[str, tuple[str, ...]] | None = None,
    l2_size: int = 1 << 20,
    l1_size: int = 1 << 15,
    drop: Sequence[str] = (),
) -> Gpu:
    ops = {
        name: Op(name, "lsu" if "." in name else ("sfu" if name == "sfu" else "alu"), LATENCY.get(name, 6), 1)
        for name in TASK_CLASSES
        if name not in drop
    }
    cache = L1Cache(l1_size, 128, 32, 4, 30, 128.0, 64, 8, "write-through", False, "lru", "linear")
    return Gpu(
        name="toy",
        chip="T0",
        compute_capability=capability,
        sm=Sm(8, 1e9, 4, issue_width, "gto", 64, 16, 1024, 65536, 256, "warp", 255, 4),
        pipes={n: Pipe(n, 32, "scheduler", 1, 1) for n in ("lsu", "alu", "sfu")},
        isa=Isa("sm_70", ops, expand or {}),
        shared=SharedMemory(49152, 49152, 256, 0, banks, bank_width, 24),
        l1=cache,
        l2=L2Cache(l2_size, 128, 32, 16, 200, 512.0, 512, 8, "write-back", True, "lru", "hash"),
        dram=Dram(1 << 30, 1e11, 0.9, 400),
        interconnect=Interconnect(64.0),
        memory=MemoryPipe(coalescing, 8, transactions_per_cycle, 28),
        host=Host(5e-6, 100, 1e10, 5e9, 1e-5),
    )


def code(*rows: tuple[str, Sequence[int], Sequence[int]] | tuple[str, Sequence[int], Sequence[int], int]) -> Kernel:
    """A kernel from (opcode, registers written, registers read[, guard register])."""
    instructions, top = [], -1
    for index, (opcode, writes, reads, *guard) in enumerate(rows):
        known = (*reads, *guard)
        top = max((top, *writes, *known))
        instructions.append(
            Instruction(index, opcode, (), Guard(guard[0], False) if guard else None, known, tuple(writes), index, 1)
        )
    registers = tuple(Register(f"%r{i}", "b32", 0) for i in range(top + 1))
    return Kernel("k", (), registers, (), tuple(instructions), {})


Access = tuple[int, Sequence[int | None], int]  # base, 32 offsets (None: inactive lane), space


def make_trace(
    kernel: Kernel,
    warps: Sequence[tuple[Sequence[int], Sequence[Access]]],
    *,
    per_block: int = 1,
    blocks: Sequence[int] | None = None,
    ranges: tuple[Range, ...] = (),
) -> Trace:
    """A trace from (instruction indices, accesses) of each warp."""
    paths: dict[tuple[int, ...], int] = {}
    patterns: dict[tuple[int | None, ...], int] = {}
    bases, which, space, counts, warp_path = [], [], [], [0], []
    for pcs, accesses in warps:
        warp_path.append(paths.setdefault(tuple(pcs), len(paths)))
        for base, offsets, where in accesses:
            bases.append(base)
            which.append(patterns.setdefault(tuple(offsets), len(patterns)))
            space.append(where)
        counts.append(len(bases))
    ids = np.arange(len(warps) // per_block) if blocks is None else np.array(blocks)
    number = len(kernel.instructions)
    executed = np.zeros(number, np.int64)
    for pcs, _ in warps:
        np.add.at(executed, np.array(pcs, np.int64), 1)
    return Trace(
        blocks=ids.astype(np.int64),
        path_start=np.cumsum([0, *map(len, paths)], dtype=np.int64),
        path_pc=np.array([pc for path in paths for pc in path], np.int32),
        warp_path=np.array(warp_path, np.int32),
        warp_block=(np.arange(len(warps)) // per_block).astype(np.int32),
        warp_threads=np.array([32 * len(pcs) for pcs, _ in warps], np.int64),
        access_start=np.array(counts, np.int64),
        access_base=np.array(bases, np.uint64),
        access_pattern=np.array(which, np.int32),
        access_space=np.array(space, np.uint8),
        pattern_offset=np.array([[o or 0 for o in p] for p in patterns], np.int64).reshape(-1, 32),
        pattern_mask=np.array([sum(1 << i for i, o in enumerate(p) if o is not None) for p in patterns], np.uint32),
        pc_executed=executed,
        pc_threads=executed * 32,
        ranges=ranges,
    )


def make_launch(threads: int, blocks: int) -> Launch:
    return Launch("k", (blocks, 1, 1), (threads, 1, 1), ())


UNIT = tuple(range(0, 128, 4))  # 32 lanes, 4 B apart
