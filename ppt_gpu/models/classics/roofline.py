"""The hierarchical roofline as a model of run time: the slowest of arithmetic and the memory levels."""

from __future__ import annotations

import numpy as np

from ppt_gpu.models.base.floors import dram_floor
from ppt_gpu.models.base.model import Estimate, Model, Options, answer
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.steps import Steps
from ppt_gpu.models.base.warp_streams import DoesNotApply
from ppt_gpu.spec.gpu import TASK_CLASSES

#: what stands before "roof": the classes whose pipes do the arithmetic
_ARITHMETIC = ("fp32", "fp64", "fp16", "tensor", "int32", "sfu")


class RooflineModel(Model):
    """Each roof is a time of the whole launch; the chip does all of them at once, so the longest is the least time."""

    name, title = "roofline", "Hierarchical roofline"
    source = "Williams, Waterman, Patterson, CACM 2009; one roof a memory level"

    def estimate(self, inputs: ModelInputs, options: Options) -> Estimate:
        program, gpu, caches = inputs.program, inputs.gpu, inputs.caches
        steps = Steps()
        arithmetic = np.isin(program.op_class, [TASK_CLASSES.index(name) for name in _ARITHMETIC])
        times = {}
        if inputs.op_issues[arithmetic].any():
            whole = inputs.sm_blocks / len(inputs.blocks)
            cycles = inputs.pipe_cycles(arithmetic) * whole
            times["compute"] = steps.given("T(compute)", cycles, "its busiest pipe at the peak rate", unit="cycles")
        sector, chip = program.sector_bytes, inputs.grid_blocks / len(inputs.blocks)
        asked = int(caches.l1_sectors) + int(caches.l2_sectors[caches.fetched_lines == 0].sum())
        traffic: dict[str, tuple[float, float]] = {
            "L1": (asked, gpu.l1.bandwidth * inputs.active_sms),
            "L2": (int(caches.l2_sectors.sum()), gpu.l2.bandwidth),
            # What many blocks share is read once: not the simulated blocks' bytes times the blocks.
            "DRAM": (dram_floor(inputs) * gpu.dram_bytes_per_cycle / sector / chip, gpu.dram_bytes_per_cycle),
        }
        for level, (sectors, rate) in traffic.items():
            if sectors and rate:
                moved = steps.given(f"B({level})", sectors * sector * chip, "bytes of the launch", unit="B")
                steps.given(f"beta({level})", rate, "bandwidth", unit="B/cycle")
                time = moved / rate
                times[level] = steps(f"T({level})", f"{{B({level})}} / {{beta({level})}}", time, unit="cycles")
        if not times:
            raise DoesNotApply("the kernel has neither arithmetic nor memory traffic")
        terms = ", ".join(f"{{T({name})}}" for name in times)
        cycles = steps("T", f"max({terms})", max(times.values()), unit="cycles")
        limit = max(times, key=lambda name: times[name])
        return answer(self, inputs, cycles, f"{limit} roof", steps.all)
