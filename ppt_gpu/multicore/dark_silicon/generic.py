"""The generic prediction for an S-core: the interval models as published, without the modules of Blem's chapter 4.

No micro-ops, ports, third cache or TLBs: instructions at the decode width, misses of the L2 to memory. The dissertation
sets such predictions beside its own ("generic", section 4.3.1); on the Xeon their mean error is 1.7 times as large.
"""

from __future__ import annotations

from ppt_gpu.multicore.base.core import SCore
from ppt_gpu.multicore.base.operations import LOADS, STORES
from ppt_gpu.multicore.core_models.interval import Cycles, in_order, out_of_order
from ppt_gpu.multicore.core_models.s_inputs import SInputs
from ppt_gpu.multicore.core_models.s_memory import misses_together


def generic(inputs: SInputs, core: SCore) -> Cycles:
    """Cycles of one thread by Eyerman et al. (out of order) or Breughe et al. (in order)."""
    if core.out_of_order:
        return out_of_order(
            instructions=inputs.operations,
            width=core.instruction_width,
            l1i_misses=0.0,
            l2i_misses=0.0,
            mispredicts=inputs.N_mbr,
            isolated_misses=inputs.N_mL2 / misses_together(inputs, core, inputs.N_mL2),
            l1i_penalty=core.l2.latency,
            memory_penalty=core.memory_cycles,
            drain=core.drain,
            front_end=core.front_end,
        )
    long = [
        (count, core.operations[name].latency)
        for name, count in inputs.n_i.items()
        if name not in (*LOADS, *STORES) and core.operations[name].latency > 1
    ]
    return in_order(
        instructions=inputs.operations,
        width=core.instruction_width,
        misses=[(max(inputs.N_mL1 - inputs.N_mL2, 0.0), core.l2.latency), (inputs.N_mL2, core.memory_cycles)],
        mispredicts=inputs.N_mbr,
        front_end=core.front_end,
        long_operations=long,
        unit_dependences={1: (2 - inputs.ILP_w2) * inputs.operations},
    )
