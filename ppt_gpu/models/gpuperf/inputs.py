"""What GPUPerf reads: the parameters of Sim et al. (PPoPP 2012), section 3, and the machine that they measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ppt_gpu.common.errors import PptError
from ppt_gpu.models.base.steps import Steps

#: Tesla C2050, as a program of the model's that is public gives it
C2050: dict[str, Any] = {
    "freq": 1.15, "mem_bw": 144, "simd_width": 32, "warp_size": 32, "sfu_width": 4, "transaction_size": 128,
    "dram_lat": 440, "delta": 20, "avg_inst_lat": 18, "gamma": 64, "active_sms": 14,
}  # fmt: skip
C2050_L1_LATENCY, C2050_L2_LATENCY, C2050_MAX_WARPS = 18, 130, 48


@dataclass(frozen=True)
class GpuPerfInputs:
    """Instruction counts are of one warp, latencies in SM cycles."""

    freq: float  # GHz
    mem_bw: float  # GB/s
    simd_width: float  # lanes that execute at once, of an SM
    sfu_width: float
    transaction_size: float  # B
    dram_lat: float
    delta: float  # between two transactions of a warp's access
    avg_inst_lat: float
    active_sms: float
    n: float  # resident warps of an SM
    total_warps: float
    insts: float
    mem_insts: float
    sync_insts: float = 0.0
    sfu_insts: float = 0.0
    fp_insts: float = 0.0  # for the potential benefits only
    o_cfdiv: float = 0.0  # cycles of an SM
    o_bank: float = 0.0  # cycles of an SM
    avg_trans_warp: float = 1.0  # transactions of a warp's access
    miss_ratio: float = 1.0  # accesses that go to the DRAM
    hit_lat: float = 0.0
    ilp: float = 1.0
    mlp: float = 1.0
    fp_lat: float = 0.0
    total_blocks: float = 0.0
    gamma: float = 64.0
    warp_size: float = 32.0
    issue_width: float = 1.0  # W of Blem's Eq 4.12: warp instructions that an SM issues in a cycle

    def __post_init__(self) -> None:
        positive = ("freq", "mem_bw", "simd_width", "sfu_width", "transaction_size", "dram_lat", "avg_inst_lat",
                    "active_sms", "n", "ilp", "mlp", "warp_size", "issue_width")  # fmt: skip
        for name, value in vars(self).items():
            least = "more than 0" if name in positive else "0 or more"
            if not (math.isfinite(value) and (value > 0 if name in positive else value >= 0)):
                raise PptError(f"GPUPerf needs {name} to be {least}, not {value:g}")
        if self.avg_trans_warp < 1:
            raise PptError(f"GPUPerf needs avg_trans_warp to be 1 or more, not {self.avg_trans_warp:g}")

    @property
    def sm_warps(self) -> float:
        """Warps of one SM over the launch."""
        return self.total_warps / self.active_sms


def record_inputs(steps: Steps, given: GpuPerfInputs) -> None:
    """The inputs that equations name, under the paper's names."""
    for symbol, value, meaning, unit in (
        ("freq", given.freq, "SM clock", "GHz"),
        ("mem_peak_bw", given.mem_bw, "DRAM", "GB/s"),
        ("warp_size", given.warp_size, "", "lanes"),
        ("SIMD_width", given.simd_width, "lanes of an SM", "lanes"),
        ("SFU_width", given.sfu_width, "special function units of an SM", "lanes"),
        ("transaction_size", given.transaction_size, "", "B"),
        ("DRAM_lat", given.dram_lat, "", "cycles"),
        ("delta", given.delta, "between transactions of an access", "cycles"),
        ("avg_inst_lat", given.avg_inst_lat, "mean over the instructions", "cycles"),
        ("gamma", given.gamma, "", ""),
        ("active_SMs", given.active_sms, "", ""),
        ("N", given.n, "resident warps", "warps"),
        ("total_warps", given.total_warps, "launch", "warps"),
        ("insts", given.insts, "of a warp", ""),
        ("mem_insts", given.mem_insts, "of a warp", ""),
        ("sync_insts", given.sync_insts, "of a warp", ""),
        ("SFU_insts", given.sfu_insts, "of a warp", ""),
        ("avg_trans_warp", given.avg_trans_warp, "transactions of an access", ""),
        ("miss_ratio", given.miss_ratio, "accesses that go to the DRAM", ""),
        ("hit_lat", given.hit_lat, "caches", "cycles"),
        ("ILP", given.ilp, "of a warp", ""),
        ("MLP", given.mlp, "of a warp", ""),
        ("O_CFdiv", given.o_cfdiv, "divergence", "cycles"),
        ("O_bank", given.o_bank, "bank conflicts", "cycles"),
    ):
        steps.given(symbol, value, meaning, unit=unit)
    if given.issue_width != 1:
        steps.given("W", given.issue_width, "warp instructions issued in a cycle")
