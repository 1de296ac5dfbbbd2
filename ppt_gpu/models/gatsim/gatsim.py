"""GATSim as published (paper 001): characterised instructions, scheduled on one SM, scaled to the launch.

As in the paper: a warp waits for each of its memory, SFU and barrier instructions; the latency of a memory instruction
is the sum over the lines that it touches; a load/store unit or SFU is busy for all that latency; an L1 of tags alone
says which lines hit. The paper has one miss latency; here it is the mean over what the L1 asks for, from where the
functional cache simulation finds it. Bandwidth and MSHRs are not modelled.

GATSim's inputs (paper 001, sections II-A to II-D): the kernel characterised once, the warps' streams and accesses.

Characterisation: every instruction of the kernel is issued once, in the order of the text, branches not taken, by one
warp alone. d_{b,i} is the time from its issue to that of the next. Memory is perfect: special instructions (memory,
SFU, barriers) have their result at once there, because Algorithm 1 holds a warp for all of their latency.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.bounds.least_latency import entry_ops, next_entry_holds
from ppt_gpu.bounds.warp_chain import issue_delays
from ppt_gpu.models.base.access_stream import caches_of
from ppt_gpu.models.base.floors import Raised, raised
from ppt_gpu.models.base.model import Estimate, Model, Options, answer
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.steps import Steps
from ppt_gpu.models.base.warp_streams import DoesNotApply
from ppt_gpu.models.gatsim.loop import gatsim_time
from ppt_gpu.models.gatsim.work import (
    ACCESS,
    BARRIER,
    L1_GLOBAL,
    L1_LOCAL,
    LINE_HITS,
    LINE_MISSES,
    MEMORY,
    PERFECT,
    POLICIES,
    REGULAR,
    SFU,
    UNCACHED,
    GatsimMachine,
    GatsimTime,
    GatsimWork,
    TagStore,
)
from ppt_gpu.sm.accesses.scoreboard import schedule
from ppt_gpu.sm.lowering.code import lower_code
from ppt_gpu.sm.program.program import (
    FORCED_L1,
    KIND_COMPUTE,
    KIND_CONSTANT,
    KIND_LOAD,
    KIND_SHARED,
    KIND_STORE,
    RECORDED,
    Program,
    holds_warps,
)
from ppt_gpu.spec.gpu import TASK_CLASSES, Gpu


def instruction_kinds(program: Program) -> NDArray[np.int8]:
    """[O] v_{b,i}: REGULAR, BARRIER, SFU, MEMORY or ACCESS of every static operation."""
    sfu = (program.op_class == TASK_CLASSES.index("sfu")) & (program.op_kind == KIND_COMPUTE)
    kinds = np.full(len(program.op_name), REGULAR, np.int8)
    kinds[holds_warps(program)] = BARRIER
    kinds[sfu] = SFU
    kinds[program.op_kind == KIND_CONSTANT] = MEMORY
    kinds[np.isin(program.op_kind, RECORDED)] = ACCESS
    return kinds


def characterised(inputs: ModelInputs) -> NDArray[np.int64]:
    """[O] d_{b,i} in cycles. A task list has no text: each task counts as at its first execution."""
    program = inputs.program
    latency, hold = _alone(program)
    if inputs.kernel is None or inputs.trace is None:
        delays, _ = issue_delays(program, latency, hold)
        found = np.ones(len(program.op_name), np.int64)
        found[program.entry_op[::-1]] = delays[::-1]  # written backwards: the first execution stays
        return found
    code = lower_code(inputs.kernel, inputs.trace, inputs.gpu).static
    count = len(code.chain_start) - 1
    text = schedule(code, np.array([0, count], np.int64), np.arange(count, dtype=np.int32))
    return issue_delays(text, latency, hold)[0]


def path_delays(inputs: ModelInputs) -> NDArray[np.int64]:
    """[E] d of every instruction of a path as executed, dependences across blocks included (SPEC section 14)."""
    return issue_delays(inputs.program, *_alone(inputs.program))[0]


def _alone(program: Program) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """[O] latencies, and cycles that the next instruction is held back, with special instructions done at once."""
    special = instruction_kinds(program) != REGULAR
    return (
        np.where(special, 1, np.maximum(program.op_latency, 1)).astype(np.int64),
        np.where(special, 0, next_entry_holds(program)),
    )


def gatsim_work(inputs: ModelInputs, delays: NDArray[np.int64]) -> GatsimWork:
    """The warps of the simulated blocks. delays [E] or [O]: d_{b,i} of the regular instructions."""
    program, gpu = inputs.program, inputs.gpu
    kinds = instruction_kinds(program)
    special = np.select(
        [kinds == BARRIER, kinds == SFU], [program.op_latency, _sfu_latency(inputs)], gpu.memory.constant_latency
    )
    of_entry = delays if len(delays) == len(program.entry_op) else delays[program.entry_op]
    entry_kind = kinds[program.entry_op]
    ops = entry_ops(program)
    start, lines = _distinct_lines(program)
    shared = program.op_kind[ops] == KIND_SHARED
    fixed = np.where(shared, gpu.shared.latency + program.access_cycles - 1, 0)
    fixed[~shared & (np.diff(start) == 0)] = gpu.l1.latency
    return GatsimWork(
        path_start=program.path_start,
        entry_kind=entry_kind,
        entry_delay=np.maximum(np.where(entry_kind == REGULAR, of_entry, special[program.entry_op]), 1).astype(
            np.int64
        ),
        warp_path=program.warp_path,
        warp_access=program.warp_access,
        block_warp=program.block_warp,
        access_start=start,
        access_fixed=fixed.astype(np.int64),
        access_store=_stores(program, gpu)[ops],
        access_write=~np.isin(program.op_kind[ops], (KIND_LOAD, KIND_SHARED)),
        access_line=lines,
    )


def gatsim_machine(inputs: ModelInputs, policy: str, miss: float) -> GatsimMachine:
    """The SM. miss: cycles of a line that the L1 does not hold."""
    gpu, caches = inputs.gpu, caches_of(inputs)
    sfu = gpu.pipes[gpu.isa.op("sfu").pipe]
    return GatsimMachine(
        schedulers=gpu.sm.schedulers,
        resident=inputs.resident_blocks,
        memory_units=gpu.pipes[gpu.isa.op("load.global").pipe].lanes,
        sfus=sfu.units * (gpu.sm.schedulers if sfu.scope == "scheduler" else 1),
        policy=policy,
        hit=gpu.l1.latency,
        miss=max(round(miss), 1),
        l1=TagStore(caches.l1_sets, max(caches.l1_ways, 1)),
    )


def _sfu_latency(inputs: ModelInputs) -> NDArray[np.int64]:
    """[O] latency of the specification, and a cycle for each further pass of the active lanes through the SFUs."""
    program, warp = inputs.program, inputs.gpu.sm.warp_size
    active = np.full(len(program.op_name), float(warp))
    if inputs.trace is not None:
        executed = np.maximum(inputs.trace.pc_executed, 1)
        active = (inputs.trace.pc_threads / executed)[program.op_pc]
    passes = [math.ceil(lanes / warp * ii) for lanes, ii in zip(active.tolist(), program.op_ii.tolist(), strict=True)]
    return np.asarray(program.op_latency + np.maximum(np.array(passes, np.int64), 1) - 1, np.int64)


def _stores(program: Program, gpu: Gpu) -> NDArray[np.int8]:
    """[O] the tag store of each operation's accesses."""
    if gpu.perfect_memory:
        return np.full(len(program.op_name), PERFECT, np.int8)
    local = np.array([name.endswith(".local") for name in TASK_CLASSES])[program.op_class]
    return np.where(local, L1_LOCAL, L1_GLOBAL if gpu.l1.caches_global else UNCACHED).astype(np.int8)


