"""What simulated blocks ask of one SM: the few numbers of a Program that bounds and reports are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.sm.program.machine import write_factor
from ppt_gpu.sm.program.program import KIND_ATOMIC, Program
from ppt_gpu.spec.gpu import Gpu


@dataclass(frozen=True)
class Work:
    """Of B blocks and O static operations."""

    blocks: int
    warps: int
    op_pipe: NDArray[np.int64]  # [O] pipe index
    op_latency: NDArray[np.int64]  # [O] cycles
    op_ii: NDArray[np.int64]  # [O] cycles
    op_pc: NDArray[np.int64]  # [O] source instruction
    load_store_cycles: float  # of all memory entries in the load/store unit
    transactions: int
    atomic_updates: float  # one after another, of the same address, with those of other SMs that meet them
    cold_bytes: float  # of lines that the first half of the blocks touched first beyond what the second half did
    mean_chain: float  # cycles of the longest chain of a block's warps, mean over blocks
    longest_chain: float
    thread_instructions: int
    sector_bytes: int
    l2_write_passes: float  # times as long as for a sector that is read that the L2 takes for one that is written
    l2_reads: float  # Program.l2_reads
    l2_camping: float  # Program.l2_camping


def work_of(program: Program, gpu: Gpu) -> Work:
    """The work of all blocks of `program`, lowered for `gpu`."""
    transactions = np.diff(program.access_start)
    in_unit = transactions / gpu.memory.transactions_per_cycle
    np.maximum(program.access_cycles, in_unit, out=in_unit)
    chains = _block_chains(program, gpu)
    blocks = len(program.block_warp) - 1
    return Work(
        blocks=blocks,
        warps=len(program.warp_path),
        op_pipe=program.op_pipe.astype(np.int64),
        op_latency=program.op_latency.astype(np.int64),
        op_ii=program.op_ii.astype(np.int64),
        op_pc=program.op_pc.astype(np.int64),
        load_store_cycles=float(in_unit.sum()),
        transactions=int(program.access_start[-1] - program.access_start[0]),
        atomic_updates=float(_atomic_updates(program).sum()) * program.atomic_share,
        cold_bytes=cold_excess(program, blocks),
        mean_chain=float(chains.sum()) / max(blocks, 1),
        longest_chain=float(chains.max()),
        thread_instructions=int(program.thread_instructions),
        sector_bytes=program.sector_bytes,
        l2_write_passes=gpu.l2.partitions * write_factor(program, gpu),
        l2_reads=program.l2_reads,
        l2_camping=program.l2_camping,
    )


def _atomic_updates(program: Program) -> NDArray[np.int64]:
    """[atomic entries with transactions] serialised updates of each."""
    from ppt_gpu.bounds.least_latency import entry_ops

    if KIND_ATOMIC not in program.op_kind:
        return np.zeros(0, np.int64)
    chosen = (program.op_kind[entry_ops(program)] == KIND_ATOMIC) & (np.diff(program.access_start) > 0)
    if len(program.access_atomic):
        return program.access_atomic[chosen].astype(np.int64)
    return np.ones(int(chosen.sum()), np.int64)


def cold_excess(program: Program, blocks: int) -> float:
    """Bytes of lines that the first half of the blocks touched first beyond what the second half did.

    Streaming blocks touch new lines all the time: 0. A table that all blocks read is new only once.
    """
    lines = program.tx_line
    known = np.flatnonzero(lines >= 0)
    if not len(known):
        return 0.0
    touched = lines[known]
    first = np.full(len(program.line_address), -1, np.int64)
    first[touched[::-1]] = known[::-1]  # written backwards: the first touch stays
    # Transactions of a block are contiguous: block -> warp -> access -> transaction.
    edges = program.access_start[program.warp_access[program.block_warp]]
    half = blocks // 2
    begin, middle, rest, end = edges[[0, half, blocks - half, blocks]]
    early, late = (int(((first >= a) & (first < b)).sum()) for a, b in ((begin, middle), (rest, end)))
    return float(max(early - late, 0) * program.line_bytes)


def _block_chains(program: Program, gpu: Gpu) -> NDArray[np.int64]:
    """[blocks with warps] cycles of the longest chain of each block's warps; [0] when there are none."""
    from ppt_gpu.bounds.least_latency import least_latencies, next_entry_holds
    from ppt_gpu.bounds.warp_chain import warp_spans

    spans = warp_spans(program, least_latencies(program, gpu), next_entry_holds(program), gpu.sm.issue_width)
    starts = program.block_warp[:-1][np.diff(program.block_warp) > 0]
    return np.maximum.reduceat(spans[program.warp_path], starts) if len(starts) else np.zeros(1, np.int64)
