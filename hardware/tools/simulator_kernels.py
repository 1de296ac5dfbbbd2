"""Kernels as `simulator_sm` takes them: what GPGPU-Sim makes of PTX instructions and of their accesses.

Latencies and intervals: ptx_opcode_latency_*, ptx_opcode_initiation_* of SM7_QV100 and SM2_GTX480; all others take one
cycle. GTX480 has no units for integers and doubles: the former go to SP, the latter, and divisions, to SFU.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from numpy.typing import NDArray
from simulator_sm import Instruction, Sm, Step
from simulator_sm_gtx480 import Chip

from ppt_gpu.emulator.cache.traces import LaunchTraces
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.pipeline import open_gpu, simulated_sms, workload_traces
from ppt_gpu.ptx.instructions import access_bytes, access_kind, is_barrier, is_traced, memory_space
from ppt_gpu.ptx.module import Instruction as Ptx
from ppt_gpu.ptx.module import Kernel
from ppt_gpu.scale.history.heap import Heap
from ppt_gpu.scale.simulated_sm import SimulatedSm
from ppt_gpu.sm.lowering.code import register_operands
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.validate.gpgpusim.launches import GPUS, Part, chosen, parts_of
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Workload

QV100, GTX480 = "gpgpusim_qv100", "gpgpusim_gtx480"
SMS = {QV100: 80, GTX480: 15}
GROUPS = {
    "add": 0, "sub": 0, "addc": 0, "subc": 0, "min": 1, "max": 1, "mul": 2, "mad": 3, "fma": 3, "madc": 3,
    "div": 4, "rem": 4,
}  # fmt: skip
TIMES = {
    QV100: {
        "sp": ((4, 2), (13, 2), (4, 2), (5, 2), (39, 4)),
        "int": ((4, 2), (13, 2), (4, 2), (5, 2), (145, 8)),
        "dp": ((8, 4), (19, 4), (8, 4), (8, 4), (330, 130)),
    },
    GTX480: {
        "sp": ((4, 1), (13, 2), (4, 1), (5, 1), (39, 4)),
        "int": ((4, 1), (13, 2), (4, 2), (5, 1), (145, 8)),
        "dp": ((8, 8), (19, 16), (8, 8), (8, 8), (330, 130)),
    },
}
SFU = {QV100: (100, 8), GTX480: (8, 8)}
SHUFFLE = {QV100: (21, 4), GTX480: (32, 4)}
#: which unit stands in for one that a GPU does not have
INSTEAD = {QV100: {}, GTX480: {"int": "sp", "dp": "sfu"}}
TRANSCENDENTAL = ("sqrt", "rsqrt", "rcp", "sin", "cos", "ex2", "lg2")


def timing(ptx: Ptx, gpu: str = QV100) -> tuple[str, int, int]:
    """(unit, cycles in it, cycles between two)."""
    unit, latency, interval = _timing(ptx, gpu)
    return INSTEAD[gpu].get(unit, unit), latency, interval


def _timing(ptx: Ptx, gpu: str) -> tuple[str, int, int]:
    base, kind = ptx.base, ptx.opcode.rpartition(".")[2]
    if access_kind(ptx) or base in ("ld", "st", "atom", "red", "membar", "fence"):
        return "memory", 1, 1
    if base in TRANSCENDENTAL:
        return "sfu", *SFU[gpu]
    if base in ("shfl",):
        return "int", *SHUFFLE[gpu]
    if base in ("mul24", "mad24"):
        latency, interval = TIMES[gpu]["int"][GROUPS[base[:3]]]
        return "int", latency + 1, interval + 1
    if base not in GROUPS:
        return "int", 1, 1
    unit = {"f32": "sp", "f64": "dp"}.get(kind, "int")
    latency, interval = TIMES[gpu][unit][GROUPS[base]]
    return ("sfu" if GROUPS[base] == 4 else unit), latency, interval


def instructions(kernel: Kernel, gpu: str = QV100) -> list[Instruction]:
    """The kernel, instruction by instruction."""
    found = []
    for pc, ptx in enumerate(kernel.instructions):
        unit, latency, interval = timing(ptx, gpu)
        sources = {_number(kernel, register) for register in register_operands(ptx)}
        space = memory_space(ptx) or "" if unit == "memory" else ""
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


def block_paths(kernel: Kernel, trace: Trace, gpu: str = QV100) -> list[list[list[Step]]]:
    """The steps of each warp of each block."""
    code = instructions(kernel, gpu)
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
                known[key] = _step(code[pc], size[pc], trace, at, gpu)
            path.append(known[key])
            at += 1
        blocks[trace.warp_block[warp]].append(path)
    return blocks


def _step(what: Instruction, size: int, trace: Trace, at: int, gpu: str) -> Step:
    pattern = trace.access_pattern[at]
    offsets, mask = trace.pattern_offset[pattern], int(trace.pattern_mask[pattern])
    lanes = [(n, int(trace.access_base[at]) + int(offsets[n])) for n in range(32) if mask >> n & 1]
    if trace.access_space[at] == 1:
        words = {address // 4 for _, address in lanes}
        return Step(_in(what, "shared"), max(Counter(word % 32 for word in words).values(), default=1))
    what = _in(what, "global")
    if what.access == "atomic":
        return Step(what, sectors=tuple(_atomic_transactions(lanes)))
    if gpu == GTX480:  # narrow words go in smaller segments
        segments = {address // min(32 * size, 128) * min(32 * size, 128) for _, address in lanes}
        return Step(what, sectors=tuple(segment // 128 for segment in sorted(segments, reverse=True)))
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


def programs(gpu: str, memory: str, cases: Sequence[str] = ()) -> Iterator[Iterator[Part]]:
    """Those of the reference with launches named so that were run on a GPU with such memory, each part by part."""
    for members in chosen(cases):
        if (GPUS[members[0]["config"]], members[0]["mem"]) == (gpu, memory):
            yield parts_of(members)


def each_launch(
    workload: Workload, contents: Mapping[str, NDArray] | None = None, name: str = QV100
) -> Iterator[tuple[LaunchTraces, SimulatedSm]]:
    """The launches under perfect memory, each with what the one before it left."""
    gpu = open_gpu(name, ["perfect_memory=true"])
    traces, sequence = workload_traces(workload, gpu, contents or {}, Budget(), (), False, None)
    for number, sm in enumerate(simulated_sms(workload, traces, sequence, gpu, None, False)):
        launch = traces.launch(number)
        yield launch, sm
        if not launch.separable or number + 1 < len(sequence.launches):
            launch.advance(range(launch.launch.blocks))


def launches(workload: Workload, contents: Mapping[str, NDArray] | None = None, units: int = 2) -> list[int | None]:
    """Cycles of QV100's first SM, of every launch; None for those whose blocks are too long."""
    return [_cycles(launch, sm, QV100, units) for launch, sm in each_launch(workload, contents)]