def _distinct_lines(program: Program) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(start [M+1], lines): each line of an access once, lowest first; given outcomes one by one, before them."""
    access = np.repeat(np.arange(len(program.access_start) - 1), np.diff(program.access_start))
    known = program.tx_line >= 0
    number = np.where(program.tx_line == FORCED_L1, LINE_HITS, LINE_MISSES)
    number[known] = (program.line_address[program.tx_line[known]] // np.uint64(program.line_bytes)).astype(np.int64)
    order = np.lexsort((number, access))
    access, number = access[order], number[order]
    again = np.zeros(len(number), np.bool_)
    again[1:] = (number[1:] == number[:-1]) & (access[1:] == access[:-1]) & (number[1:] >= 0)
    counts = np.bincount(access[~again], minlength=len(program.access_start) - 1)
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64), number[~again].astype(np.int64)


#: idle cycles by the kind of instruction that the next warp waited for
CAUSES = {REGULAR: "dependence", BARRIER: "barrier", SFU: "SFU", MEMORY: "load/store unit", ACCESS: "memory"}


#: what each says of a kernel that it is the largest of
LIMITERS = {
    "issue": "instruction issue",
    "dependence": "the latency of arithmetic",
    "barrier": "barriers",
    "SFU": "SFUs",
    "load/store unit": "load/store units",
    "memory": "the latency of memory",
    "DRAM bandwidth": "DRAM bandwidth",
}


class Gatsim(Model):
    """Algorithm 1 with concurrent blocks, several schedulers and an L1 of tags."""

    name = "gatsim"
    title = "GATSim abstract timing simulation"
    source = "Punniyamurthy, Boroujerdian, Gerstlauer: GATSim, Algorithm 1 and sections II-C to II-E"

    def estimate(self, inputs: ModelInputs, options: Options) -> Estimate:
        if options.policy not in POLICIES:
            raise DoesNotApply(f"it schedules warps by {', '.join(POLICIES)}, not by {options.policy}")
        steps = Steps()
        miss = self._miss_latency(inputs, steps)
        machine = gatsim_machine(inputs, options.policy, miss)
        steps.given("schedulers", machine.schedulers, "warps picked a cycle, section II-E2")
        steps.given("P", inputs.resident_warps, "warps at once, section II-E1", unit="warps")
        steps.given("units", machine.memory_units, "load/store units, busy for a whole latency")
        steps.given("hit", machine.hit, "L1 latency of a line", unit="cycles")
        found = gatsim_time(gatsim_work(inputs, characterised(inputs)), machine)
        if found.hits + found.misses:
            steps.given("lines", found.hits + found.misses, "lines touched by the memory instructions of one SM")
            steps.given("misses", found.misses, "of them not in the tags of the L1")
        steps.given("issued", found.issued, "warp instructions of the simulated blocks")
        for kind, cause in CAUSES.items():
            steps.given(f"idle[{cause}]", found.idle[kind], "cycles without a ready warp", unit="cycles")
        busy = steps.given("busy", found.cycles - sum(found.idle), "cycles in which a warp issued", unit="cycles")
        idle = " + ".join(f"{{idle[{cause}]}}" for cause in CAUSES.values())
        total = steps("T_s", f"{{busy}} + {idle}", busy + sum(found.idle), number="Alg 1", unit="cycles")
        steps.given("simulated", len(inputs.blocks), "blocks", unit="blocks")
        steps.given("N_s", inputs.sm_blocks, "blocks of the busiest SM", unit="blocks")
        cycles = steps("T", "{T_s} x {N_s} / {simulated}", total * inputs.sm_blocks / len(inputs.blocks), unit="cycles")
        least = raised(inputs, cycles, steps)
        stack = (*_stack(found, busy), *_raise(least, inputs))
        limiter = LIMITERS[max(stack, key=lambda part: part[1])[0]] if found.issued else "nothing"
        notes = (*_notes(inputs), *least.notes)
        return answer(self, inputs, least.cycles, limiter, steps.all, stack=stack, notes=notes)

    def _miss_latency(self, inputs: ModelInputs, steps: Steps) -> float:
        gpu = inputs.gpu
        outcomes = inputs.caches
        loads = inputs.program.op_kind[outcomes.entry_op] != KIND_STORE
        asked = int(outcomes.l2_sectors[loads].sum())
        share = float(outcomes.dram_read[loads].sum()) / asked if asked else 1.0
        steps.given("L2", gpu.l2.latency, "latency of an L2 hit", unit="cycles")
        steps.given("DRAM", gpu.dram.latency, "latency of an L2 miss", unit="cycles")
        steps.given("m_L2", share, "share of what the L1 asks for that the L2 lacks")
        latency = gpu.l2.latency + share * (gpu.dram.latency - gpu.l2.latency)
        return steps("miss", "{L2} + {m_L2} ({DRAM} - {L2})", latency, unit="cycles")


def _stack(found: GatsimTime, busy: float) -> tuple[tuple[str, float], ...]:
    """CPI by cause."""
    if not found.issued:
        return ()
    parts = [("issue", busy), *((cause, found.idle[kind]) for kind, cause in CAUSES.items())]
    return tuple((name, float(cycles) / found.issued) for name, cycles in parts if cycles or name == "issue")


def _raise(least: Raised, inputs: ModelInputs) -> tuple[tuple[str, float], ...]:
    """What the floors added to the CPI."""
    return (("DRAM bandwidth", least.by / inputs.sm_instructions),) if least.by else ()


def _notes(inputs: ModelInputs) -> tuple[str, ...]:
    notes = []
    if inputs.class_counts.get("load.constant"):
        notes.append("traces have no addresses of constants: all of them hit")
    if any(name.startswith("atomic.") for name in inputs.class_counts):
        notes.append("the paper does not model atomics: they count as loads")
    if inputs.kernel is None:
        notes.append("a task list has no text: a task counts as at its first execution")
    return tuple(notes)
