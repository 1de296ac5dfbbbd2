"""The last step of lowering, the same for traces and task lists: from its parts to the Program."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.sm.in_flight import ByOthers
from ppt_gpu.sm.lower_access import Accesses, Geometry
from ppt_gpu.sm.lower_ops import OpTable
from ppt_gpu.sm.program import COLD, WARM, Program
from ppt_gpu.sm.scoreboard import Schedule
from ppt_gpu.sm.sharing import Users, share_factor


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
        atomic_share=atomic_share,
        line_bytes=shape.line,
        sector_bytes=shape.sector,
        l2_found=l2_found,
        l2_dirty=l2_dirty,
        l2_dirty_lines=l2_dirty_lines,
        l2_dirty_most=l2_dirty_most,
        l2_made_dirty=l2_made_dirty,
        l2_lost_dirty=l2_lost_dirty,
    )


def _warm(copied: NDArray[np.bool_], shared: ByOthers | None) -> NDArray[np.uint8]:
    """[L] the sectors that are in the L2 when this SM first asks for them."""
    found = np.full(len(copied), COLD, np.uint8) if shared is None else shared.fetched.copy()
    found[copied] = WARM
    return found
