"""Kernels as `simulator_sm` takes them: what GPGPU-Sim's QV100 makes of PTX instructions and of their accesses.

Latencies and intervals: ptx_opcode_latency_*, ptx_opcode_initiation_* of SM7_QV100; all others take one cycle.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from simulator_sm import Instruction, Sm, Step

from ppt_gpu.exec.budget import Budget
from ppt_gpu.exec.trace import Trace
from ppt_gpu.exec.traces import LaunchTraces
from ppt_gpu.exec.workload import Workload
from ppt_gpu.pipeline import open_gpu, simulated_sms, workload_traces
from ppt_gpu.ptx.instructions import access_bytes, access_kind, is_barrier, is_traced, memory_space
from ppt_gpu.ptx.module import Instruction as Ptx
from ppt_gpu.ptx.module import Kernel
from ppt_gpu.scale.simulated_sm import SimulatedSm
from ppt_gpu.sm.lower_operands import register_operands

GPU = "gpgpusim_qv100"
SMS = 80
GROUPS = {
    "add": 0, "sub": 0, "addc": 0, "subc": 0, "min": 1, "max": 1, "mul": 2, "mad": 3, "fma": 3, "madc": 3,
    "div": 4, "rem": 4,
}  # fmt: skip
TIMES = {
    "sp": ((4, 2), (13, 2), (4, 2), (5, 2), (39, 4)),
    "int": ((4, 2), (13, 2), (4, 2), (5, 2), (145, 8)),
    "dp": ((8, 4), (19, 4), (8, 4), (8, 4), (330, 130)),
}
SFU, SHUFFLE = (100, 8), (21, 4)
TRANSCENDENTAL = ("sqrt", "rsqrt", "rcp", "sin", "cos", "ex2", "lg2")


def timing(ptx: Ptx) -> tuple[str, int, int]:
    """(unit, cycles in it, cycles between two)."""
    base, kind = ptx.base, ptx.opcode.rpartition(".")[2]
    if access_kind(ptx) or base in ("ld", "st", "atom", "red", "membar", "fence"):
        return "memory", 1, 1
    if base in TRANSCENDENTAL:
        return "sfu", *SFU
    if base in ("shfl",):
        return "int", *SHUFFLE
    if base in ("mul24", "mad24"):
        latency, interval = TIMES["int"][GROUPS[base[:3]]]
        return "int", latency + 1, interval + 1
    if base not in GROUPS:
        return "int", 1, 1
    unit = {"f32": "sp", "f64": "dp"}.get(kind, "int")
    latency, interval = TIMES[unit][GROUPS[base]]
    return ("sfu" if GROUPS[base] == 4 else unit), latency, interval


def instructions(kernel: Kernel) -> list[Instruction]:
    """The kernel, instruction by instruction."""
    found = []
    for pc, ptx in enumerate(kernel.instructions):
        unit, latency, interval = timing(ptx)
        sources = {_number(kernel, register) for register in register_operands(ptx)}
        space = memory_space(ptx) if unit == "memory" else ""
        kind = access_kind(ptx) or "load"
        found.append(
            Instruction(
                pc, unit, latency, interval, tuple(sorted(sources)),
                _number(kernel, ptx.writes[0]) if ptx.writes else -1, frozenset(ptx.writes),
                frozenset((*ptx.reads, *ptx.writes)),
                "" if unit != "memory" else space if is_traced(ptx) else "parameter",
                kind if unit == "memory" else "", is_barrier(ptx),
            )
        )  # fmt: skip
    return found


def _number(kernel: Kernel, register: int) -> int:
    digits = re.search(r"\d+", kernel.registers[register].name)
    return int(digits.group()) if digits else 0


def block_paths(kernel: Kernel, trace: Trace) -> list[list[list[Step]]]:
    """The steps of each warp of each block."""
    code = instructions(kernel)
    traced = [is_traced(ptx) for ptx in kernel.instructions]
    size = [max(1, access_bytes(ptx)) if traced[pc] else 0 for pc, ptx in enumerate(kernel.instructions)]
    known: dict[tuple[int, int, int], Step] = {}
    blocks: list[list[list[Step]]] = [[] for _ in trace.blocks]
    for warp, (first, _) in enumerate(pairwise(trace.access_start.tolist())):
        at, path = first, []
        begin, end = trace.path_start[trace.warp_path[warp] :][:2]
        for pc in trace.path_pc[begin:end].tolist():
            if not traced[pc]:
                path.append(Step(code[pc]))
                continue
            key = (pc, int(trace.access_pattern[at]), int(trace.access_base[at]))
            if key not in known:
                known[key] = _step(code[pc], size[pc], trace, at)
            path.append(known[key])
            at += 1
        blocks[trace.warp_block[warp]].append(path)
    return blocks


def _step(what: Instruction, size: int, trace: Trace, at: int) -> Step:
    pattern = trace.access_pattern[at]
    offsets, mask = trace.pattern_offset[pattern], int(trace.pattern_mask[pattern])
    lanes = [(n, int(trace.access_base[at]) + int(offsets[n])) for n in range(32) if mask >> n & 1]
    if trace.access_space[at] == 1:
        words = {address // 4 for _, address in lanes}
        return Step(_in(what, "shared"), max(Counter(word % 32 for word in words).values(), default=1))
    what = _in(what, "global")
    if what.access == "atomic":
        return Step(what, sectors=tuple(_atomic_transactions(lanes)))
    bytes_of = Counter(byte for _, address in lanes for byte in range(address, address + size))
    sectors = Counter(byte // 32 for byte in bytes_of)
    whole = frozenset(sector for sector, count in sectors.items() if count == 32)
    return Step(what, sectors=tuple(sorted(sectors, reverse=True)), whole=whole)


def _in(what: Instruction, space: str) -> Instruction:
    return Instruction(**{**what.__dict__, "space": space})


def _atomic_transactions(lanes: list[tuple[int, int]]) -> list[int]:
    """By segments of 32 B; lanes that update the same bytes go with different transactions."""
    of_sector: dict[int, list[set[int]]] = {}
    for _, address in lanes:
        taken = of_sector.setdefault(address // 32, [])
        free = next((one for one in taken if address not in one), None)
        if free is None:
            taken.append({address})
        else:
            free.add(address)
    return [sector for sector, taken in of_sector.items() for _ in taken]


def launches(
    workload: Workload, contents: Mapping[str, NDArray] | None = None, units: int = 2, chosen: Sequence[int] = (0,)
) -> list[int | None]:
    """Cycles of the slowest of the `chosen` SMs, of every launch; None for those whose blocks are too long."""
    gpu = open_gpu(GPU, ["perfect_memory=true"])
    traces, sequence = workload_traces(workload, gpu, contents or {}, Budget(), (), False, None)
    found: list[int | None] = []
    for number, sm in enumerate(simulated_sms(workload, traces, sequence, gpu, None, False)):
        launch = traces.launch(number)
        cycles = [_cycles(launch, sm, first, units) for first in chosen if first < launch.launch.blocks]
        found.append(None if None in cycles else max(one for one in cycles if one is not None))
        if not launch.separable or number + 1 < len(sequence.launches):
            launch.advance(range(launch.launch.blocks))
    return found


def _cycles(launch: LaunchTraces, sm: SimulatedSm, first: int, units: int) -> int | None:
    trace = launch.run(range(first, launch.launch.blocks, SMS))
    if int(np.diff(trace.path_start)[trace.warp_path].sum()) > MOST:
        return None
    paths = block_paths(launch.kernel, trace)
    return Sm(paths, min(sm.occupancy.blocks_per_sm, len(paths)), sm.occupancy.l1_bytes, units).run()


#: warp instructions of an SM, at most
MOST = 60_000
