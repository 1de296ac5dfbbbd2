"""A program measured on one side, predicted on the other: CPU core or GPU, by way of the representation or directly.

The generic prediction for an S-core: the interval models as published, without the modules of Blem's chapter 4.

No micro-ops, ports, third cache or TLBs: instructions at the decode width, misses of the L2 to memory. The dissertation
sets such predictions beside its own ("generic", section 4.3.1); on the Xeon their mean error is 1.7 times as large.

Counters of a CPU run as inputs of the S-core model, with nothing translated (Blem, chapter 4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ppt_gpu.common.errors import PptError
from ppt_gpu.multicore.base.core import SCore
from ppt_gpu.multicore.base.operations import LOADS, STORES
from ppt_gpu.multicore.core_models import m_core, s_core
from ppt_gpu.multicore.core_models.interval import Cycles, in_order, out_of_order
from ppt_gpu.multicore.core_models.m_core import MInputs
from ppt_gpu.multicore.core_models.s_inputs import USUAL_ILP, USUAL_ILP_W2, SInputs
from ppt_gpu.multicore.core_models.s_memory import misses_together
from ppt_gpu.multicore.port.accuracy import Accuracy, of_core, of_gpu
from ppt_gpu.multicore.representation.counters import Counters
from ppt_gpu.multicore.representation.ir import Ir
from ppt_gpu.multicore.representation.ir_from_counters import ir_of_counters, operation_counts
from ppt_gpu.multicore.representation.ir_to_m import WARP, WARPS_PER_BLOCK, m_inputs_of_ir, search_block
from ppt_gpu.multicore.representation.ir_to_s import s_inputs_of_ir
from ppt_gpu.spec.gpu import Gpu


def s_inputs_of_counters(counters: Counters, core: SCore, name: str) -> SInputs:
    """The inputs of the run that `counters` measured. Raises PptError where they name no operations."""
    notes: list[str] = []
    counts = operation_counts(counters, notes)
    if core.out_of_order and "ilp" not in counters.values:
        notes.append(f"no ilp: taken as {USUAL_ILP} (section 5.2.1)")
    if not core.out_of_order and "ilp_window2" not in counters.values:
        notes.append(f"no ilp_window2: taken as {USUAL_ILP_W2}")
    if core.l3 is not None and "l3_misses" not in counters.values:
        notes.append("no l3_misses: taken as 0")
    overlapped = counters.get("l3_misses_overlapped") if "l3_misses_overlapped" in counters.values else None
    return SInputs(
        n_i=counts,
        name=name,
        f_inf=counters.get("parallel_fraction", 1.0),
        N_M=counters.get("uops") if "uops" in counters.values else None,
        ILP=counters.get("ilp", USUAL_ILP),
        ILP_w2=counters.get("ilp_window2", USUAL_ILP_W2),
        N_mL1=counters.get("l1_misses"),
        N_mL2=counters.get("l2_misses"),
        N_mL3=counters.get("l3_misses"),
        N_mL3_o=overlapped,
        N_mITLB=counters.get("itlb_misses"),
        N_mDTLB=counters.get("dtlb_misses"),
        N_mbr=counters.get("branch_misses"),
        simd_memory=counters.get("simd_share"),
        notes=tuple(notes),
    )


def generic(inputs: SInputs, core: SCore) -> Cycles:
    """Cycles of one thread by Eyerman et al. (out of order) or Breughe et al. (in order)."""
    if core.out_of_order:
        return out_of_order(
            instructions=inputs.operations,
            width=core.instruction_width,
            l1i_misses=0.0,
            l2i_misses=0.0,
            mispredicts=inputs.N_mbr,
            isolated_misses=inputs.N_mL2 / misses_together(inputs, core, inputs.N_mL2),
            l1i_penalty=core.l2.latency,
            memory_penalty=core.memory_cycles,
            drain=core.drain,
            front_end=core.front_end,
        )
    long = [
        (count, core.operations[name].latency)
        for name, count in inputs.n_i.items()
        if name not in (*LOADS, *STORES) and core.operations[name].latency > 1
    ]
    return in_order(
        instructions=inputs.operations,
        width=core.instruction_width,
        misses=[(max(inputs.N_mL1 - inputs.N_mL2, 0.0), core.l2.latency), (inputs.N_mL2, core.memory_cycles)],
        mispredicts=inputs.N_mbr,
        front_end=core.front_end,
        long_operations=long,
        unit_dependences={1: (2 - inputs.ILP_w2) * inputs.operations},
    )


#: blocks of so many threads that an SM holds at once; 0: it holds none
Resident = Callable[[int], int]


@dataclass(frozen=True)
class Settings:
    """What the user may choose."""

    literal: bool = False
    cores: int = 1
    own_ilp: bool = False
    on_chip: float | None = None  # C_on-chip of Eq 5.1, B
    parallel: float | None = None  # f
    block: int | None = None  # threads; None: that of the source, else the fastest


@dataclass(frozen=True)
class Ported:
    """A prediction with all that led to it."""

    target: str
    program: str
    ir: Ir | None  # None: counters went straight into the S-core model
    inputs: SInputs | MInputs
    result: s_core.STime | m_core.MTime
    accuracy: Accuracy
    measured: float | None  # s, where the counters say
    tried: Mapping[int, float]  # threads of a block -> s, where a search was made
    again: Callable[[Any], float]  # the time for other inputs, s
    generic: float | None = None  # s on one core by the published interval model; None: a GPU

    @property
    def time(self) -> float:
        return self.result.time


def to_core(ir: Ir, core: SCore, settings: Settings) -> Ported:
    """`ir` on cores of a CPU."""
    inputs = s_inputs_of_ir(ir, core, own_ilp=settings.own_ilp, on_chip=settings.on_chip)
    return _on_core(ir, inputs, core, settings, of_core(core, translated=ir.group_threads > 0), None)


def counters_to_core(counters: Counters, core: SCore, name: str, settings: Settings) -> Ported:
    """The run that `counters` measured on the same core, or one that misses its caches alike."""
    inputs = s_inputs_of_counters(counters, core, name)
    return _on_core(None, inputs, core, settings, of_core(core, translated=False), measured_time(counters))


def _on_core(
    ir: Ir | None, inputs: SInputs, core: SCore, settings: Settings, accuracy: Accuracy, measured: float | None
) -> Ported:
    if settings.parallel is not None:
        inputs = replace(inputs, f_inf=settings.parallel)
    options = s_core.Options(literal=settings.literal, cores=settings.cores)
    result = s_core.predict(inputs, core, options)

    def again(changed: SInputs) -> float:
        return s_core.predict(changed, core, options).time

    plain = generic(inputs, core).cycles / core.clock
    return Ported(core.name, inputs.name, ir, inputs, result, accuracy, measured, {}, again, plain)


def to_gpu(ir: Ir, gpu: Gpu, resident: Resident, settings: Settings, measured: float | None = None) -> Ported:
    """`ir` on `gpu`: in blocks of the given size, else of the source's, else of the fastest.

    Raises PptError when no block fits an SM.
    """
    inputs = m_inputs_of_ir(ir, gpu)
    accuracy = of_gpu(gpu, translated=not ir.group_threads)

    def at(block: int, given: MInputs = inputs) -> m_core.MTime:
        held = resident(block)
        if not held:
            raise PptError(f"a block of {block} threads does not fit an SM of '{gpu.name}'")
        return m_core.predict(given, gpu, block, held, literal=settings.literal)

    chosen, tried = settings.block or ir.group_threads, {}
    if not chosen and settings.literal:
        chosen = WARPS_PER_BLOCK * WARP
    if not chosen:
        sizes = [size for size in range(WARP, gpu.sm.max_threads_per_block + 1, WARP) if resident(size)]
        if not sizes:
            raise PptError(f"no block fits an SM of '{gpu.name}'")
        tried = {size: at(size).time for size in sizes}
        chosen, _ = search_block(tried.__getitem__, sizes)

    def again(changed: MInputs) -> float:
        return at(chosen, changed).time

    return Ported(gpu.name, ir.name, ir, inputs, at(chosen), accuracy, measured, tried, again)


def counters_to_gpu(counters: Counters, gpu: Gpu, name: str, resident: Resident, settings: Settings) -> Ported:
    """The run that `counters` measured on a CPU, on `gpu`."""
    return to_gpu(ir_of_counters(counters, name), gpu, resident, settings, measured_time(counters))


def measured_time(counters: Counters) -> float | None:
    """Seconds of the run itself, where the counters say."""
    return counters.get("time") or None
