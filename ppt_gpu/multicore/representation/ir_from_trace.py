"""From a functional run of a kernel to the intermediate representation (Blem, section 5.2, M-core side).

Operations are counted over the blocks that ran and scaled to the grid. Dependences are those of the most common path.
The footprint is what the run touched of each buffer, scaled to the grid, at most the whole buffer.

Instruction-level parallelism in a window: how many operations of a thread could start in a cycle.

As the tool MICA measures it (Hoste and Eeckhout, IEEE Micro 2007; Blem, section 4.1.1): operations take one cycle,
units are without limit, and an operation enters the window when the one `window` places before it and all before that
have started. In a window of 2 this is 2 minus the probability that an operation depends on the one before it.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.launch.layout import layout
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.multicore.base.operations import of_machine_operation
from ppt_gpu.multicore.representation.ir import Amount, Ir
from ppt_gpu.ptx.instructions import access_bytes, is_barrier, is_traced, operation
from ppt_gpu.ptx.module import Instruction, Kernel, Module
from ppt_gpu.spec.gpu import MEMORY_SPACES
from ppt_gpu.tasklist.flat import FlatTaskList, flatten
from ppt_gpu.tasklist.model import WARP_SIZE
from ppt_gpu.translation.memory import space_of
from ppt_gpu.translation.translate import translate
from ppt_gpu.workload.workload import Launch

#: windows in the dependence profile of a representation
WINDOWS = (2, 4, 8, 16, 32, 64, 128, 256)


@entry
def window_cycles(
    path: NDArray[np.int32],
    dep_start: NDArray[np.int64],
    dep_task: NDArray[np.int32],
    last: NDArray[np.int64],
    entered: NDArray[np.int64],
) -> Any:
    """Cycles until the last operation has started.

    last [S]: 0; becomes the cycle after the latest start of each task. entered [window]: 0; becomes, in a ring, the
    cycle after which an operation and all before it have started.
    """
    window = len(entered)
    done = np.int64(0)  # the cycle after which all operations so far have started
    for at in range(len(path)):
        task = path[at]
        slot = at % window
        cycle = entered[slot]
        for edge in range(dep_start[task], dep_start[task + 1]):
            ready = last[dep_task[edge]]
            if ready > cycle:
                cycle = ready
        last[task] = cycle + 1
        if cycle + 1 > done:
            done = cycle + 1
        entered[slot] = done
    return done


def window_ilp(flat: FlatTaskList, window: int) -> float:
    """Operations / cycles of one warp of `flat` in a window. Raises PptError for a window below 1, or no operations."""
    if window < 1 or not len(flat.path):
        raise PptError(f"a window of {window} over {len(flat.path)} operations")
    last = np.zeros(len(flat.tasks), np.int64)
    entered = np.zeros(window, np.int64)
    cycles = window_cycles(flat.path, flat.dep_start, flat.dep_task, last, entered)
    return len(flat.path) / int(cycles)


def profile(flat: FlatTaskList) -> dict[int, float]:
    """ILP by window, for all of WINDOWS."""
    return {window: window_ilp(flat, window) for window in WINDOWS}


SECTOR = 32  # B: the unit in which the footprint is counted


def ir_of_trace(kernel: Kernel, module: Module, trace: Trace, launch: Launch) -> Ir:
    """The representation of one launch. `trace` holds some or all of its blocks, neighbours among them.

    Raises PptError for an instruction whose work is unknown, BudgetError for a path too irregular to fold.
    """
    scale = launch.blocks / len(trace.blocks)
    pcs = access_instructions(kernel, trace)
    operations = _operations(kernel, trace, pcs, scale)
    threads = float(launch.blocks * launch.threads_per_block)
    sync = operations.pop("sync", Amount(0.0, 0.0))
    shared = float(layout(module, kernel, launch.dynamic_shared).shared_bytes)
    element, strides = _strides(kernel, trace, pcs)
    notes = [f"{len(trace.blocks)} of {launch.blocks} blocks ran"] if scale > 1 else []
    return Ir(
        name=kernel.name,
        origin=f"functional run of {kernel.name}, {launch.blocks} blocks of {launch.threads_per_block} threads",
        threads=threads,
        width=WARP_SIZE,
        operations=operations,
        ilp=profile(flatten(translate(kernel, module, trace, launch))),
        footprint=_footprint(trace, scale) + shared,
        scratch=shared,
        element=element,
        strides=strides,
        inner_loops=sync.threads / threads,
        group_threads=launch.threads_per_block,
        notes=tuple(notes),
    )


def access_instructions(kernel: Kernel, trace: Trace) -> NDArray[np.int64]:
    """[A] the instruction of every access of `trace`."""
    traced = np.array([is_traced(instruction) for instruction in kernel.instructions], np.bool_)
    start = trace.path_start
    of_path = [path[traced[path]] for path in (trace.path_pc[a:b] for a, b in pairwise(start))]
    found = [of_path[path] for path in trace.warp_path.tolist()]
    return np.concatenate(found).astype(np.int64) if found else np.zeros(0, np.int64)


def _operations(kernel: Kernel, trace: Trace, pcs: NDArray[np.int64], scale: float) -> dict[str, Amount]:
    threads: dict[str, float] = defaultdict(float)
    groups: dict[str, float] = defaultdict(float)
    spaces = {int(pc): space_of(trace.access_space[pcs == pc]) for pc in np.unique(pcs)}
    for pc in np.flatnonzero(trace.pc_executed).tolist():
        instruction = kernel.instructions[pc]
        for name, count in _parts(instruction, spaces.get(pc, "")):
            threads[name] += float(trace.pc_threads[pc]) * count * scale
            groups[name] += float(trace.pc_executed[pc]) * count * scale
    return {name: Amount(threads[name], groups[name]) for name in sorted(groups)}


def _parts(instruction: Instruction, space: str) -> tuple[tuple[str, float], ...]:
    name = operation(instruction)
    head, _, rest = name.partition(".")
    if head == "barrier" and not is_barrier(instruction):
        return (("branch", 1.0),)  # of the warp alone
    if head in ("load", "store", "atomic") and rest.startswith("generic"):
        name = f"{head}.{space or 'global'}"
    if head == "store" and rest.startswith("param"):
        return (("move", 1.0),)  # an argument of a call
    try:
        return of_machine_operation(name)
    except KeyError:
        message = f"'{instruction.opcode}' does an unknown amount of work on a CPU"
        raise PptError(message, line=instruction.line) from None


def _global(trace: Trace) -> NDArray[np.bool_]:
    return (trace.access_space == MEMORY_SPACES.index("global")) & (trace.pattern_mask[trace.access_pattern] != 0)


def _footprint(trace: Trace, scale: float) -> float:
    """Bytes of global memory that the grid touches: sectors of each buffer, scaled, at most the whole buffer."""
    chosen = np.flatnonzero(_global(trace))
    keys = np.stack([trace.access_pattern[chosen].astype(np.int64), trace.access_base[chosen].astype(np.int64)], axis=1)
    lanes = np.arange(WARP_SIZE, dtype=np.uint32)
    touched = []
    for pattern, base in _by_pattern(np.unique(keys, axis=0)):
        on = (trace.pattern_mask[pattern] >> lanes & np.uint32(1)) != 0
        touched.append(np.unique((base[:, None] + trace.pattern_offset[pattern, on][None, :]) // SECTOR))
    sectors = np.unique(np.concatenate(touched)) if touched else np.zeros(0, np.int64)
    total, inside = 0.0, 0
    for each in trace.ranges:
        count = int(((sectors >= each.start // SECTOR) & (sectors * SECTOR < each.start + each.bytes)).sum())
        inside += count
        total += min(float(each.bytes), count * SECTOR * scale)
    return total + max(len(sectors) - inside, 0) * SECTOR * scale


def _by_pattern(keys: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64]]]:
    """(pattern, its base addresses) of rows (pattern, base) in order."""
    edges = np.flatnonzero(np.diff(keys[:, 0])) + 1 if len(keys) else np.zeros(0, np.int64)
    return [(int(part[0, 0]), part[:, 1]) for part in np.split(keys, edges) if len(part)]


def _strides(kernel: Kernel, trace: Trace, pcs: NDArray[np.int64]) -> tuple[float, dict[str, float]]:
    """(bytes of an access by a lane, mean; shares of neighbouring active lanes by their distance in accesses)."""
    chosen = np.flatnonzero(_global(trace))
    size = np.array([access_bytes(each) if is_traced(each) else 0 for each in kernel.instructions], np.int64)[pcs]
    keys = np.stack([trace.access_pattern[chosen].astype(np.int64), size[chosen]], axis=1)
    found: dict[str, float] = defaultdict(float)
    kinds, times = np.unique(keys, axis=0, return_counts=True)
    bytes_moved = lanes_active = 0.0
    for (pattern, width), count in zip(kinds.tolist(), times.tolist(), strict=True):
        on = (trace.pattern_mask[pattern] >> np.arange(WARP_SIZE, dtype=np.uint32) & np.uint32(1)) != 0
        steps = np.diff(trace.pattern_offset[pattern, on])
        bytes_moved += count * int(on.sum()) * width
        lanes_active += count * int(on.sum())
        for step in steps.tolist() or [None]:
            whole = step is not None and width > 0 and step >= 0 and step % width == 0
            found[str(step // width) if whole and step is not None else "irregular"] += count
    total = sum(found.values())
    element = bytes_moved / lanes_active if lanes_active else 4.0
    return element, {name: found[name] / total for name in sorted(found, key=_order)}


def _order(name: str) -> tuple[int, int]:
    return (0, int(name)) if name.isdecimal() else (1, 0)
