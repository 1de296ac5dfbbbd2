"""Blem's M-core model as one of the analytical models: from a launch on a GPU to Table 4.2 and its estimate."""

from __future__ import annotations

from dataclasses import replace

from ppt_gpu.models.affine.static_accesses import off_chip_accesses, rule_of, transactions_of
from ppt_gpu.models.base.model import Estimate, Model, Options
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.warp_streams import DoesNotApply
from ppt_gpu.models.base.warp_waits import OFF_CHIP
from ppt_gpu.models.gpuperf.counts import Counts, counts, memory_notes, sfu_lanes
from ppt_gpu.models.gpuperf.model import estimate_of
from ppt_gpu.models.hong_kim.tables import MemoryParameters, memory_parameters
from ppt_gpu.models.mcore.mcore import MCoreHardware, MCoreSoftware, m_core
from ppt_gpu.spec.gpu import Gpu


def transactions_per_warp(inputs: ModelInputs) -> float:
    """avg_trans_warp: mean over the off-chip accesses with an active lane; 1 without any. DoesNotApply: a task list.

    Section 4.2.2 of the dissertation. Below compute capability 1.2, half a warp whose threads access the words of an
    aligned segment in order makes one transaction (two where 16 words of 16 B need them), any other one of 32 B a
    thread; 1.2 and 1.3 serve any pattern with as few segments as hold it; from 2.0 on a warp makes one for each line of
    the L1.
    """
    trace, rule = inputs.need_trace(), rule_of(inputs.gpu)
    made = [transactions_of(trace, access, rule) for access in off_chip_accesses(inputs)]
    count = sum(len(each) for each in made)
    return max(sum(int(each.sum()) for each in made) / count, 1.0) if count else 1.0


class MCoreModel(Model):
    """GPUPerf with instruction timing, special function units, multiple issue, coalescing by compute capability."""

    name = "m-core"
    title = "Blem's M-core model"
    source = "Blem, dissertation 2013, Eq 4.4, 4.11 and 4.12 on GPUPerf's equations"

    def estimate(self, inputs: ModelInputs, options: Options) -> Estimate:
        software, notes = m_core_software(inputs)
        parameters = memory_parameters(inputs.gpu)
        found = m_core(software, _hardware(inputs, parameters, counts(inputs)))
        steps, notes = list(found.model.steps), (*memory_notes(parameters), *notes)
        return estimate_of(self, inputs, options, found.model, steps, notes)


def m_core_software(inputs: ModelInputs) -> tuple[MCoreSoftware, tuple[str, ...]]:
    """The software inputs of Table 4.2 for a launch, and notes. DoesNotApply when no warp executes an instruction."""
    found = counts(inputs)
    notes: tuple[str, ...] = ()
    try:
        transactions = transactions_per_warp(inputs)
    except DoesNotApply:
        transactions = max(found.transactions, 1.0)
        notes = ("avg_trans_warp: as simulated, since a task list has no addresses of lanes",)
    software = MCoreSoftware(
        W_SM=inputs.resident_warps,
        total_warps=inputs.grid_blocks * inputs.warps_per_block,
        total_blocks=inputs.grid_blocks,
        n_mu=found.by_class,
        N_SFU=found.by_class.get("sfu", 0.0),
        N_sync=found.by_class.get("barrier", 0.0),
        N_con=found.bank_conflicts,
        ILP=found.waits.ilp,
        MLP=found.waits.mlp,
        N_mem=found.off_chip,
        N_off_chip=found.off_chip * found.to_dram,
        avg_trans_warp=transactions,
    )
    return software, notes


def m_core_hardware(gpu: Gpu) -> MCoreHardware:
    """The core and chip level inputs of Table 4.2 for a GPU; latencies of instruction types and caches are left out."""
    return _of_gpu(gpu, memory_parameters(gpu))


def _of_gpu(gpu: Gpu, parameters: MemoryParameters) -> MCoreHardware:
    # An SM of more lanes than a warp executes several warp instructions in a cycle, as far as it can issue them.
    lanes, warp = gpu.pipes["fp32"].lanes, gpu.sm.warp_size
    return MCoreHardware(
        nu=gpu.sm.clock,
        SM=gpu.sm.count,
        SP=min(lanes, warp),
        SFU=sfu_lanes(gpu),
        l_mu={},
        t_mem=parameters.mem_ld,
        Delta=parameters.dep_uncoal,
        BW_max=gpu.dram.bandwidth,
        b=gpu.l2.line,
        W=min(max(lanes / warp, 1.0), gpu.sm.schedulers * gpu.sm.issue_width),
    )


def _hardware(inputs: ModelInputs, parameters: MemoryParameters, found: Counts) -> MCoreHardware:
    # Off-chip accesses wait in T_mem; among the instructions they take what an instruction takes on average.
    mean = found.mean_latency()
    latency = dict.fromkeys(OFF_CHIP, mean) | found.latency
    return replace(_of_gpu(inputs.gpu, parameters), SM=inputs.active_sms, l_mu=latency, t_hit=found.hit_lat)
