"""A program measured on one side, predicted on the other: CPU core or GPU, by way of the representation or directly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ppt_gpu.common.errors import PptError
from ppt_gpu.multicore.base.core import SCore
from ppt_gpu.multicore.core_models import m_core, s_core
from ppt_gpu.multicore.core_models.m_inputs import MInputs
from ppt_gpu.multicore.core_models.s_inputs import SInputs
from ppt_gpu.multicore.dark_silicon.generic import generic
from ppt_gpu.multicore.port.accuracy import Accuracy, of_core, of_gpu
from ppt_gpu.multicore.representation.counters import Counters
from ppt_gpu.multicore.representation.ir import Ir
from ppt_gpu.multicore.representation.ir_from_counters import ir_of_counters
from ppt_gpu.multicore.representation.ir_to_m import WARP, WARPS_PER_BLOCK, m_inputs_of_ir, search_block
from ppt_gpu.multicore.representation.ir_to_s import s_inputs_of_ir
from ppt_gpu.multicore.representation.s_inputs_measured import s_inputs_of_counters
from ppt_gpu.spec.gpu import Gpu

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
