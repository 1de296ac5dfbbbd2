"""What GPUPerf and Blem's M-core read of a launch: machine instructions of a warp, its parallelism, and the caches.

Machine instructions are those that the simulation issues, all paths of a diverging warp one after another, so that
divergence needs no overhead of its own. Miss ratios come from a functional simulation of the caches. The paper adds
up latencies of levels; those of a GPU here count from the issue of a load, so that hit_lat is what the accesses that
the caches answer take, and Eq 12 remains the mean over all accesses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.models.base.cache_outcomes import DRAM, L1, L2
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.operation_latency import level_latencies
from ppt_gpu.models.base.warp_streams import DoesNotApply
from ppt_gpu.models.base.warp_waits import OFF_CHIP, WarpWaits, warp_waits
from ppt_gpu.models.gpuperf.inputs import GpuPerfInputs
from ppt_gpu.models.hong_kim.tables import MemoryParameters, memory_parameters
from ppt_gpu.sm.program.program import KIND_SHARED
from ppt_gpu.spec.gpu import TASK_CLASSES, Gpu

FLOATING_POINT = ("fp32", "fp64", "fp16")


@dataclass(frozen=True)
class Counts:
    """Of one warp, mean over the simulated warps. Latencies are cycles."""

    by_class: dict[str, float]  # machine instructions, by task class
    latency: dict[str, float]  # mean of each class that is not off-chip memory
    off_chip: float  # instructions to global and local memory
    transactions: float  # of such an instruction with an active lane
    to_dram: float  # share of them that the DRAM answers
    hit_lat: float  # cycles that the others take, mean over all of them
    bank_conflicts: float  # cycles lost
    waits: WarpWaits

    @property
    def insts(self) -> float:
        return sum(self.by_class.values())

    def mean_latency(self, classes: tuple[str, ...] = ()) -> float:
        """Mean over the instructions of `classes`, () all but off-chip memory; at least 1."""
        chosen = [name for name in self.latency if not classes or name in classes]
        total = sum(self.by_class[name] for name in chosen)
        return max(sum(self.by_class[name] * self.latency[name] for name in chosen) / total, 1.0) if total else 1.0


def counts(inputs: ModelInputs) -> Counts:
    """The counts of a launch. DoesNotApply when no warp executes an instruction."""
    by_class = inputs.class_counts
    if not by_class:
        raise DoesNotApply("no warp executes an instruction")
    off_chip = sum(count for name, count in by_class.items() if name in OFF_CHIP)
    transactions, to_dram, hit_lat = _memory(inputs)
    return Counts(
        by_class=by_class,
        latency=_latencies(inputs),
        off_chip=off_chip,
        transactions=transactions,
        to_dram=to_dram,
        hit_lat=hit_lat,
        bank_conflicts=_bank_conflicts(inputs),
        waits=warp_waits(inputs),
    )


def _latencies(inputs: ModelInputs) -> dict[str, float]:
    """Mean latency of each class, weighted by executions."""
    program, issues = inputs.program, inputs.op_issues.astype(np.float64)
    total = np.bincount(program.op_class, weights=issues, minlength=len(TASK_CLASSES))
    cycles = np.bincount(
        program.op_class, weights=issues * inputs.latencies.latency, minlength=len(TASK_CLASSES)
    )  # fmt: skip
    return {
        name: float(cycles[number] / total[number])
        for number, name in enumerate(TASK_CLASSES)
        if total[number] and name not in OFF_CHIP
    }


def _memory(inputs: ModelInputs) -> tuple[float, float, float]:
    """(transactions of an off-chip access, share that goes to the DRAM, cycles of the rest by all accesses)."""
    program, outcomes = inputs.program, inputs.caches
    made = np.diff(program.access_start)
    classes = [TASK_CLASSES.index(name) for name in OFF_CHIP]
    chosen = np.isin(program.op_class[outcomes.entry_op], classes) & (made > 0)
    if not chosen.any():
        return 1.0, 0.0, 0.0
    level, latency = outcomes.level[chosen], level_latencies(inputs.gpu)
    answered = np.isin(level, (L1, L2, DRAM))
    if not answered.any():  # only stores, which all end in the DRAM
        return float(made[chosen].mean()), 1.0, 0.0
    share = {which: float((level[answered] == which).mean()) for which in (L1, L2, DRAM)}
    return float(made[chosen].mean()), share[DRAM], share[L1] * latency[L1] + share[L2] * latency[L2]


def _bank_conflicts(inputs: ModelInputs) -> float:
    """Passes through the banks beyond those that any access of a warp needs, by warp."""
    program, gpu = inputs.program, inputs.gpu
    shared: NDArray[np.bool_] = program.op_kind[inputs.caches.entry_op] == KIND_SHARED
    least = max(gpu.sm.warp_size // gpu.shared.banks, 1)
    extra = np.maximum(program.access_cycles[shared].astype(np.int64) - least, 0)
    return float(extra.sum()) / max(len(program.warp_path), 1)


def sfu_lanes(gpu: Gpu) -> int:
    """Lanes of the special function units; those of the pipe that does their work where there are none."""
    pipe = gpu.pipes.get("sfu") or gpu.pipes[gpu.isa.op("sfu").pipe]
    return pipe.lanes


def gpuperf_inputs(inputs: ModelInputs) -> tuple[GpuPerfInputs, tuple[str, ...]]:
    """The inputs of GPUPerf for a launch on a GPU, and notes on what was assumed. DoesNotApply without instructions."""
    found, gpu = counts(inputs), inputs.gpu
    parameters = memory_parameters(gpu)
    given = GpuPerfInputs(
        freq=gpu.sm.clock / 1e9,
        mem_bw=gpu.dram.bandwidth / 1e9,
        simd_width=gpu.pipes["fp32"].lanes,
        sfu_width=sfu_lanes(gpu),
        transaction_size=inputs.program.line_bytes,
        dram_lat=parameters.mem_ld,
        delta=parameters.dep_uncoal,
        avg_inst_lat=found.mean_latency(),
        active_sms=inputs.active_sms,
        n=inputs.resident_warps,
        total_warps=inputs.grid_blocks * inputs.warps_per_block,
        total_blocks=inputs.grid_blocks,
        insts=found.insts,
        mem_insts=found.off_chip,
        sync_insts=found.by_class.get("barrier", 0.0),
        sfu_insts=found.by_class.get("sfu", 0.0),
        fp_insts=sum(found.by_class.get(name, 0.0) for name in FLOATING_POINT),
        fp_lat=found.mean_latency(FLOATING_POINT),
        o_bank=found.bank_conflicts * inputs.grid_blocks * inputs.warps_per_block / inputs.active_sms,
        avg_trans_warp=max(found.transactions, 1.0),
        miss_ratio=found.to_dram,
        hit_lat=found.hit_lat,
        ilp=found.waits.ilp,
        mlp=found.waits.mlp,
        warp_size=gpu.sm.warp_size,
    )
    return given, memory_notes(parameters)


def memory_notes(parameters: MemoryParameters) -> tuple[str, ...]:
    return (f"DRAM_lat and delta: {parameters.source}", "gamma is that of Fermi, 64")
