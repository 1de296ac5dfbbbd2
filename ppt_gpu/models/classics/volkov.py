"""Volkov's model of latency hiding (Understanding Latency Hiding on GPUs, 2016, chapter 4).

Every warp repeats one memory instruction and alpha dependent arithmetic instructions. Warp instructions a cycle and SM:

    mem_thr = min(n / (mem_lat + alpha alu_lat), mem_thru, alu_thru / alpha, issue_thru / (alpha + 1))

A kernel is taken as that mix: alpha, latencies and throughputs are means over its instructions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ppt_gpu.common.errors import PptError
from ppt_gpu.models.base.model import Estimate, Model, Options, answer
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.steps import Steps
from ppt_gpu.models.base.warp_streams import DoesNotApply
from ppt_gpu.sm.program.program import KIND_ATOMIC, KIND_LOAD, KIND_STORE

NEVER = float("inf")


@dataclass(frozen=True)
class LatencyHiding:
    """Latencies in cycles, throughputs in warp instructions a cycle and SM."""

    alpha: float  # arithmetic instructions for each memory instruction
    alu_latency: float
    memory_latency: float
    alu_throughput: float
    memory_throughput: float
    issue_throughput: float

    @property
    def latency(self) -> float:
        """Of a memory instruction and its alpha arithmetic ones, one after another."""
        return self.memory_latency + self.alpha * self.alu_latency

    @property
    def limits(self) -> dict[str, float]:
        """Memory instructions a cycle that each throughput allows."""
        alu = self.alu_throughput / self.alpha if self.alpha else NEVER
        return {
            "memory throughput": self.memory_throughput,
            "arithmetic throughput": alu,
            "instruction issue": self.issue_throughput / (self.alpha + 1.0),
        }

    @property
    def warps_needed(self) -> float:
        """Warps that hide all latency: Little's law at the lowest limit."""
        return self.latency * min(self.limits.values())

    def throughput(self, warps: float) -> float:
        """Memory instructions a cycle of `warps` warps."""
        return min(warps / self.latency, *self.limits.values())


def cusp(hiding: LatencyHiding) -> tuple[float, float]:
    """The alpha that needs most warps, and how many: alu_lat alu_thru + mem_lat mem_thru."""
    warps = hiding.alu_latency * hiding.alu_throughput + hiding.memory_latency * hiding.memory_throughput
    return hiding.alu_throughput / hiding.memory_throughput, warps


def guide_warps(memory_latency: float, cycles_per_instruction: float, alpha: float) -> tuple[float, float]:
    """Warps that the CUDA guide's rule asks for, and Volkov's refinement of it (section 4.8). PptError for alpha 0."""
    if not alpha > 0:
        raise PptError(f"the rule needs arithmetic instructions, not {alpha:g} for each memory instruction")
    plain = memory_latency / (cycles_per_instruction * alpha)
    return plain, memory_latency / (cycles_per_instruction * (alpha + 1.0)) + 1.0


class Volkov(Model):
    name, title = "volkov", "Volkov's latency hiding"
    source = "Volkov 2016, chapter 4"

    def estimate(self, inputs: ModelInputs, options: Options) -> Estimate:
        if not inputs.instructions:
            raise DoesNotApply("the warps issue no instruction")
        steps = Steps()
        n = steps.given("n", inputs.resident_warps, "warps of the SM", unit="warps")
        memory, hiding = _hiding(inputs)
        if not memory:
            return self._without_memory(inputs, hiding, n, steps)
        given = steps.given
        given("alpha", hiding.alpha, "arithmetic instructions for each memory instruction")
        given("alu_lat", hiding.alu_latency, "mean latency of the arithmetic instructions", unit="cycles")
        given("mem_lat", hiding.memory_latency, "mean latency of the memory instructions", unit="cycles")
        given("alu_thru", hiding.alu_throughput, "arithmetic instructions a cycle and SM")
        given("mem_thru", hiding.memory_throughput, "memory instructions a cycle and SM, by bandwidths")
        given("issue_thru", hiding.issue_throughput, "instructions a cycle and SM")
        steps("Latency", "{mem_lat} + {alpha} {alu_lat}", hiding.latency, unit="cycles")
        rate = hiding.throughput(n)
        steps("warps", "{Latency} x the lowest of the throughputs", hiding.warps_needed, unit="warps")
        steps("mem_thr", "min({n} / {Latency}, {mem_thru}, {alu_thru} / {alpha}, {issue_thru} / ({alpha} + 1))", rate)
        limits = {"latency: too few warps": n / hiding.latency, **hiding.limits}
        limit = min(limits, key=lambda name: limits[name])
        share = memory / inputs.instructions
        steps("CPI", "1 / ({mem_thr} (1 + {alpha}))", share / rate)
        return answer(self, inputs, inputs.sm_instructions * share / rate, limit, steps.all)

    def _without_memory(self, inputs: ModelInputs, hiding: LatencyHiding, n: float, steps: Steps) -> Estimate:
        """Arithmetic alone: min(n / alu_lat, alu_thru, issue_thru)."""
        given = steps.given
        latency = given("alu_lat", max(hiding.alu_latency, 1.0), "mean latency of the instructions", unit="cycles")
        given("alu_thru", hiding.alu_throughput, "arithmetic instructions a cycle and SM")
        given("issue_thru", hiding.issue_throughput, "instructions a cycle and SM")
        limits = {
            "latency: too few warps": n / latency,
            "arithmetic throughput": hiding.alu_throughput,
            "instruction issue": hiding.issue_throughput,
        }
        rate = steps("alu_thr", "min({n} / {alu_lat}, {alu_thru}, {issue_thru})", min(limits.values()))
        limit = min(limits, key=lambda name: limits[name])
        return answer(self, inputs, inputs.sm_instructions / rate, limit, steps.all)


def _hiding(inputs: ModelInputs) -> tuple[float, LatencyHiding]:
    """Memory instructions of the simulated warps, and the model's numbers for them."""
    program, gpu, cost = inputs.program, inputs.gpu, inputs.latencies
    issues = inputs.op_issues.astype(np.float64)
    memory = np.isin(program.op_kind, (KIND_LOAD, KIND_STORE, KIND_ATOMIC))
    count, other = float(issues[memory].sum()), float(issues[~memory].sum())
    busiest = inputs.pipe_cycles(~memory)
    sector = program.sector_bytes
    chip = gpu.dram_bytes_per_cycle * gpu.dram.efficiency / inputs.active_sms
    moved = {
        "transactions": (float(np.diff(program.access_start).sum()), gpu.memory.transactions_per_cycle),
        "L2": (float(issues @ (cost.l2_read + cost.l2_write)) * sector, gpu.l2.bandwidth / inputs.active_sms),
        "interconnect": (float(issues @ cost.l2_read) * sector, gpu.interconnect.bandwidth),
        "DRAM": (float(issues @ (cost.dram_read + cost.dram_write)) * sector, chip),
    }
    slowest = max(amount / rate for amount, rate in moved.values())
    issue = float(inputs.issue_rate)
    return count, LatencyHiding(
        alpha=other / count if count else 0.0,
        alu_latency=float(issues[~memory] @ cost.latency[~memory]) / other if other else 0.0,
        memory_latency=max(float(issues[memory] @ cost.latency[memory]) / count, 1.0) if count else 0.0,
        alu_throughput=other / busiest if busiest else issue,
        memory_throughput=count / slowest if slowest else issue,
        issue_throughput=issue,
    )
