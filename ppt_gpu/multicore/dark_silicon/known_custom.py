"""The custom models for known cores (Blem, figures 4.18 and 5.6): seconds of programs on symmetric chips of them.

S-cores by the model of chapter 4 on inputs from the program's representation, M-cores by the M-core model, both with
the chip's bandwidth. A node raises the clock; caches stay as many cycles away, memory as many seconds.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.multicore.base.core_file import load_core
from ppt_gpu.multicore.base.device_scaling import Node
from ppt_gpu.multicore.base.operations import MEMORY
from ppt_gpu.multicore.core_models import m_core, s_core
from ppt_gpu.multicore.core_models.m_core import MInputs
from ppt_gpu.multicore.core_models.s_inputs import SInputs
from ppt_gpu.multicore.dark_silicon.known_cores import KnownCore, KnownCores
from ppt_gpu.multicore.dark_silicon.known_upper_bound import Kernels
from ppt_gpu.multicore.representation.ir import Ir
from ppt_gpu.multicore.representation.ir_to_m import WARP, m_inputs_of_ir, transactions_of_access
from ppt_gpu.multicore.representation.ir_to_s import s_inputs_of_ir
from ppt_gpu.spec import Gpu, load_gpu

#: blocks that an SM holds at once, by GPU, threads of a block, registers of a thread, B of shared memory of a block
Resident = Callable[[Gpu, int, int, int], int]


@dataclass(frozen=True)
class Part:
    """One launch of a program, what a block of it needs, and how often it runs."""

    ir: Ir
    registers: int
    shared: int
    runs: int


@dataclass(frozen=True)
class Program:
    """A program as its launches."""

    name: str
    parts: tuple[Part, ...]


def kernels_of(programs: tuple[Program, ...]) -> Kernels:
    """What the upper-bound model reads of programs; the footprint is that of the launch with the largest."""

    def total(of: Callable[[Ir], float], program: Program) -> float:
        return sum(part.runs * of(part.ir) for part in program.parts)

    def instructions(ir: Ir) -> float:
        return sum(amount.threads for amount in ir.operations.values())

    def leaving(ir: Ir) -> float:
        return ir.count(*MEMORY).threads

    def bytes_moved(ir: Ir, gpu: Gpu) -> float:
        transactions, size = transactions_of_access(ir, gpu)
        return leaving(ir) * transactions * size / WARP

    accesses = np.array([total(lambda ir: ir.accesses.threads, program) for program in programs])
    global_ones = np.array([total(leaving, program) for program in programs])

    def moved(gpu: Gpu) -> NDArray[np.float64]:
        found = np.array([total(lambda ir: bytes_moved(ir, gpu), program) for program in programs])
        return np.asarray(found / np.maximum(global_ones, 1.0))

    return Kernels(
        tuple(program.name for program in programs),
        np.array([total(instructions, program) for program in programs]),
        accesses,
        np.array([max(part.ir.footprint for part in program.parts) for program in programs]),
        global_ones / np.maximum(accesses, 1.0),
        moved,
    )


class CustomTime:
    """Seconds on a chip, as `ppt_gpu.multicore.dark_silicon.known_projection.ChipTime`, by the custom models.

    `error`: every input of every core is off by a random share of up to so much, the same at all nodes; `seed` picks
    the errors (Blem, section 5.5, has 0.2).
    """

    def __init__(
        self,
        known: KnownCores,
        programs: tuple[Program, ...],
        resident: Resident,
        *,
        error: float = 0.0,
        seed: int = 0,
    ) -> None:
        if not 0 <= error < 1:
            raise PptError(f"an error of {error:g} in the inputs", hint="at least 0 and less than 1")
        self.known = known
        self.programs = programs
        self.resident = resident
        self.error = error
        self.seed = seed
        self.s_cores = {core.name: load_core(core.file) for core in known.of("s")}
        self.gpus = {core.name: load_gpu(core.file) for core in known.of("m")}
        self._s_inputs: dict[tuple[str, int], SInputs] = {}  # by core and identity of the part

    def __call__(self, core: KnownCore, node: Node, count: int) -> NDArray[np.float64]:
        """Seconds of each program; infinite where an M-core cannot run it."""
        one = self._s if core.kind == "s" else self._m
        return np.array(
            [sum(one(core, node, count, program, part) for part in program.parts) for program in self.programs]
        )

    def _s(self, known: KnownCore, node: Node, count: int, program: Program, part: Part) -> float:
        core = self.s_cores[known.name]
        chip = replace(core, clock=core.clock * node.clock, cores=count, bandwidth=self.known.bandwidth)
        key = (known.name, id(part))
        if key not in self._s_inputs:
            inputs = replace(s_inputs_of_ir(part.ir, core), f_inf=self.known.parallel["s"])
            self._s_inputs[key] = off_s(inputs, self._errors(known, program, part)) if self.error else inputs
        inputs = self._s_inputs[key]
        return part.runs * s_core.predict(inputs, chip, s_core.Options(cores=count)).time

    def _m(self, known: KnownCore, node: Node, count: int, program: Program, part: Part) -> float:
        gpu = self.gpus[known.name]
        chip = replace(
            gpu,
            sm=replace(gpu.sm, count=count, clock=gpu.sm.clock * node.clock),
            dram=replace(
                gpu.dram, bandwidth=self.known.bandwidth, latency=max(1, round(gpu.dram.latency * node.clock))
            ),
        )
        block = part.ir.group_threads or 256
        held = self.resident(gpu, block, part.registers, part.shared)
        if not held:
            return float("inf")
        inputs = m_inputs_of_ir(part.ir, chip)
        inputs = off_m(inputs, self._errors(known, program, part)) if self.error else inputs
        return part.runs * m_core.predict(inputs, chip, block, held).time

    def _errors(self, known: KnownCore, program: Program, part: Part) -> Callable[[], float]:
        """Factors of one core's inputs for one launch, from the names alone: no order of calls changes them."""
        key = zlib.crc32(f"{known.name}/{program.name}/{program.parts.index(part)}".encode())
        source = np.random.default_rng([self.seed, key])
        return lambda: float(1.0 + source.uniform(-self.error, self.error))


