"""Memory coalescing by compute capability, as Blem's M-core model counts it: transactions of a warp's access.

Section 4.2.2 of the dissertation. Below compute capability 1.2, half a warp whose threads access the words of an
aligned segment in order makes one transaction (two where 16 words of 16 B need them), any other one of 32 B a thread;
1.2 and 1.3 serve any pattern with as few segments as hold it; from 2.0 on a warp makes one for each line of the L1.
"""

from __future__ import annotations

from ppt_gpu.models.affine.static_accesses import off_chip_accesses, rule_of, transactions_of
from ppt_gpu.models.base.model_inputs import ModelInputs


def transactions_per_warp(inputs: ModelInputs) -> float:
    """avg_trans_warp: mean over the off-chip accesses with an active lane; 1 without any. DoesNotApply: a task list."""
    trace, rule = inputs.need_trace(), rule_of(inputs.gpu)
    made = [transactions_of(trace, access, rule) for access in off_chip_accesses(inputs)]
    count = sum(len(each) for each in made)
    return max(sum(int(each.sum()) for each in made) / count, 1.0) if count else 1.0
