"""What Hong and Kim's model reads of a kernel: instruction counts of a thread, and how its accesses coalesce.

Instructions are those of the PTX text, as often as the trace says, all paths of a diverging warp one after another
(sections 3.4.3 and 6.3); shared, constant and parameter accesses count as computation. Whether an access is coalesced
is found from its address (`ppt_gpu.models.affine.registers` and the paper's Algorithms 1 and 2) where that is affine
in the indices of threads, blocks and loops, and counted from the addresses of the trace where it is not.

Static detection of coalesced accesses: Algorithms 1 and 2 of Hong and Kim's appendix.

Both judge an access data[Index] by how Index, counted in elements, depends on the thread index tx: by its increment,
and by its values at the first thread of every half warp. Algorithm 1 is for compute capabilities below 1.3, Algorithm 2
for 1.3 and later. The paper does not say how the transactions of half warps count for a warp; here a warp makes those
of two half warps, and its access is coalesced when each of them makes one. Algorithm 2 as printed knows no end for
large strides; 16 threads make 16 transactions at most, which only `literal` goes beyond.

Long-latency computation in Hong and Kim's model: Table 7 and Eq 31.

M_Factor is 1 for an instruction that all SPs of an SM execute at full rate, and as much more as its rate is lower.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.models.affine.affine import Affine
from ppt_gpu.models.affine.registers import affine_addresses
from ppt_gpu.models.affine.static_accesses import OffChip, off_chip_accesses, transactions_of
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.warp_streams import DoesNotApply
from ppt_gpu.models.base.warp_waits import warp_waits
from ppt_gpu.models.hong_kim.inputs import HongKimInputs
from ppt_gpu.models.hong_kim.tables import memory_parameters
from ppt_gpu.ptx.instructions import is_barrier, is_memory, operation
from ppt_gpu.ptx.module import Instruction
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.tasklist.expand import machine_operations
from ppt_gpu.workload.workload import Dim3

#: Table 7, right column: measured on GPUs of compute capability 1.x
TABLE_7 = {"FPadd": 1.0, "FPmul": 1.0, "FPmad": 1.0, "Intadd": 1.0, "FPdiv": 4.2, "Intmul": 4.3, "Intdiv": 30.0,
           "Modulo": 35.0}  # fmt: skip
#: Table 7, middle column: from the CUDA manual
TABLE_7_MANUAL = {"FPadd": 1.0, "FPmul": 1.0, "FPmad": 1.0, "Intadd": 1.0, "FPdiv": 4.0, "Intmul": 4.0}


def table_7_row(instruction: Instruction) -> str:
    """The row of Table 7 that an instruction belongs to; whatever it does not list is as fast as an addition."""
    name = operation(instruction)
    if name.startswith(("fp32.div", "fp64.div")):
        return "FPdiv"
    if name.startswith("int32.div"):
        return "Modulo" if instruction.base == "rem" else "Intdiv"
    # A product of 24-bit integers is one of the fast ones (CUDA manual).
    if name.startswith(("int32.mul", "int32.mad")) and instruction.base not in ("mul24", "mad24"):
        return "Intmul"
    return "Intadd"


def m_factor(instruction: Instruction, gpu: Gpu, issue_cycles: float) -> float:
    """M_Factor of a computation instruction: Table 7 for compute capability 1.x, of which it was measured.

    For later GPUs by the same definition, from the intervals of their machine operations: cycles that the SM's units
    need for one warp instruction, over `issue_cycles`.
    """
    if gpu.compute_capability < (2, 0):
        return TABLE_7[table_7_row(instruction)]
    if is_memory(instruction):
        return 1.0
    return sum(max(op_interval(name, gpu) / issue_cycles, 1.0) for name in machine_operations(instruction, gpu.isa))


def op_interval(name: str, gpu: Gpu) -> float:
    """Cycles between two warp instructions of a machine operation on one SM, all its units together."""
    op = gpu.isa.op(name)
    pipe = gpu.pipes[op.pipe]
    return op.ii / (pipe.units * (gpu.sm.schedulers if pipe.scope == "scheduler" else 1))


def comp_cycles(issue_cycles: float, counts: Mapping[str, float], factors: Mapping[str, float]) -> float:
    """Eq 31: issue cycles x the sum over instruction types of their number x their M_Factor, cycles."""
    return issue_cycles * sum(count * factors[kind] for kind, count in counts.items())


HALF_WARP = 16
#: what the index at the first thread of a half warp is to be divisible by
INDEX_UNIT = 16
#: transactions of a warp whose access is not coalesced, below compute capability 1.3 (Table 3)
UNCOALESCED = 32


@dataclass(frozen=True)
class Transactions:
    """What Algorithm 2 yields for a half warp."""

    count: int
    size: int  # B


@dataclass(frozen=True)
class Judgement:
    """A warp's access: coalesced into one transaction or not, and how many it makes otherwise."""

    coalesced: bool
    transactions: float


