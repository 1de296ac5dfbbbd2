"""The micro-benchmarks of Hong and Kim (validation/hong_kim): their launches, what they execute, and their cycles.

What a thread executes is read off the PTX: the instructions before the loop, those of the loop as often as it is
repeated, and those after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.common.paths import data_dir
from ppt_gpu.models.hong_kim.inputs import HongKimInputs
from ppt_gpu.models.hong_kim.tables import memory_parameters
from ppt_gpu.ptx.instructions import is_barrier, is_memory, memory_space
from ppt_gpu.ptx.module import Instruction, Module
from ppt_gpu.ptx.parsing.parser import parse_module
from ppt_gpu.scale.blocks.distribution import spread_grid
from ppt_gpu.scale.occupancy.occupancy import occupancy
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.workload.arguments import workload_from_arguments
from ppt_gpu.workload.workload import Workload

#: of the loop, in the paper
ITERATIONS = 1000
REGISTERS = 10
_LEAST_WORDS = 1 << 20


@dataclass(frozen=True)
class MicroLaunch:
    """One launch of one of the kernels."""

    kernel: str  # "mb3_uc"
    threads_per_block: int
    blocks: int
    iterations: int = ITERATIONS

    @property
    def coalesced(self) -> bool:
        return self.kernel.endswith("_c")


def micro_path() -> Path:
    """The file of the kernels."""
    return data_dir("validation") / "hong_kim" / "micro.ptx"


@cache
def micro_module() -> Module:
    """The parsed kernels."""
    return parse_module(micro_path().read_text(), str(micro_path()))


def micro_launches(gpu: Gpu, iterations: int = ITERATIONS) -> Iterator[MicroLaunch]:
    """Every kernel on all SMs: with one, two, four and eight warps an SM, and with three blocks of eight."""
    for kernel in micro_module().kernels:
        for threads in (32, 64, 128, 256):
            yield MicroLaunch(kernel, threads, gpu.sm.count, iterations)
        yield MicroLaunch(kernel, 256, 3 * gpu.sm.count, iterations)


def words_of(gpu: Gpu) -> int:
    """Words of the data: a power of two, at least four times the last cache."""
    return max(_LEAST_WORDS, 1 << (gpu.l2.size - 1).bit_length() if gpu.l2.size else 0)


def micro_workload(launch: MicroLaunch, gpu: Gpu) -> Workload:
    """The launch as a workload for the simulation."""
    words, threads = words_of(gpu), launch.blocks * launch.threads_per_block
    arguments = [f"f32[{words}]=zeros", f"f32[{threads}]=zeros", f"u32={words - 1}", f"u32={launch.iterations}"]
    shape = [launch.blocks], [launch.threads_per_block]
    return workload_from_arguments(micro_path(), launch.kernel, *shape, arguments, registers=REGISTERS)


@dataclass(frozen=True)
class Executed:
    """Instructions of one thread."""

    comp: int
    memory: int  # those with the access that the kernel is about
    stores: int  # of its result, at the end, coalesced
    barriers: int  # also among comp
    waits: int  # times that a thread waits for memory


def executed(kernel: str, iterations: int) -> Executed:
    """What a thread of the kernel executes. PptError for a kernel that there is none of."""
    kernels = micro_module().kernels
    if kernel not in kernels:
        raise PptError(f"unknown micro-benchmark '{kernel}'", hint=did_you_mean(kernel, kernels))
    found = kernels[kernel]
    first = next(index for name, index in found.labels.items() if name.startswith("loop"))
    last = next(item.index for item in found.instructions if item.base == "bra")
    loop = found.instructions[first : last + 1]
    around = len(found.instructions) - len(loop)
    memory = sum(map(_off_chip, loop))
    stores = sum(map(_off_chip, found.instructions)) - memory
    loads = sum(_off_chip(item) and item.base == "ld" for item in loop)
    barriers = sum(map(is_barrier, loop))
    return Executed(
        comp=around - stores + iterations * (len(loop) - memory),
        memory=iterations * memory,
        stores=stores,
        barriers=iterations * barriers,
        waits=iterations * loads,
    )


def _off_chip(instruction: Instruction) -> bool:
    return is_memory(instruction) and memory_space(instruction) == "global"


def micro_inputs(launch: MicroLaunch, gpu: Gpu) -> HongKimInputs:
    """What the MWP-CWP model reads of the launch. PptError for an unknown kernel or a block that does not fit."""
    counts, parameters = executed(launch.kernel, launch.iterations), memory_parameters(gpu)
    fit = occupancy(gpu, launch.threads_per_block, REGISTERS, 0)
    spread = spread_grid(launch.blocks, fit.blocks_per_sm, gpu.sm.count)
    own, others = (0, counts.memory) if launch.coalesced else (counts.memory, 0)
    return HongKimInputs(
        mem_ld=parameters.mem_ld,
        dep_uncoal=parameters.dep_uncoal,
        dep_coal=parameters.dep_coal,
        freq=gpu.sm.clock / 1e9,
        mem_bandwidth=gpu.dram.bandwidth / 1e9,
        threads_per_block=launch.threads_per_block,
        blocks=launch.blocks,
        active_sms=spread.active_sms,
        active_blocks_per_sm=spread.resident,
        comp_insts=counts.comp,
        uncoal_mem_insts=own,
        coal_mem_insts=others + counts.stores,
        synch_insts=counts.barriers,
        issue_cycles=gpu.sm.warp_size / gpu.pipes["fp32"].lanes,
        ind_mem_req=max(counts.memory - counts.waits, 0),
    )
