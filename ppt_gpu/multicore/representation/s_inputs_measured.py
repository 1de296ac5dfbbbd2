"""Counters of a CPU run as inputs of the S-core model, with nothing translated (Blem, chapter 4)."""

from __future__ import annotations

from ppt_gpu.multicore.base.core import SCore
from ppt_gpu.multicore.core_models.s_inputs import USUAL_ILP, USUAL_ILP_W2, SInputs
from ppt_gpu.multicore.representation.counters import Counters
from ppt_gpu.multicore.representation.ir_from_counters import operation_counts


def s_inputs_of_counters(counters: Counters, core: SCore, name: str) -> SInputs:
    """The inputs of the run that `counters` measured. Raises PptError where they name no operations."""
    notes: list[str] = []
    counts = operation_counts(counters, notes)
    if core.out_of_order and "ilp" not in counters.values:
        notes.append(f"no ilp: taken as {USUAL_ILP} (section 5.2.1)")
    if not core.out_of_order and "ilp_window2" not in counters.values:
        notes.append(f"no ilp_window2: taken as {USUAL_ILP_W2}")
    if core.l3 is not None and "l3_misses" not in counters.values:
        notes.append("no l3_misses: taken as 0")
    overlapped = counters.get("l3_misses_overlapped") if "l3_misses_overlapped" in counters.values else None
    return SInputs(
        n_i=counts,
        name=name,
        f_inf=counters.get("parallel_fraction", 1.0),
        N_M=counters.get("uops") if "uops" in counters.values else None,
        ILP=counters.get("ilp", USUAL_ILP),
        ILP_w2=counters.get("ilp_window2", USUAL_ILP_W2),
        N_mL1=counters.get("l1_misses"),
        N_mL2=counters.get("l2_misses"),
        N_mL3=counters.get("l3_misses"),
        N_mL3_o=overlapped,
        N_mITLB=counters.get("itlb_misses"),
        N_mDTLB=counters.get("dtlb_misses"),
        N_mbr=counters.get("branch_misses"),
        simd_memory=counters.get("simd_share"),
        notes=tuple(notes),
    )
