"""GPUPerf: equations 1 to 17 and A.1 to A.7 of Sim, Dasgupta, Kim and Vuduc (PPoPP 2012), from numbers to cycles.

T_exec = T_comp + T_mem - T_overlap. It extends Hong and Kim's model by caches, special function units, synchronisation,
and parallelism of instructions (ITILP) and memory requests (ITMLP) among the warps of an SM. Equation numbers are the
paper's; (4.12) is Blem's form of (5) for SMs that issue several instructions in a cycle.

The memory side of GPUPerf: AMAT, CWP, MWP, ITMLP and T_mem (Eq 11 to 15 and A.1 to A.7 of Sim et al. 2012).
"""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.common.errors import PptError
from ppt_gpu.models.base.steps import Step, Steps
from ppt_gpu.models.gpuperf.inputs import GpuPerfInputs, record_inputs


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


SYNC_COUNTS = ("warp", "block")


@dataclass(frozen=True)
class GpuPerf:
    """Every term of the model. Cycles are those of the SM clock."""

    given: GpuPerfInputs
    steps: tuple[Step, ...]

    def __getitem__(self, symbol: str) -> float:
        """The last value of one of the paper's symbols. KeyError when the inputs did not ask for it."""
        return {step.symbol: step.value for step in self.steps}[symbol]

    @property
    def cycles(self) -> float:
        """T_exec, Eq 1."""
        return self["T_exec"]


def gpuperf(given: GpuPerfInputs, *, sync_count: str = "warp") -> GpuPerf:
    """The model. `sync_count` "block" counts a barrier once a block in Eq 7, "warp" once a warp, as printed.

    Raises PptError for bad inputs.
    """
    if sync_count not in SYNC_COUNTS:
        raise PptError(f"sync_count is '{sync_count}'", hint=f"expected {' or '.join(SYNC_COUNTS)}")
    steps = Steps()
    record_inputs(steps, given)
    itilp = _itilp(steps, given)
    dram = steps(
        "avg_DRAM_lat",
        "{DRAM_lat} + ({avg_trans_warp} - 1) x {delta}",
        given.dram_lat + (given.avg_trans_warp - 1) * given.delta,
        number="(13)",
        unit="cycles",
    )
    parallel = steps(
        "W_parallel",
        "{insts} x ({total_warps} / {active_SMs}) x ({avg_inst_lat} / {ITILP})",
        given.insts * given.sm_warps * given.avg_inst_lat / itilp,
        number="(3)",
        unit="cycles",
    )
    serial = _serial(steps, given, dram, sync_count)
    comp = steps("T_comp", "{W_parallel} + {W_serial}", parallel + serial, number="(2)", unit="cycles")
    memory = memory_time(steps, given, dram, given.insts * given.avg_inst_lat / itilp)
    _together(steps, given, comp, memory)
    return GpuPerf(given, tuple(steps.all))


def _itilp(steps: Steps, given: GpuPerfInputs) -> float:
    """Eq 5 (or Blem's 4.12) and 4."""
    most = given.issue_width * given.avg_inst_lat / (given.warp_size / given.simd_width)
    if given.issue_width == 1:
        number, equation = "(5)", "{avg_inst_lat} / ({warp_size} / {SIMD_width})"
    else:
        number, equation = "(4.12)", "{W} x {avg_inst_lat} / ({warp_size} / {SIMD_width})"
    steps("ITILP_max", equation, most, number=number)
    return steps("ITILP", "min({ILP} x {N}, {ITILP_max})", min(given.ilp * given.n, most), number="(4)")


def _serial(steps: Steps, given: GpuPerfInputs, dram: float, sync_count: str) -> float:
    """Eq 6 to 10."""
    insts = max(given.insts, 1.0)
    sync = steps(
        "F_sync",
        "{gamma} x {avg_DRAM_lat} x ({mem_insts} / max({insts}, 1))",
        given.gamma * dram * given.mem_insts / insts,
        number="(8)",
        unit="cycles",
    )
    if sync_count == "block":
        steps.given("total_blocks", given.total_blocks, "launch")
        times, equation = given.total_blocks / given.active_sms, "({total_blocks} / {active_SMs})"
    else:
        times, equation = given.sm_warps, "({total_warps} / {active_SMs})"
    o_sync = steps(
        "O_sync", f"{{sync_insts}} x {equation} x {{F_sync}}", given.sync_insts * times * sync,
        number="(7)", unit="cycles",
    )  # fmt: skip
    share = min(max(given.sfu_insts / insts - given.sfu_width / given.simd_width, 0.0), 1.0)
    equation = "min(max({SFU_insts} / max({insts}, 1) - {SFU_width} / {SIMD_width}, 0), 1)"
    steps("F_SFU", equation, share, number="(10)")
    o_sfu = steps(
        "O_SFU",
        "{SFU_insts} x ({total_warps} / {active_SMs}) x ({warp_size} / {SFU_width}) x {F_SFU}",
        given.sfu_insts * given.sm_warps * given.warp_size / given.sfu_width * share,
        number="(9)",
        unit="cycles",
    )
    total = o_sync + o_sfu + given.o_cfdiv + given.o_bank
    return steps("W_serial", "{O_sync} + {O_SFU} + {O_CFdiv} + {O_bank}", total, number="(6)", unit="cycles")


def _together(steps: Steps, given: GpuPerfInputs, comp: float, memory: float) -> None:
    """Eq 17, 16 and 1."""
    zeta = steps("zeta", "1 if {CWP} <= {MWP} else 0", 1.0 if _value(steps, "CWP") <= _value(steps, "MWP") else 0.0)
    share = steps("F_overlap", "max({N} - {zeta}, 0) / {N}", max(given.n - zeta, 0.0) / given.n, number="(17)")
    overlap = min(comp * share, memory)
    steps("T_overlap", "min({T_comp} x {F_overlap}, {T_mem})", overlap, number="(16)", unit="cycles")
    steps("T_exec", "{T_comp} + {T_mem} - {T_overlap}", comp + memory - overlap, number="(1)", unit="cycles")


def _value(steps: Steps, symbol: str) -> float:
    return next(step.value for step in reversed(steps.all) if step.symbol == symbol)
