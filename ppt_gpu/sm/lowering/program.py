"""The last step of lowering, the same for traces and task lists: from its parts to the Program."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.memory.memory import LOCAL_WINDOW, WINDOW_BYTES
from ppt_gpu.sm.accesses.access import Accesses, Geometry
from ppt_gpu.sm.accesses.scoreboard import Schedule
from ppt_gpu.sm.accesses.sharing import BITS, Users, sectors_used, share_factor
from ppt_gpu.sm.l2_sharing.in_flight import ByOthers
from ppt_gpu.sm.program.ops import OpTable
from ppt_gpu.sm.program.program import COLD, KIND_STORE, RECORDED, WARM, Program


def assemble(
    ops: OpTable,
    plan: Schedule,
    shape: Geometry,
    found: Accesses,
    *,
    line: NDArray[np.int32],
    address: NDArray[np.uint64],
    copied: NDArray[np.bool_],
    users: Users,
    shared: ByOthers | None = None,
    kept: NDArray[np.bool_] | None = None,
    warp_path: NDArray[np.int32],
    warp_access: NDArray[np.int64],
    warps_per_block: int,
    thread_instructions: int,
    l2_found: float = 0.0,
    l2_dirty: float = 0.0,
    l2_dirty_lines: int = 0,
    l2_dirty_most: int = 0,
    l2_made_dirty: float = 0.0,
    l2_lost_dirty: float = 0.0,
    l2_camping: float = 1.0,
    l2_reads: float = 1.0,
    l2_in_part: float = 0.0,
    dram_rows: float = 1.0,
    atomic_share: float = 1.0,
) -> Program:
    """line [T]: line ids of the transactions; address, copied [L] and users: of the lines; shared: those that
    others fetch, kept: keep; the rest as in Program."""
    blocks = len(warp_path) // warps_per_block
    return Program(
        op_name=ops.name,
        op_pipe=ops.pipe,
        op_latency=ops.latency,
        op_ii=ops.ii,
        op_kind=ops.kind,
        op_pc=ops.pc,
        op_class=ops.task_class,
        op_operands=ops.operands,
        path_start=plan.path_start,
        entry_op=plan.entry_op,
        entry_wait=plan.entry_wait,
        entry_slot=plan.entry_slot,
        warp_path=warp_path,
        warp_access=warp_access,
        block_warp=np.arange(blocks + 1, dtype=np.int64) * warps_per_block,
        access_start=found.start,
        access_cycles=found.cycles,
        tx_line=line,
        tx_sectors=found.sectors,
        line_address=address,
        line_warm=_warm(copied, shared),
        line_coming=np.zeros(0, np.uint8) if shared is None else np.where(copied, np.uint8(0), shared.coming),
        line_kept=np.zeros(0, np.bool_) if kept is None or not kept.any() else kept,
        thread_instructions=thread_instructions,
        access_atomic=found.atomic,
        l2_share_factor=share_factor(users.line),
        l2_camping=l2_camping,
        l2_reads=l2_reads,
        l2_in_part=l2_in_part,
        dram_rows=dram_rows,
        atomic_share=atomic_share,
        line_bytes=shape.line,
        sector_bytes=shape.sector,
        l2_found=l2_found,
        l2_dirty=l2_dirty,
        l2_dirty_lines=l2_dirty_lines,
        l2_dirty_most=l2_dirty_most,
        l2_made_dirty=l2_made_dirty,
        l2_lost_dirty=l2_lost_dirty,
        l2_writers=_writers(ops, plan, found, line, address, users, warp_path),
    )


def _writers(
    ops: OpTable,
    plan: Schedule,
    found: Accesses,
    line: NDArray[np.int32],
    address: NDArray[np.uint64],
    users: Users,
    warp_path: NDArray[np.int32],
) -> float:
    """`Program.l2_writers`: users of a line that this SM only writes are taken for writers; else it is the only one."""
    stores = np.flatnonzero(ops.kind == KIND_STORE)
    if not np.any(users.sectors > 1.0) or not np.isin(plan.entry_op, stores).any():
        return 1.0
    recorded = np.isin(ops.kind, RECORDED)[plan.entry_op]
    of_path = [
        (ops.kind[plan.entry_op[begin:end]] == KIND_STORE)[recorded[begin:end]]
        for begin, end in pairwise(plan.path_start)
    ]
    stored = np.repeat(np.concatenate([of_path[path] for path in warp_path.tolist()]), np.diff(found.start))
    here = line >= 0
    own = (address >= LOCAL_WINDOW) & (address < LOCAL_WINDOW + WINDOW_BYTES)
    own[line[here & ~stored]] = True
    count = BITS[sectors_used(line[here & stored], found.sectors[here & stored], len(own))]
    return float(count.sum() / (count / np.where(own, 1.0, users.sectors)).sum()) if count.any() else 1.0


def _warm(copied: NDArray[np.bool_], shared: ByOthers | None) -> NDArray[np.uint8]:
    """[L] the sectors that are in the L2 when this SM first asks for them."""
    found = np.full(len(copied), COLD, np.uint8) if shared is None else shared.fetched.copy()
    found[copied] = WARM
    return found
