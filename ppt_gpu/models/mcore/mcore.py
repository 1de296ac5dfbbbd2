"""Blem's model of an M-core, a GPU's SM: equations 4.4, 4.11 and 4.12 of the dissertation, from plain numbers.

E. Blem: Analytic performance models of multicores (2013), section 4.2.2 and Table 4.2, whose names the inputs keep. It
is GPUPerf (`ppt_gpu.models.gpuperf.gpuperf`) with these modules added: instructions are those of the machine with a
latency for each type; instructions of the special function units count among all instructions and as overhead; an SM
that issues several instructions in a cycle has so many times the parallelism (W; the table calls it window size). Blem
has a module of her own for barriers, which the text does not give: they count once a block here, as in a public program
of GPUPerf's equations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ppt_gpu.common.errors import PptError
from ppt_gpu.models.gpuperf.gpuperf import GpuPerf, gpuperf
from ppt_gpu.models.gpuperf.inputs import GpuPerfInputs

WARP_SIZE = 32


@dataclass(frozen=True)
class MCoreSoftware:
    """Counts of one warp, and how many warps there are."""

    W_SM: float  # resident warps of an SM
    total_warps: float  # of the launch
    n_mu: Mapping[str, float]  # machine instructions of each type, those of the special function units included
    N_SFU: float = 0.0  # machine instructions that special function units execute
    N_sync: float = 0.0
    N_CF_div: float = 0.0  # extra instructions because of divergence
    N_con: float = 0.0  # cycles lost to bank conflicts
    ILP: float = 1.0
    MLP: float = 1.0
    N_mem: float = 0.0
    N_off_chip: float = 0.0  # those of N_mem that go to the DRAM
    avg_trans_warp: float = 1.0
    total_blocks: float = 0.0

    @property
    def N_M(self) -> float:
        """Machine instructions of a warp."""
        return sum(self.n_mu.values())


@dataclass(frozen=True)
class MCoreHardware:
    """An SM and its chip."""

    nu: float  # Hz
    SM: float  # SMs
    SP: float  # lanes of an SM
    SFU: float  # special function units of an SM
    l_mu: Mapping[str, float]  # cycles of each type of `n_mu`
    t_mem: float  # cycles
    Delta: float  # cycles between transactions of an access
    BW_max: float  # B/s
    b: float = 128.0  # B of a transaction
    W: float = 1.0  # warp instructions that an SM issues in a cycle
    t_hit: float = 0.0  # cycles of an access that the caches serve
    Gamma: float = 64.0


@dataclass(frozen=True)
class MCore:
    """The estimate of a launch."""

    model: GpuPerf
    software: MCoreSoftware
    hardware: MCoreHardware

    @property
    def cycles(self) -> float:
        return self.model.cycles

    @property
    def seconds(self) -> float:
        """T of Eq 4.4 over the SM's clock."""
        return self.model.cycles / self.hardware.nu

    @property
    def instructions_per_second(self) -> float:
        """Of one SM, in instructions of a thread: P_C of the multicore models. 0 for a launch that takes no time."""
        threads = self.software.N_M * self.software.total_warps * WARP_SIZE / self.hardware.SM
        return threads / self.seconds if self.seconds else 0.0


def m_core(software: MCoreSoftware, hardware: MCoreHardware, *, sync_count: str = "block") -> MCore:
    """The M-core model; `sync_count` as in `gpuperf`.

    Raises PptError for bad inputs, and for a type of instruction without a latency.
    """
    model = gpuperf(gpuperf_inputs(software, hardware), sync_count=sync_count)
    return MCore(model, software, hardware)


def gpuperf_inputs(software: MCoreSoftware, hardware: MCoreHardware) -> GpuPerfInputs:
    """The inputs of the GPUPerf equations that Blem's modules yield."""
    latency = average_latency(software.n_mu, hardware.l_mu)
    itilp = min(software.ILP * software.W_SM, itilp_max(latency, WARP_SIZE, hardware.SP, hardware.W))
    warps = software.total_warps / hardware.SM
    return GpuPerfInputs(
        freq=hardware.nu / 1e9,
        mem_bw=hardware.BW_max / 1e9,
        simd_width=hardware.SP,
        sfu_width=hardware.SFU,
        transaction_size=hardware.b,
        dram_lat=hardware.t_mem,
        delta=hardware.Delta,
        avg_inst_lat=latency,
        active_sms=hardware.SM,
        n=software.W_SM,
        total_warps=software.total_warps,
        total_blocks=software.total_blocks,
        insts=software.N_M,
        mem_insts=software.N_mem,
        sync_insts=software.N_sync,
        sfu_insts=software.N_SFU,
        # Extra instructions take their turn like all others.
        o_cfdiv=software.N_CF_div * warps * latency / itilp,
        o_bank=software.N_con * warps,
        avg_trans_warp=software.avg_trans_warp,
        miss_ratio=min(software.N_off_chip / software.N_mem, 1.0) if software.N_mem else 0.0,
        hit_lat=hardware.t_hit,
        ilp=software.ILP,
        mlp=software.MLP,
        gamma=hardware.Gamma,
        issue_width=hardware.W,
    )


def average_latency(counts: Mapping[str, float], latencies: Mapping[str, float]) -> float:
    """Sum of n x l over sum of n, cycles; 1 without instructions. Raises PptError for a type without a latency."""
    missing = sorted(kind for kind, count in counts.items() if count and kind not in latencies)
    if missing:
        raise PptError(f"no latency for instructions of type {', '.join(missing)}")
    total = sum(counts.values())
    return max(sum(count * latencies[kind] for kind, count in counts.items() if count) / total, 1.0) if total else 1.0


def itilp_max(latency: float, warp_size: float, simd_width: float, issue_width: float = 1.0) -> float:
    """Eq 4.11; with `issue_width` W Eq 4.12: parallel instructions that hide the latency of an SM's pipelines."""
    return issue_width * latency / (warp_size / simd_width)