def beside(
    workload: Workload, contents: Mapping[str, NDArray] | None = None, name: str = QV100
) -> Iterator[tuple[int | None, int]]:
    """Cycles of the first SM and of ours with the same blocks, of every launch; None where the blocks are too long."""
    for launch, sm in each_launch(workload, contents, name):
        blocks = list(range(0, launch.launch.blocks, SMS[name]))
        program, _ = sm.lower(blocks)
        ours = simulate(
            program, sm.gpu, resident_blocks=min(sm.occupancy.blocks_per_sm, len(blocks)),
            active_sms=min(launch.launch.blocks, SMS[name]), l1_bytes=sm.occupancy.l1_bytes,
        )  # fmt: skip
        yield _cycles(launch, sm, name), ours.cycles


def paths_of(launch: LaunchTraces, sm: SimulatedSm, blocks: Sequence[int], gpu: str) -> list[list[list[Step]]]:
    """Of these blocks, with the addresses that the simulator's cudaMalloc gives to buffers."""
    trace = launch.run(blocks)
    return block_paths(launch.kernel, Heap.of(trace.ranges, sm.gpu).trace(trace), gpu)


def device_launches(chip: Chip, workload: Workload, contents: Mapping[str, NDArray] | None = None) -> Iterator[int]:
    """Cycles of the workload's launches on all SMs of GTX480 under perfect memory, one after another."""
    for launch, sm in each_launch(workload, contents, GTX480):
        paths = paths_of(launch, sm, range(launch.launch.blocks), GTX480)
        yield chip.run(paths, sm.occupancy.blocks_per_sm, launch.module.instructions_before(launch.kernel.name))


def _cycles(launch: LaunchTraces, sm: SimulatedSm, name: str, units: int = 2) -> int | None:
    blocks = range(0, launch.launch.blocks, SMS[name])
    if launch.run(blocks).warp_instructions > MOST:
        return None
    paths = paths_of(launch, sm, blocks, name)
    if name == GTX480:
        return Chip(1).run(paths, sm.occupancy.blocks_per_sm, launch.module.instructions_before(launch.kernel.name))
    return Sm(paths, min(sm.occupancy.blocks_per_sm, len(paths)), sm.occupancy.l1_bytes, units).run()


#: warp instructions of an SM, at most
MOST = 60_000
