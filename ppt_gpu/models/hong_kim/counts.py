"""What Hong and Kim's model reads of a kernel: instruction counts of a thread, and how its accesses coalesce.

Instructions are those of the PTX text, as often as the trace says, all paths of a diverging warp one after another
(sections 3.4.3 and 6.3); shared, constant and parameter accesses count as computation. Whether an access is coalesced
is found from its address (`ppt_gpu.models.affine.registers` and the paper's Algorithms 1 and 2) where that is affine
in the indices of threads, blocks and loops, and counted from the addresses of the trace where it is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.models.affine.registers import affine_addresses
from ppt_gpu.models.affine.static_accesses import OffChip, off_chip_accesses, transactions_of
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.warp_streams import DoesNotApply
from ppt_gpu.models.base.warp_waits import warp_waits
from ppt_gpu.models.hong_kim.coalescing import Judgement, judge
from ppt_gpu.models.hong_kim.inputs import HongKimInputs
from ppt_gpu.models.hong_kim.latency import m_factor
from ppt_gpu.models.hong_kim.tables import memory_parameters
from ppt_gpu.ptx.instructions import is_barrier


@dataclass(frozen=True)
class Coalescing:
    """Executions of off-chip instructions over all simulated warps."""

    coalesced: float
    uncoalesced: float
    transactions: float  # of the uncoalesced ones
    bytes: float  # of all, lanes x bytes a lane
    static: int  # instructions judged by their address
    counted: int  # instructions judged by the trace

    @property
    def per_uncoalesced(self) -> float:
        """#Uncoal_per_mw: mean; 1 where every access is coalesced."""
        return max(self.transactions / self.uncoalesced, 1.0) if self.uncoalesced else 1.0


def coalescing(inputs: ModelInputs, *, literal: bool = False) -> Coalescing:
    """How the launch's accesses coalesce on its GPU. DoesNotApply for a task list."""
    kernel, trace, gpu = inputs.need_kernel(), inputs.need_trace(), inputs.gpu
    # As the algorithms: in order below compute capability 1.3, as few segments as need be from there on.
    rule = "half_warp_1.0" if gpu.compute_capability < (1, 3) else "half_warp_1.2"
    addresses = affine_addresses(kernel, inputs.launch)
    coalesced = uncoalesced = transactions = moved = 0.0
    static = counted = 0
    for access in off_chip_accesses(inputs):
        address = addresses.get(access.pc)
        verdict: Judgement | None = None
        if access.local:  # lanes are interleaved
            verdict = Judgement(True, 1)
        elif address is not None:
            verdict = judge(address, access.bytes, inputs.launch.block, gpu.compute_capability, literal=literal)
        static, counted = static + (verdict is not None), counted + (verdict is None)
        share, count = _from_trace(trace, access, rule) if verdict is None else _from_address(verdict)
        coalesced += share * access.executed
        uncoalesced += (1 - share) * access.executed
        transactions += (1 - share) * access.executed * count
        moved += access.executed * access.bytes * gpu.sm.warp_size
    return Coalescing(coalesced, uncoalesced, transactions, moved, static, counted)


def _from_address(verdict: Judgement) -> tuple[float, float]:
    return (1.0, 1.0) if verdict.coalesced else (0.0, verdict.transactions)


def _from_trace(trace: Trace, access: OffChip, rule: str) -> tuple[float, float]:
    """(share of the accesses that are coalesced, mean transactions of the others).

    As in the static algorithms, one transaction for each half warp with an active lane is coalesced; where they must
    be in order two, if 16 lanes of 16 B need 256 B.
    """
    found = transactions_of(trace, access, rule)
    mask = trace.pattern_mask[trace.access_pattern[access.access]].astype(np.int64)
    halves = ((mask & 0xFFFF) != 0).astype(np.int64) + ((mask >> 16) != 0)
    least = halves * (2 if access.bytes == 16 and rule == "half_warp_1.0" else 1)
    good = found <= least
    rest = found[~good]
    return float(good.mean()), float(rest.mean()) if len(rest) else 1.0


def hong_kim_inputs(inputs: ModelInputs, *, literal: bool = False) -> tuple[HongKimInputs, tuple[str, ...]]:
    """Table 1 for a launch on a GPU, and notes on what was assumed. DoesNotApply where it cannot be filled."""
    kernel, trace, gpu = inputs.need_kernel(), inputs.need_trace(), inputs.gpu
    warps = trace.warps
    executed = trace.pc_executed / max(warps, 1)
    total = float(executed.sum())
    if not total:
        raise DoesNotApply("no warp executes an instruction")
    found = coalescing(inputs, literal=literal)
    memory_executed = (found.coalesced + found.uncoalesced) / warps
    issue = issue_cycles(inputs)
    factors = np.array([m_factor(item, gpu, issue) for item in kernel.instructions])
    barriers = np.array([is_barrier(item) for item in kernel.instructions], np.bool_)
    parameters = memory_parameters(gpu)
    given = HongKimInputs(
        mem_ld=parameters.mem_ld,
        dep_uncoal=parameters.dep_uncoal,
        dep_coal=parameters.dep_coal,
        freq=gpu.sm.clock / 1e9,
        mem_bandwidth=gpu.dram.bandwidth / 1e9,
        threads_per_block=inputs.launch.threads_per_block,
        blocks=inputs.grid_blocks,
        active_sms=inputs.active_sms,
        active_blocks_per_sm=inputs.resident_blocks,
        comp_insts=max(total - memory_executed, 0.0),
        uncoal_mem_insts=found.uncoalesced / warps,
        coal_mem_insts=found.coalesced / warps,
        synch_insts=float(executed[barriers].sum()),
        uncoal_per_mw=found.per_uncoalesced,
        load_bytes_per_warp=found.bytes / (memory_executed * warps) if memory_executed else 128.0,
        issue_cycles=issue,
        threads_per_warp=gpu.sm.warp_size,
        ind_mem_req=min(warp_waits(inputs).independent_requests, memory_executed),
        m_factor=float(executed @ factors) / total,
    )
    return given, _notes(found, parameters.source)


def issue_cycles(inputs: ModelInputs) -> float:
    """Cycles in which an SM issues one warp instruction: 4 with 8 SPs."""
    gpu = inputs.gpu
    return max(gpu.sm.warp_size / gpu.pipes["fp32"].lanes, 1 / inputs.issue_rate)


def _notes(found: Coalescing, source: str) -> tuple[str, ...]:
    notes = [f"Mem_LD and departure delays: {source}"]
    if found.static + found.counted:
        text = f"coalescing: {found.static} memory instructions by their address, {found.counted} counted in the trace"
        notes.append(text)
    return tuple(notes)