def off_s(inputs: SInputs, factor: Callable[[], float]) -> SInputs:
    """The inputs with every number off by a factor of its own, and still possible ones."""
    counts = {name: count * factor() for name, count in sorted(inputs.n_i.items())}
    misses = [inputs.N_mL1 * factor(), inputs.N_mL2 * factor(), inputs.N_mL3 * factor()]
    return replace(
        inputs,
        n_i=counts,
        ILP=max(1.0, inputs.ILP * factor()),
        ILP_w2=min(2.0, max(1.0, inputs.ILP_w2 * factor())),
        N_mL1=misses[0],
        N_mL2=min(misses[1], misses[0]),
        N_mL3=min(misses[2], misses[1], misses[0]),
        N_mDTLB=inputs.N_mDTLB * factor(),
        N_mbr=inputs.N_mbr * factor(),
        simd_memory=min(1.0, inputs.simd_memory * factor()),
    )


def off_m(inputs: MInputs, factor: Callable[[], float]) -> MInputs:
    """As `off_s`, for an M-core."""
    counts = {name: count * factor() for name, count in sorted(inputs.n_i.items())}
    total = sum(counts.values())
    accesses = min(inputs.N_mem * factor(), total)
    return replace(
        inputs,
        n_i=counts,
        N_SFU=min(inputs.N_SFU * factor(), total),
        N_sync=inputs.N_sync * factor(),
        N_mem=accesses,
        N_off_chip=min(inputs.N_off_chip * factor(), accesses),
        avg_trans_warp=max(1.0, inputs.avg_trans_warp * factor()),
        ILP=max(1.0, inputs.ILP * factor()),
    )
