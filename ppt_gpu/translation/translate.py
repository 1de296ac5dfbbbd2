"""PTX to a task list, from a functional run: the most common path of the trace, its loops found again.

One task an instruction (or one for each machine operation, with `isa`). What the format cannot say exactly stands in
the header comments of the list: irregular addresses, unrecorded ones, steps that vary from block to block.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.emulator.launch.layout import layout
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.ptx.instructions import access_bytes, is_barrier, is_traced, operation
from ppt_gpu.ptx.linking.liveness import estimate_registers
from ppt_gpu.ptx.module import Instruction, Kernel, Module
from ppt_gpu.spec.gpu import Isa
from ppt_gpu.tasklist.expand import operations_of
from ppt_gpu.tasklist.model import WARP_SIZE, Buffer, Item, Loop, Task, TaskList, class_of, is_memory
from ppt_gpu.translation.loops import find_loops
from ppt_gpu.translation.memory import Accesses, Shape, Warps, shape_of, space_of, without_address
from ppt_gpu.translation.tasks import Block, Dependencies, Place, Tree, loop_counts, number_places, stream
from ppt_gpu.workload.workload import Launch

OFF = "int32.off"  # a memory instruction that no lane of the warp executes: an issue slot, nothing more


class Operations:
    """The operations of each instruction, with spaces that task lists know."""

    def __init__(self, kernel: Kernel, trace: Trace, path: NDArray[np.int32], chosen: int) -> None:
        self.kernel, self.instructions = kernel, kernel.instructions
        traced = np.array([is_traced(instruction) for instruction in kernel.instructions], np.bool_)
        accesses = slice(int(trace.access_start[chosen]), int(trace.access_start[chosen + 1]))
        pcs = path[traced[path]]
        self.space = {int(pc): space_of(trace.access_space[accesses][pcs == pc]) for pc in np.unique(pcs)}
        masks = trace.pattern_mask[trace.access_pattern[accesses]]
        self.off = {int(pc) for pc in np.unique(pcs) if not masks[pcs == pc].any()}

    def of(self, pc: int, isa: Isa | None) -> tuple[str, ...]:
        """The operations of instruction `pc`: one, or those that `isa` expands it to."""
        instruction = self.instructions[pc]
        if pc in self.off:
            return (OFF,)
        names = operations_of(self.kernel, pc, isa)
        if operation(instruction) == "barrier" and not is_barrier(instruction):
            return tuple("branch.sync" if name == "barrier" else name for name in names)  # of the warp alone
        return tuple(self._placed(name, pc) for name in names)

    def _placed(self, name: str, pc: int) -> str:
        """Parameters are constants, textures lie in global memory, generic accesses go where the trace says."""
        access, _, rest = name.partition(".")
        space, _, variant = rest.partition(".")
        if access not in ("load", "store", "atomic"):
            return name
        if space == "param" and access != "load":
            return "int32.mov"  # an argument of a call: moves in registers
        place = {"param": "constant", "texture": "global", "generic": self.space.get(pc, "global")}.get(space)
        place = place or (self.space.get(pc, space) if space in ("global", "shared") else space)
        return ".".join((access, place, variant)) if variant else f"{access}.{place}"


MAX_TASKS = 1 << 20  # static tasks; a path without regularity cannot be folded
_TEXT = 90  # characters of PTX in a comment


def translate(
    kernel: Kernel,
    module: Module,
    trace: Trace,
    launch: Launch,
    *,
    warp: int | None = None,
    isa: Isa | None = None,
    shared: int | None = None,
    max_tasks: int = MAX_TASKS,
) -> TaskList:
    """The task list of one warp of `trace`, which stands for all of them.

    warp: its position in the trace; by default one that ran the most common path, with the most common lanes.
    isa: expand each instruction to the machine operations of a GPU.
    shared: bytes of shared memory a block; by default what the kernel's variables need.
    Addresses are followed from warp to warp and along each axis of the grid over all warps of the trace with the same
    path, so the blocks of the trace should be neighbours along each axis: see `translation.blocks.sample_blocks`.

    Raises PptError for a warp that the trace does not hold, BudgetError above `max_tasks` tasks.
    """
    chosen = _representative(trace, warp)
    path = trace.path_pc[trace.path_start[trace.warp_path[chosen]] : trace.path_start[trace.warp_path[chosen] + 1]]
    if len(path) == 0 or int(path.max()) >= len(kernel.instructions):
        raise PptError(f"the trace of '{kernel.name}' is not one of this kernel", path=module.path)
    nodes = find_loops(path)
    operations = Operations(kernel, trace, path, chosen)
    tree, places = number_places(nodes, lambda pc: operations.of(pc, isa))
    total = sum(len(place.ops) for place in places)
    if total > max_tasks:
        message = f"'{kernel.name}' becomes {total:,} tasks; the budget is {max_tasks:,}"
        raise BudgetError(message, path=module.path, hint="its path is irregular: use the trace, or raise max_tasks")
    writer = _Writer(kernel, module, trace, launch, tree, places, chosen)
    body = writer.items(tree)
    return TaskList(
        name=kernel.name,
        registers=launch.registers or estimate_registers(kernel),
        shared=layout(module, kernel, launch.dynamic_shared).shared_bytes if shared is None else shared,
        block_size=launch.threads_per_block,
        body=body,
        grid=_extents(launch.grid),
        buffers=tuple(Buffer(writer.buffers[r.name], r.bytes, r.copied) for r in trace.ranges if r.bytes),
        comments=(*_origin(kernel, module, trace, chosen), *_grid_doubt(trace, launch), *writer.doubts),
    )


def _representative(trace: Trace, warp: int | None) -> int:
    if warp is None:
        return _typical(trace, np.flatnonzero(trace.warp_path == np.bincount(trace.warp_path).argmax()))
    if not 0 <= warp < trace.warps:
        raise PptError(f"the trace has no warp {warp}", hint=f"0 to {trace.warps - 1}")
    return warp


def _typical(trace: Trace, warps: NDArray[np.int64]) -> int:
    """The first of `warps` whose lanes fall as those of most others do: warps at an edge are off."""
    start, count = trace.access_start, Counter[bytes]()
    first: dict[bytes, int] = {}
    for warp in warps.tolist():
        lanes = trace.access_pattern[start[warp] : start[warp + 1]].tobytes()
        first.setdefault(lanes, warp)
        count[lanes] += 1
    return first[count.most_common(1)[0][0]]  # the first seen, of equally common ones


def _origin(kernel: Kernel, module: Module, trace: Trace, chosen: int) -> list[str]:
    same = int((trace.warp_path == trace.warp_path[chosen]).sum())
    file = Path(module.named.strip("<>")).name
    found = [
        f"Translated from {kernel.name} in {file}: "
        f"{same} of the {trace.warps} warps that ran ({len(trace.blocks)} blocks) took this path."
    ]
    if same < trace.warps:
        found.append(f"The other {trace.warps - same} took other paths, which one list cannot say.")
    return found


def _grid_doubt(trace: Trace, launch: Launch) -> list[str]:
    """Axes of the grid along which no two of the blocks that ran are neighbours."""
    at = np.stack(np.unravel_index(trace.blocks, launch.grid, order="F"), axis=1)
    found = []
    for axis, name in enumerate("xyz"):
        places = len(np.unique(np.delete(at, axis, axis=1), axis=0))
        if launch.grid[axis] > 1 and places == len(at):
            found.append(f"No two blocks along {name} ran: addresses are taken to continue from one to the next.")
    return found


def _extents(grid: tuple[int, int, int]) -> tuple[int, ...]:
    """Without the trailing axes that have one block only."""
    used = max((axis + 1 for axis in range(3) if grid[axis] > 1), default=1)
    return grid[:used]


def _names(names: Sequence[str]) -> dict[str, str]:
    """Buffer names that the text format can hold, all different."""
    found: dict[str, str] = {}
    for name in names:
        plain = unique = re.sub(r"[^\w.$]", "_", name) or "_"
        while unique in found.values():
            unique = f"{plain}.{len(found)}"
        found[name] = unique
    return found


class _Writer:
    """Makes the tasks of one list."""

    def __init__(
        self,
        kernel: Kernel,
        module: Module,
        trace: Trace,
        launch: Launch,
        tree: Tree,
        places: Sequence[Place],
        chosen: int,
    ) -> None:
        self.kernel = kernel
        self.module = module
        self.trace = trace
        self.places = places
        self.deps = Dependencies(kernel.instructions).follow(tree)
        self.counts = loop_counts(tree)
        self.buffers = _names([r.name for r in trace.ranges])
        self.doubts: list[str] = []
        self._match(stream(tree), chosen, launch)

    def _match(self, executed: NDArray[np.int32], chosen: int, launch: Launch) -> None:
        """Which accesses of the warp belong to which place, and which warps can be compared with it."""
        trace = self.trace
        traced = np.array([is_traced(self.kernel.instructions[place.pc]) for place in self.places], np.bool_)
        place = executed[traced[executed]]
        self.start = int(trace.access_start[chosen])
        order = np.argsort(place, kind="stable")
        cuts = np.searchsorted(place[order], np.arange(len(self.places) + 1))
        self.accesses = {i: order[cuts[i] : cuts[i + 1]] for i in np.flatnonzero(traced).tolist()}
        same = np.flatnonzero(trace.warp_path == trace.warp_path[chosen])
        per_block = int(np.bincount(trace.warp_block).max())
        first = np.concatenate([[0], np.flatnonzero(np.diff(trace.warp_block)) + 1])
        self.first_access = trace.access_start[same]
        self.warps = Warps(
            warp=same - first[np.searchsorted(first, same, side="right") - 1],
            block=trace.blocks[trace.warp_block[same]],
            grid=launch.grid,
            chosen=int(np.searchsorted(same, chosen)),
            per_block=per_block,
            threads=launch.threads_per_block,
        )

    def items(self, tree: Tree) -> tuple[Item, ...]:
        found: list[Item] = []
        for node in tree:
            if isinstance(node, Block):
                found.append(Loop(node.count, self.items(node.body)))
            else:
                found += [self.task(node, task, op) for task, op in enumerate(node.ops, node.first)]
        return tuple(item for item in found if not isinstance(item, Loop) or item.body)

    def task(self, place: Place, task: int, op: str) -> Task:
        instruction = self.kernel.instructions[place.pc]
        deps = tuple(other + 1 for other in sorted(self.deps.get(task, ())))
        comment = self._text(instruction) if task == place.first else ""
        if not is_memory(op):
            return Task(task + 1, op, deps, None, self._active(place.pc), comment)
        shape = self._shape(place, instruction, op)
        if shape.doubt:
            self.doubts.append(f"Task {task + 1}: {shape.doubt}.")
        return Task(task + 1, op, deps, shape.memory, shape.active, comment)

    def _shape(self, place: Place, instruction: Instruction, op: str) -> Shape:
        size = access_bytes(instruction)
        mine = self.accesses.get(place.index)
        if mine is None:
            return without_address(op, size)
        trace, at = self.trace, self.start + mine
        if class_of(op).endswith(".constant"):
            apart = bool((trace.pattern_offset[trace.access_pattern[at]] != 0).any())
            doubt = "its lanes read different constants, one after another: taken as one broadcast" if apart else ""
            return replace(without_address(op, size), doubt=doubt)
        first = self.first_access + mine[0]
        found = Accesses(
            space=class_of(op).split(".")[1],
            bytes=size,
            base=trace.access_base[at].astype(np.int64),
            pattern=trace.access_pattern[at],
            counts=self.counts[place.index],
            first_base=trace.access_base[first].astype(np.int64),
            first_pattern=trace.access_pattern[first],
        )
        if not (trace.pattern_mask[found.pattern] != 0).any():
            return without_address(op, size)
        return shape_of(found, trace, self.warps, self.buffers)

    def _active(self, pc: int) -> int:
        """Lanes that execute the instruction, on average over all warps."""
        executed = int(self.trace.pc_executed[pc])
        mean = round(int(self.trace.pc_threads[pc]) / executed) if executed else WARP_SIZE
        return min(max(mean, 1), WARP_SIZE)

    def _text(self, instruction: Instruction) -> str:
        lines = self.module.lines
        text = lines[instruction.line - 1] if 0 < instruction.line <= len(lines) else instruction.opcode
        text = " ".join(text.partition("//")[0].replace("\0", " ").split())
        return text if len(text) <= _TEXT else text[: _TEXT - 3].rstrip() + "..."
