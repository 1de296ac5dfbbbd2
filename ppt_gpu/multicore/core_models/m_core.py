"""The M-core model (Blem, section 4.2.2) on the inputs of Table 4.2 and a GPU's description.

The equations are those of `ppt_gpu.models.mcore.mcore`; here its inputs come from a `Gpu` and an occupancy.

What the M-core model reads of a program: Blem's Table 4.2, software inputs, all of one warp.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from ppt_gpu.common.errors import PptError
from ppt_gpu.models.base.steps import Step, Steps
from ppt_gpu.models.hong_kim.tables import memory_parameters
from ppt_gpu.models.mcore.mcore import MCoreHardware, MCoreSoftware, m_core
from ppt_gpu.multicore.base.operations import LARGEST, MACHINE_OPERATION
from ppt_gpu.spec.gpu import Gpu


@dataclass(frozen=True)
class MInputs:
    """Counts of one warp, and how many there are. Raises PptError where they contradict each other."""

    warps: float  # of the whole run
    n_i: Mapping[str, float]  # operations by class (ppt_gpu.multicore.base.operations.CLASSES)
    N_SFU: float = 0.0  # of these, by special function units
    N_sync: float = 0.0  # meetings of the warps of a block
    N_CF_div: float = 0.0  # operations beyond those of a warp whose threads stay together
    N_con: float = 0.0  # cycles lost to conflicts in memory banks
    N_mem: float = 0.0  # accesses of off-chip memory spaces
    N_off_chip: float = 0.0  # of these, those that leave the chip
    avg_trans_warp: float = 1.0  # transactions of an access
    transaction_bytes: float = 128.0  # of a transaction
    ILP: float = 1.0
    MLP: float = 1.0
    name: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, int | float) and not 0 <= value <= LARGEST:
                raise PptError(f"{each.name} is {value:g}; expected a number of 0 to {LARGEST:g}")
        if not self.warps >= 1 or not 1 <= self.N_I * self.warps <= LARGEST:
            text = f"{self.warps:g} warps of {self.N_I:g} operations"
            raise PptError(f"{text}; expected 1 to {LARGEST:g} operations in all, in at least one warp")
        for part, whole in (("N_off_chip", "N_mem"), ("N_SFU", "N_I"), ("N_mem", "N_I")):
            if getattr(self, part) > getattr(self, whole) * (1 + 1e-9):
                text = f"{part} is {getattr(self, part):g}, more than the {getattr(self, whole):g} of {whole}"
                raise PptError(text)
        if self.ILP < 1 or self.MLP < 1 or self.avg_trans_warp < 1:
            raise PptError("ILP, MLP and avg_trans_warp are at least 1")

    @property
    def N_I(self) -> float:
        """Operations."""
        return sum(self.n_i.values())


@dataclass(frozen=True)
class MTime:
    """A prediction for a GPU. Cycles are SM cycles."""

    cycles: float
    time: float  # s
    block: int  # threads
    blocks: float
    resident_warps: float  # of an SM
    active_sms: int
    steps: tuple[Step, ...]
    notes: tuple[str, ...]

    @property
    def limiter(self) -> str:
        """What takes longer, computation or memory."""
        value = {step.symbol: step.value for step in self.steps}
        if value.get("T_bandwidth", 0.0) > value["T_exec"]:
            return "DRAM bandwidth"
        return "computation" if value["T_comp"] >= value["T_mem"] else "memory"


def hardware_of(gpu: Gpu, classes: tuple[str, ...], transaction_bytes: float, active_sms: int) -> MCoreHardware:
    """The core and chip level inputs of Table 4.2 for `gpu`.

    SP counts the lanes of all schedulers, so that W, which Eq 4.12 adds for SMs that issue several instructions, is 1.
    Raises PptError for a GPU without an operation that the program needs.
    """
    parameters = memory_parameters(gpu)
    cached = gpu.compute_capability >= (2, 0)
    sfu = gpu.pipes.get("sfu", gpu.pipes["fp32"])
    return MCoreHardware(
        nu=gpu.sm.clock,
        SM=active_sms,
        SP=gpu.pipes["fp32"].lanes,
        SFU=sfu.lanes,
        l_mu={name: latency_of(gpu, name) for name in classes},
        t_mem=parameters.mem_ld,
        Delta=parameters.dep_uncoal,
        BW_max=gpu.dram.bandwidth * gpu.dram.efficiency,
        b=transaction_bytes,
        t_hit=float(gpu.l2.latency) if cached else 0.0,
    )


def latency_of(gpu: Gpu, name: str) -> float:
    """Cycles of an operation in the pipelines of an SM; what memory adds is counted apart."""
    if name in ("local_load", "local_store"):
        return float(gpu.shared.latency)
    machine = MACHINE_OPERATION.get(name, "int32.mov")
    try:
        return float(gpu.isa.op(machine).latency)
    except KeyError:
        raise PptError(f"'{gpu.name}' has no operation '{machine}' for {name}") from None


def predict(inputs: MInputs, gpu: Gpu, block: int, blocks_per_sm: int, *, literal: bool = False) -> MTime:
    """The time of `inputs` in blocks of `block` threads, of which an SM holds `blocks_per_sm` at once.

    literal: as printed. Otherwise a barrier counts once a block in Eq 7 of GPUPerf, not once a warp, and no run is
    faster than the DRAM moves what leaves the chip (the equations charge an access one transaction of bandwidth).
    """
    per_block = -(-block // gpu.sm.warp_size)
    blocks = max(1.0, inputs.warps / per_block)
    active = int(min(gpu.sm.count, -(-inputs.warps // per_block)))
    resident = min(float(blocks_per_sm * per_block), -(-inputs.warps // active))
    software = MCoreSoftware(
        W_SM=max(1.0, resident),
        total_warps=inputs.warps,
        n_mu=inputs.n_i,
        N_SFU=inputs.N_SFU,
        N_sync=inputs.N_sync,
        N_CF_div=inputs.N_CF_div,
        N_con=inputs.N_con,
        ILP=inputs.ILP,
        MLP=inputs.MLP,
        N_mem=inputs.N_mem,
        N_off_chip=inputs.N_off_chip,
        avg_trans_warp=inputs.avg_trans_warp,
        total_blocks=blocks,
    )
    hardware = hardware_of(gpu, tuple(inputs.n_i), inputs.transaction_bytes, active)
    found = m_core(software, hardware, sync_count="warp" if literal else "block")
    cycles, steps = found.cycles, Steps()
    if not literal:
        cycles = max(cycles, _bandwidth_floor(inputs, gpu, hardware, steps))
    shown = (*found.model.steps, *steps.all)
    return MTime(cycles, cycles / gpu.sm.clock, block, blocks, software.W_SM, active, shown, inputs.notes)


def _bandwidth_floor(inputs: MInputs, gpu: Gpu, hardware: MCoreHardware, steps: Steps) -> float:
    """Cycles in which the DRAM moves what leaves the chip: lines where a cache gathers them, else every transaction."""
    cached = gpu.compute_capability >= (2, 0)
    of_access = float(gpu.l2.line) if cached else inputs.avg_trans_warp * hardware.b
    moved = steps(
        "B", "N_off_chip x bytes of an access x warps", inputs.N_off_chip * of_access * inputs.warps, unit="B"
    )
    return steps("T_bandwidth", "{B} / BW_max x nu", moved / hardware.BW_max * hardware.nu, unit="cycles")
