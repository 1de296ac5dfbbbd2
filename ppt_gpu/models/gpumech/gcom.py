"""GCoM: a sub-core's cycles interval by interval, and MDM's contention (Lee et al., ISCA 2022).

The instructions of all warps of a scheduler are issued, and what of a stall the other warps do not fill is waited for:

    C_k = insts_k / rate + others + max(stall_k - issued / rate, 0)

with others = (w - 1) avg / rate and issued = min(p stall_k, 1) (w - 1) avg for greedy-then-oldest, others =
(w - 1) insts_k / rate and issued = (w - 1) p for round robin. So no more than `rate` instructions issue in a cycle.
GCoM's stack has structural stalls of the pipes too; here (own reading) what the busiest pipe of a scheduler needs
beyond the cycles above. Its idle SMs are no part of the CPI of the busiest SM, and are given beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.models.base.model import Estimate, Model, Options, answer
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.steps import Steps
from ppt_gpu.models.base.warp_streams import DoesNotApply
from ppt_gpu.models.gpumech.gpumech_core import core_of, mdm_contention
from ppt_gpu.models.gpumech.interval import Profile

#: the stack, and what each part says of a kernel that it is the largest of
PARTS = {
    "base": "instruction issue",
    "comData": "the latency of arithmetic and shared memory",
    "comStruct": "a busy execution pipe",
    "memData": "the latency of global memory",
    "memStruct": "contention for MSHRs, interconnect and DRAM",
}


@dataclass(frozen=True)
class SubCore:
    """Of every interval, in cycles of one scheduler."""

    base: NDArray[np.float64]  # [K] issue of the instructions of all its warps
    data_stall: NDArray[np.float64]  # [K] what they leave of the stalls

    @property
    def cycles(self) -> float:
        return float(self.base.sum() + self.data_stall.sum())


def sub_core(profile: Profile, warps: int, policy: str = "lrr", rate: float = 1.0) -> SubCore:
    """C_k of every interval, for `policy` "lrr" or "gto"."""
    p = profile.issue_probability(rate)
    if policy == "lrr":
        others = (warps - 1) * profile.insts
        issued = np.full(len(profile.insts), (warps - 1) * p)
    else:
        average = profile.instructions / max(len(profile.insts), 1)
        others = np.full(len(profile.insts), (warps - 1) * average)
        issued = np.minimum(p * profile.stall, 1.0) * (warps - 1) * average
    return SubCore((profile.insts + others) / rate, np.maximum(profile.stall - issued / rate, 0.0))


class Gcom(Model):
    name, title = "gcom", "GCoM: sub-cores interval by interval, MDM's contention"
    source = "Lee et al., ISCA 2022"

    def estimate(self, inputs: ModelInputs, options: Options) -> Estimate:
        if options.policy not in ("lrr", "gto"):
            raise DoesNotApply(f"it models round robin and greedy-then-oldest, not '{options.policy}'")
        core = core_of(inputs, gap=0, drain=True)
        found = sub_core(core.profile, core.scheduler_warps, options.policy, core.rate)
        delays = mdm_contention(inputs, core)
        memory = _memory_share(core.profile, inputs.latencies.share)
        steps = Steps()
        steps.given("W", core.warps, "warps of the SM", unit="warps")
        steps.given("w", core.scheduler_warps, "warps of its fullest scheduler", unit="warps")
        steps.given("rate", core.rate, "instructions that a scheduler issues in a cycle")
        steps.given("I", core.profile.instructions, "instructions of the representative warp")
        steps.given("p", core.profile.issue_probability(core.rate), "its instructions by its cycles alone")
        base = steps("base", "{w} {I} / {rate}", float(found.base.sum()), unit="cycles")
        other = float(found.data_stall @ (1.0 - memory))
        com_data = steps.given("comData", other, "sum of max(stall - issued / rate, 0), on arithmetic", unit="cycles")
        mem_data = steps.given("memData", float(found.data_stall @ memory), "the same, on memory", unit="cycles")
        work = inputs.pipe_cycles() / inputs.instructions * core.instructions
        pipe = steps.given("pipe", work, "cycles of the busiest pipe for all warps", unit="cycles")
        struct = max(pipe - found.cycles, 0.0)
        com_struct = steps("comStruct", "max({pipe} - ({base} + {comData} + {memData}), 0)", struct, unit="cycles")
        queues = float((delays.mshr + delays.queue).sum())
        mem_struct = steps.given("memStruct", queues, "MDM: MSHR batches and queues of NoC and DRAM", unit="cycles")
        parts = (base, com_data, com_struct, mem_data, mem_struct)
        stack = tuple((name, part / core.instructions) for name, part in zip(PARTS, parts, strict=True))
        cpi = sum(value for _, value in stack)
        steps("CPI", "({base} + {comData} + {comStruct} + {memData} + {memStruct}) / ({W} {I})", cpi)
        idle = 1.0 - inputs.grid_blocks / inputs.active_sms / inputs.sm_blocks
        steps.given("idle", max(idle, 0.0), "share of the time that an SM with as many blocks as the mean waits")
        limit = max(stack, key=lambda item: item[1])[0]
        return answer(self, inputs, cpi * inputs.sm_instructions, PARTS[limit], steps.all, stack=stack)


def _memory_share(profile: Profile, share: NDArray[np.float64]) -> NDArray[np.float64]:
    """[K] 1 where a stall waits for a load or atomic, else 0."""
    of_op = share.sum(axis=1) > 0
    return np.where(profile.cause >= 0, of_op[profile.cause], False).astype(np.float64)
