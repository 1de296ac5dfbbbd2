"""The memory side of GPUPerf: AMAT, CWP, MWP, ITMLP and T_mem (Eq 11 to 15 and A.1 to A.7 of Sim et al. 2012)."""

from __future__ import annotations

from ppt_gpu.models.base.steps import Steps
from ppt_gpu.models.gpuperf.inputs import GpuPerfInputs


def memory_time(steps: Steps, given: GpuPerfInputs, dram: float, comp_cycles: float) -> float:
    """T_mem, cycles. `dram`: avg_DRAM_lat; `comp_cycles`: Eq A.3."""
    amat = steps(
        "AMAT", "{avg_DRAM_lat} x {miss_ratio} + {hit_lat}", dram * given.miss_ratio + given.hit_lat,
        number="(12)", unit="cycles",
    )  # fmt: skip
    cwp = _cwp(steps, given, amat, comp_cycles)
    peak, mwp = _mwp(steps, given, dram)
    hidden = steps("MWP_cp", "min(max(1, {CWP} - 1), {MWP})", min(max(1.0, cwp - 1), mwp), number="(15)", unit="warps")
    itmlp = steps("ITMLP", "min({MLP} x {MWP_cp}, {MWP_peak_bw})", min(given.mlp * hidden, peak), number="(14)")
    return steps(
        "T_mem",
        "{mem_insts} x {total_warps} / ({active_SMs} x {ITMLP}) x {AMAT}",
        given.mem_insts * given.sm_warps / itmlp * amat,
        number="(11)",
        unit="cycles",
    )


def _cwp(steps: Steps, given: GpuPerfInputs, amat: float, comp_cycles: float) -> float:
    equation = "{insts} x {avg_inst_lat} / {ITILP}"
    comp = steps("comp_cycles", equation, comp_cycles, number="(A.3)", unit="cycles")
    equation = "{mem_insts} x {AMAT} / {MLP}"
    memory = steps("mem_cycles", equation, given.mem_insts * amat / given.mlp, number="(A.4)", unit="cycles")
    if comp:
        equation, full = "({mem_cycles} + {comp_cycles}) / {comp_cycles}", (memory + comp) / comp
    else:  # nothing is computed while a warp waits
        equation, full = "{N}", given.n
    steps("CWP_full", equation, full, number="(A.2)", unit="warps")
    return steps("CWP", "min({CWP_full}, {N})", min(full, given.n), number="(A.1)", unit="warps")


def _mwp(steps: Steps, given: GpuPerfInputs, dram: float) -> tuple[float, float]:
    """(MWP_peak_bw, MWP)."""
    each = steps(
        "BW_per_warp",
        "{freq} x {transaction_size} / {avg_DRAM_lat}",
        given.freq * given.transaction_size / dram,
        number="(A.7)",
        unit="GB/s",
    )
    peak = steps(
        "MWP_peak_bw",
        "{mem_peak_bw} / ({BW_per_warp} x {active_SMs})",
        given.mem_bw / (each * given.active_sms),
        number="(A.6)",
        unit="warps",
    )
    if given.delta:
        equation, mwp = "min({avg_DRAM_lat} / {delta}, {MWP_peak_bw}, {N})", min(dram / given.delta, peak, given.n)
    else:
        equation, mwp = "min({MWP_peak_bw}, {N})", min(peak, given.n)
    return peak, steps("MWP", equation, mwp, number="(A.5)", unit="warps")
