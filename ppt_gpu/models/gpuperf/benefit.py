"""GPUPerf's potential benefits: how many cycles better code could save of each kind (Sim et al. 2012, section 4)."""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.models.base.steps import Step, Steps
from ppt_gpu.models.gpuperf.gpuperf import GpuPerf


@dataclass(frozen=True)
class Benefits:
    """Cycles of the launch that could be saved, at most, by removing one cause each; they overlap."""

    itilp: float  # more parallelism among instructions
    serial: float  # no synchronisation, divergence, bank conflicts or shortage of special function units
    fp: float  # nothing but the floating-point instructions
    memlp: float  # as many memory requests under way as the bandwidth allows
    steps: tuple[Step, ...]

    @property
    def largest(self) -> str:
        """The name of the largest: "itilp", "serial", "fp" or "memlp"."""
        return max(("memlp", "itilp", "serial", "fp"), key=lambda name: getattr(self, name))


def potential_benefits(found: GpuPerf) -> Benefits:
    """The four metrics; a launch whose inputs name no floating-point latency has T_fp = 0."""
    given, steps = found.given, Steps()
    for symbol in ("W_parallel", "W_serial", "T_comp", "T_mem", "T_overlap", "ITILP", "ITILP_max", "MWP_peak_bw",
                   "AMAT"):  # fmt: skip
        steps.given(symbol, found[symbol])
    for symbol, value in (
        ("insts", given.insts),
        ("FP_insts", given.fp_insts),
        ("FP_lat", given.fp_lat),
        ("mem_insts", given.mem_insts),
        ("avg_inst_lat", given.avg_inst_lat),
        ("total_warps", given.total_warps),
        ("active_SMs", given.active_sms),
    ):
        steps.given(symbol, value)
    least = given.insts * given.sm_warps * given.avg_inst_lat / found["ITILP_max"]
    itilp = steps(
        "B_itilp",
        "max({W_parallel} - {insts} x {total_warps} x {avg_inst_lat} / ({active_SMs} x {ITILP_max}), 0)",
        max(found["W_parallel"] - least, 0.0),
        unit="cycles",
    )
    serial = steps("B_serial", "{W_serial}", found["W_serial"], unit="cycles")
    t_fp = steps(
        "T_fp",
        "{FP_insts} x {total_warps} x {FP_lat} / ({active_SMs} x {ITILP})",
        given.fp_insts * given.sm_warps * given.fp_lat / found["ITILP"],
        unit="cycles",
    )
    fp = steps("B_fp", "max({T_comp} - {T_fp}, 0)", max(found["T_comp"] - t_fp, 0.0), unit="cycles")
    exposed = steps("T'_mem", "{T_mem} - {T_overlap}", found["T_mem"] - found["T_overlap"], unit="cycles")
    ideal = steps(
        "T_mem_min",
        "{mem_insts} x {total_warps} x {AMAT} / ({active_SMs} x {MWP_peak_bw})",
        given.mem_insts * given.sm_warps * found["AMAT"] / found["MWP_peak_bw"],
        unit="cycles",
    )
    memlp = steps("B_memlp", "max({T'_mem} - {T_mem_min}, 0)", max(exposed - ideal, 0.0), unit="cycles")
    return Benefits(itilp, serial, fp, memlp, tuple(steps.all))