def algorithm_1(size: int, increment: Fraction, aligned: bool) -> bool:
    """Is an access of `size` bytes a thread coalesced?

    increment: d/d(tx) Index. aligned: Index at the first thread of every half warp is divisible by 16.
    """
    return size in (4, 8, 16) and increment == 1 and aligned


def algorithm_2(size: int, increment: Fraction, aligned: bool, *, literal: bool = False) -> Transactions:
    """Transactions of a half warp; arguments as in `algorithm_1`.

    Threads that all access one element (increment 0) make one transaction, of which the formula has none.
    """
    segment = {1: 32, 2: 64}.get(size, 128)
    count = (0 if aligned else 1) + -(-abs(increment) * HALF_WARP * size // segment)
    largest = max(HALF_WARP, HALF_WARP * size // segment)
    return Transactions(max(int(count if literal else min(count, largest)), 1), segment)


def judge(
    address: Affine, size: int, block: Dim3, capability: tuple[int, int], *, literal: bool = False
) -> Judgement | None:
    """The algorithm of the compute capability, applied to an access of `size` bytes a thread at `address`.

    None where the half warps of a block are not rows of threads along x, so that no one increment describes them.
    """
    view = half_warps(address, size, block)
    if view is None:
        return None
    increment, aligned = view
    if capability < (1, 3):
        coalesced = algorithm_1(size, increment, aligned)
        return Judgement(coalesced, 1 if coalesced else UNCOALESCED)
    count = algorithm_2(size, increment, aligned, literal=literal).count
    return Judgement(count == 1, 1 if count == 1 else 2 * count)


def half_warps(address: Affine, size: int, block: Dim3) -> tuple[Fraction, bool] | None:
    """(d/d(tx) Index, is Index at the first thread of every half warp divisible by 16) of an address in bytes."""
    steps = dict(address.terms)
    if block[0] % HALF_WARP and block[1] * block[2] > 1 and any(name.startswith("tid") for name in steps):
        # Half warps span rows; they are rows of a larger x all the same where the address runs on from row to row.
        row = block[0] * steps.get("tid.x", 0)
        plane = row * block[1]
        if any(name.startswith("tid.x ") for name in steps):
            return None
        if steps.pop("tid.y", row if block[1] == 1 else 0) != row:
            return None
        if steps.pop("tid.z", plane if block[2] == 1 else 0) != plane:
            return None
    along = {name: step for name, step in steps.items() if _follows_lanes(name)}
    others = [step for name, step in steps.items() if name not in along]
    whole = INDEX_UNIT * size
    # A half warp starts at a multiple of 16 of everything that follows its lanes.
    aligned = address.constant % whole == 0 and all(step % whole == 0 for step in others)
    aligned = aligned and all(step * HALF_WARP % whole == 0 for step in along.values())
    return Fraction(sum(along.values()), size), aligned


def _follows_lanes(symbol: str) -> bool:
    """Does a symbol rise by 1 from lane to lane of a half warp?"""
    return symbol in ("tid.x", "laneid") or symbol.startswith(("tid.x mod", "laneid mod"))


@dataclass(frozen=True)
class Coalescing:
    """Executions of off-chip instructions over all simulated warps."""

    coalesced: float
    uncoalesced: float
    transactions: float  # of the uncoalesced ones
    bytes: float  # of all, lanes x bytes a lane
    static: int  # instructions judged by their address
    counted: int  # instructions judged by the trace

    @property
    def per_uncoalesced(self) -> float:
        """#Uncoal_per_mw: mean; 1 where every access is coalesced."""
        return max(self.transactions / self.uncoalesced, 1.0) if self.uncoalesced else 1.0


def coalescing(inputs: ModelInputs, *, literal: bool = False) -> Coalescing:
    """How the launch's accesses coalesce on its GPU. DoesNotApply for a task list."""
    kernel, trace, gpu = inputs.need_kernel(), inputs.need_trace(), inputs.gpu
    # As the algorithms: in order below compute capability 1.3, as few segments as need be from there on.
    rule = "half_warp_1.0" if gpu.compute_capability < (1, 3) else "half_warp_1.2"
    addresses = affine_addresses(kernel, inputs.launch)
    coalesced = uncoalesced = transactions = moved = 0.0
    static = counted = 0
    for access in off_chip_accesses(inputs):
        address = addresses.get(access.pc)
        verdict: Judgement | None = None
        if access.local:  # lanes are interleaved
            verdict = Judgement(True, 1)
        elif address is not None:
            verdict = judge(address, access.bytes, inputs.launch.block, gpu.compute_capability, literal=literal)
        static, counted = static + (verdict is not None), counted + (verdict is None)
        share, count = _from_trace(trace, access, rule) if verdict is None else _from_address(verdict)
        coalesced += share * access.executed
        uncoalesced += (1 - share) * access.executed
        transactions += (1 - share) * access.executed * count
        moved += access.executed * access.bytes * gpu.sm.warp_size
    return Coalescing(coalesced, uncoalesced, transactions, moved, static, counted)


def _from_address(verdict: Judgement) -> tuple[float, float]:
    return (1.0, 1.0) if verdict.coalesced else (0.0, verdict.transactions)


def _from_trace(trace: Trace, access: OffChip, rule: str) -> tuple[float, float]:
    """(share of the accesses that are coalesced, mean transactions of the others).

    As in the static algorithms, one transaction for each half warp with an active lane is coalesced; where they must
    be in order two, if 16 lanes of 16 B need 256 B.
    """
    found = transactions_of(trace, access, rule)
    mask = trace.pattern_mask[trace.access_pattern[access.access]].astype(np.int64)
    halves = ((mask & 0xFFFF) != 0).astype(np.int64) + ((mask >> 16) != 0)
    least = halves * (2 if access.bytes == 16 and rule == "half_warp_1.0" else 1)
    good = found <= least
    rest = found[~good]
    return float(good.mean()), float(rest.mean()) if len(rest) else 1.0


def hong_kim_inputs(inputs: ModelInputs, *, literal: bool = False) -> tuple[HongKimInputs, tuple[str, ...]]:
    """Table 1 for a launch on a GPU, and notes on what was assumed. DoesNotApply where it cannot be filled."""
    kernel, trace, gpu = inputs.need_kernel(), inputs.need_trace(), inputs.gpu
    warps = trace.warps
    executed = trace.pc_executed / max(warps, 1)
    total = float(executed.sum())
    if not total:
        raise DoesNotApply("no warp executes an instruction")
    found = coalescing(inputs, literal=literal)
    memory_executed = (found.coalesced + found.uncoalesced) / warps
    issue = issue_cycles(inputs)
    factors = np.array([m_factor(item, gpu, issue) for item in kernel.instructions])
    barriers = np.array([is_barrier(item) for item in kernel.instructions], np.bool_)
    parameters = memory_parameters(gpu)
    given = HongKimInputs(
        mem_ld=parameters.mem_ld,
        dep_uncoal=parameters.dep_uncoal,
        dep_coal=parameters.dep_coal,
        freq=gpu.sm.clock / 1e9,
        mem_bandwidth=gpu.dram.bandwidth / 1e9,
        threads_per_block=inputs.launch.threads_per_block,
        blocks=inputs.grid_blocks,
        active_sms=inputs.active_sms,
        active_blocks_per_sm=inputs.resident_blocks,
        comp_insts=max(total - memory_executed, 0.0),
        uncoal_mem_insts=found.uncoalesced / warps,
        coal_mem_insts=found.coalesced / warps,
        synch_insts=float(executed[barriers].sum()),
        uncoal_per_mw=found.per_uncoalesced,
        load_bytes_per_warp=found.bytes / (memory_executed * warps) if memory_executed else 128.0,
        issue_cycles=issue,
        threads_per_warp=gpu.sm.warp_size,
        ind_mem_req=min(warp_waits(inputs).independent_requests, memory_executed),
        m_factor=float(executed @ factors) / total,
    )
    return given, _notes(found, parameters.source)


def issue_cycles(inputs: ModelInputs) -> float:
    """Cycles in which an SM issues one warp instruction: 4 with 8 SPs."""
    gpu = inputs.gpu
    return max(gpu.sm.warp_size / gpu.pipes["fp32"].lanes, 1 / inputs.issue_rate)


def _notes(found: Coalescing, source: str) -> tuple[str, ...]:
    notes = [f"Mem_LD and departure delays: {source}"]
    if found.static + found.counted:
        text = f"coalescing: {found.static} memory instructions by their address, {found.counted} counted in the trace"
        notes.append(text)
    return tuple(notes)
