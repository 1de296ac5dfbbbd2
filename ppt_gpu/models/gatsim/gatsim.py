"""GATSim as published (paper 001): characterised instructions, scheduled on one SM, scaled to the launch.

As in the paper: a warp waits for each of its memory, SFU and barrier instructions; the latency of a memory instruction
is the sum over the lines that it touches; a load/store unit or SFU is busy for all that latency; an L1 of tags alone
says which lines hit. The paper has one miss latency; here it is the mean over what the L1 asks for, from where the
functional cache simulation finds it. Bandwidth and MSHRs are not modelled.
"""

from __future__ import annotations

from ppt_gpu.models.base.floors import Raised, raised
from ppt_gpu.models.base.model import Estimate, Model, Options, answer
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.steps import Steps
from ppt_gpu.models.base.warp_streams import DoesNotApply
from ppt_gpu.models.gatsim.loop import gatsim_time
from ppt_gpu.models.gatsim.prepare import characterised, gatsim_machine, gatsim_work
from ppt_gpu.models.gatsim.work import ACCESS, BARRIER, MEMORY, POLICIES, REGULAR, SFU, GatsimTime
from ppt_gpu.sm.program.program import KIND_STORE

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
