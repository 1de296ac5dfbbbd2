"""What the MWP-CWP model reads: Table 1 of Hong and Kim's paper, with the paper's names in the printed steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ppt_gpu.common.errors import PptError
from ppt_gpu.models.base.steps import Steps


@dataclass(frozen=True)
class HongKimInputs:
    """Table 1 of the paper. Instruction counts are of one thread, which is one warp of code that does not diverge."""

    mem_ld: float  # cycles, round trip to the DRAM (Mem_LD)
    dep_uncoal: float  # cycles between transactions of an uncoalesced access (Departure_del_uncoal)
    dep_coal: float  # cycles between coalesced transactions (Departure_del_coal)
    freq: float  # GHz
    mem_bandwidth: float  # GB/s
    threads_per_block: int
    blocks: float
    active_sms: int
    active_blocks_per_sm: int
    comp_insts: float
    uncoal_mem_insts: float
    coal_mem_insts: float
    synch_insts: float = 0.0
    uncoal_per_mw: float = 32.0  # transactions of a warp's uncoalesced access
    load_bytes_per_warp: float = 128.0
    issue_cycles: float = 4.0
    threads_per_warp: int = 32
    ind_mem_req: float = 0.0  # memory requests of a warp that need not wait for the one before (Eq 29)
    m_factor: float = 1.0  # mean over the instructions (Eq 31)

    def __post_init__(self) -> None:
        positive = ("mem_ld", "freq", "mem_bandwidth", "threads_per_block", "blocks", "active_sms",
                    "active_blocks_per_sm", "issue_cycles", "threads_per_warp", "load_bytes_per_warp")  # fmt: skip
        if self.uncoal_per_mw < 1:
            raise PptError(f"an uncoalesced access makes at least one transaction, not {self.uncoal_per_mw:g}")
        for name, value in vars(self).items():
            least = "more than 0" if name in positive else "0 or more"
            if not (math.isfinite(value) and (value > 0 if name in positive else value >= 0)):
                raise PptError(f"the MWP-CWP model needs {name} to be {least}, not {value:g}")

    @property
    def warps_per_block(self) -> int:
        return math.ceil(self.threads_per_block / self.threads_per_warp)

    @property
    def mem_insts(self) -> float:
        return self.uncoal_mem_insts + self.coal_mem_insts

    @property
    def total_insts(self) -> float:
        return self.comp_insts + self.mem_insts


def record_inputs(steps: Steps, given: HongKimInputs) -> None:
    """Table 1, as far as equations name it."""
    memory = given.mem_insts > 0
    for symbol, value, meaning, unit, asked in (
        ("#Threads_per_warp", given.threads_per_warp, "Table 1", "", True),
        ("Issue_cycles", given.issue_cycles, "a warp instruction", "cycles", True),
        ("M_Factor", given.m_factor, "mean over the instructions, Table 7", "", given.m_factor != 1),
        ("Freq", given.freq, "SM clock", "GHz", memory),
        ("Mem_Bandwidth", given.mem_bandwidth, "DRAM", "GB/s", memory),
        ("Mem_LD", given.mem_ld, "DRAM round trip", "cycles", memory),
        ("Departure_del_uncoal", given.dep_uncoal, "between transactions of an access", "cycles", memory),
        ("Departure_del_coal", given.dep_coal, "between coalesced accesses", "cycles", memory),
        ("#Threads_per_block", given.threads_per_block, "launch", "", True),
        ("#Blocks", given.blocks, "launch", "", True),
        ("#Active_SMs", given.active_sms, "SMs with a block", "", True),
        ("#Active_blocks_per_SM", given.active_blocks_per_sm, "occupancy", "", True),
        ("#Comp_insts", given.comp_insts, "of a thread", "", True),
        ("#Uncoal_Mem_insts", given.uncoal_mem_insts, "of a thread", "", True),
        ("#Coal_Mem_insts", given.coal_mem_insts, "of a thread", "", True),
        ("#synch_insts", given.synch_insts, "of a thread", "", memory),
        ("#Uncoal_per_mw", given.uncoal_per_mw, "transactions of an uncoalesced access of a warp", "", memory),
        ("Load_bytes_per_warp", given.load_bytes_per_warp, "of a warp's access", "B", memory),
        ("#ind_mem_req", given.ind_mem_req, "requests that need not wait for the one before", "", memory),
    ):
        if asked:
            steps.given(symbol, value, meaning, unit=unit)
