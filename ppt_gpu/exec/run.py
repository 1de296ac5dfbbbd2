"""The functional run of a launch: compiled once per kernel, blocks one after another, memory changed in place."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.errors import BudgetError, PptError
from ppt_gpu.exec.arguments import pack_arguments
from ppt_gpu.exec.assumed import assumed_warnings
from ppt_gpu.exec.budget import Budget
from ppt_gpu.exec.jit_context import SLOTS, Fault, Flag, Slot
from ppt_gpu.exec.layout import Layout, layout
from ppt_gpu.exec.memory import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_BYTES, DeviceMemory
from ppt_gpu.exec.trace import Trace
from ppt_gpu.exec.workload import Launch
from ppt_gpu.ptx.instructions import access_kind
from ppt_gpu.ptx.module import Kernel, Module
from ppt_gpu.units import format_count

if TYPE_CHECKING:
    from ppt_gpu.exec.collect import Collector
    from ppt_gpu.exec.jit_compile import Engine

TURN = 20_000  # warp instructions before the next warp of the block gets its turn
TURNS = 1 << 14  # turns noted before the trace buffers are taken over
_WARNINGS = {
    Flag.DIVERGENT_BARRIER: "a barrier was reached by some lanes of a warp only; the whole warp was taken to arrive",
    Flag.DIVERGENT_SYNC: "a .sync instruction named lanes that were not executing with the others",
}


def run(
    kernel: Kernel,
    module: Module,
    launch: Launch,
    memory: DeviceMemory,
    blocks: Sequence[int],
    *,
    trace: bool = True,
    budget: Budget | None = None,
) -> Trace:
    """Run the blocks with these linear ids (x fastest) in the order given; `memory` changes.

    With `trace` False only memory changes: the trace has no paths, accesses and counts. Raises PptError with the PTX
    line for a fault (access out of bounds or misaligned, trap, an instruction that is not executed yet), for arguments
    that do not fit the kernel, a block outside of the grid or a barrier that never opens, and BudgetError.
    """
    ids = _block_ids(blocks, launch, module, kernel)
    parameters = pack_arguments(module, kernel, launch, memory)
    engine = _engine(_Key(module, kernel), trace)
    return _Run(engine, module, launch, memory, parameters, ids, budget or Budget()).go()


def _block_ids(blocks: Sequence[int], launch: Launch, module: Module, kernel: Kernel) -> NDArray[np.int64]:
    ids = np.array(list(blocks), np.int64)
    outside = ids[(ids < 0) | (ids >= launch.blocks)]
    if len(outside):
        raise PptError(
            f"block {outside[0]} is outside of the grid of kernel '{kernel.name}', which has {launch.blocks} blocks",
            path=module.path,
            line=kernel.line or None,
        )
    return ids


class _Key:
    """Equal for the same kernel of the same module text, however often it is parsed."""

    def __init__(self, module: Module, kernel: Kernel) -> None:
        self.kernel = kernel
        text = "\n".join(module.lines).encode() if module.lines else repr(kernel).encode()
        self.value = (sha256(text).digest(), kernel.name, *sorted(module.assumptions.items()))

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.value == other.value


@lru_cache(maxsize=64)
def _engine(key: _Key, traced: bool) -> Engine:
    from ppt_gpu.exec.jit_compile import compile_kernel

    return compile_kernel(key.kernel, traced)


class _Run:
    """The arrays of one run. W warps a block."""

    def __init__(
        self,
        engine: Engine,
        module: Module,
        launch: Launch,
        memory: DeviceMemory,
        parameters: bytes,
        blocks: NDArray[np.int64],
        budget: Budget,
    ) -> None:
        self.engine, self.module, self.launch, self.memory = engine, module, launch, memory
        self.blocks, self.budget = blocks, budget
        self.warps = -(-launch.threads_per_block // 32)
        self.layout = layout(module, engine.kernel, launch.dynamic_shared)
        self.shared = np.zeros(max(self.layout.shared_bytes, 1), np.uint8)
        self.local = np.zeros(max(self.warps * 32 * self.layout.local_bytes, 1), np.uint8)
        self.frames = _aligned(self.warps, engine.frame_bytes)
        self.stacks = np.zeros((self.warps, engine.flow.segments + 64, 4), np.int32)
        self.parameters = np.frombuffer(parameters + bytes(16), np.uint8).copy()
        self.ranges = np.stack([memory.starts, memory.ends], axis=1).astype(np.int64).ravel()
        self.sites = _sites(engine)
        self.symbols = np.array(
            [_symbol(s, self.layout, memory, engine.kernel) for s in engine.symbols] or [0], np.int64
        )
        self.guarded = np.zeros(max(len(engine.guarded), 1), np.int64)
        self.tid = _thread_ids(launch, self.warps)
        self.rows = self._rows()

    def _rows(self) -> NDArray[np.int64]:
        """A row a warp: everything that stays the same from block to block."""
        rows = np.zeros((self.warps, SLOTS), np.int64)
        values = {
            Slot.SHARED: self.shared.ctypes.data,
            Slot.SHARED_BYTES: self.layout.shared_bytes,
            Slot.LOCAL_BYTES: self.layout.local_bytes,
            Slot.PARAM: self.parameters.ctypes.data,
            Slot.PARAM_BYTES: len(self.parameters) - 16,
            Slot.SITES: self.sites.ctypes.data,
            Slot.RANGES: self.ranges.ctypes.data,
            Slot.RANGE_COUNT: len(self.ranges) // 2,
            Slot.HOST: self.memory.data.ctypes.data - self.memory.base,
            Slot.SYMBOLS: self.symbols.ctypes.data,
            Slot.GUARDED: self.guarded.ctypes.data,
            Slot.WARPS: self.warps,
            Slot.DYNAMIC_SHARED: self.launch.dynamic_shared,
            Slot.CONST_END: self.memory.const_end,
            Slot.CLUSTER_SHARED: self.shared.ctypes.data,
            Slot.CLUSTER_BLOCKS: 1,
            Slot.TEXTURES: self.memory.textures.rows.ctypes.data,
            Slot.TEXTURE_COUNT: self.memory.textures.count,
            Slot.ARENA: self.memory.data.ctypes.data,
        }
        for axis in range(3):
            values[Slot(Slot.NTID_X + axis)] = self.launch.block[axis]
            values[Slot(Slot.NCTAID_X + axis)] = self.launch.grid[axis]
        for slot, value in values.items():
            rows[:, slot] = value
        for w in range(self.warps):
            rows[w, Slot.WARP] = w
            rows[w, Slot.FRAME] = self.frames[w].ctypes.data
            rows[w, Slot.STACK] = self.stacks[w].ctypes.data
            rows[w, Slot.LOCAL] = self.local.ctypes.data + w * 32 * self.layout.local_bytes
            rows[w, Slot.TID] = self.tid[w].ctypes.data
        return rows

    def go(self) -> Trace:
        from ppt_gpu.exec.collect import Collector
        from ppt_gpu.exec.schedule import Reason, State, run_blocks

        collector = Collector(self.engine, self.warps, len(self.blocks), self.budget)
        self.marks = np.zeros((len(self.blocks) if collector.by_block else 0, len(self.guarded)), np.int64)
        state = np.zeros(32, np.int64)
        state[State.BUDGET] = self.budget.instructions
        state[State.LOCAL_BYTES] = self.layout.local_bytes
        state[State.TURN] = TURN
        state[State.THREADS] = self.launch.threads_per_block
        turns = np.zeros((TURNS, 6), np.int64)
        entry = np.array(self.engine.entry_offsets, np.int64).reshape(-1, 2)
        spins = np.array(self.engine.flow.spins * 2, np.int64)
        while True:
            collector.reset(state, self.rows, self.sites)
            reason = run_blocks(
                self.engine.address, self.rows, self.blocks, np.array(self.launch.grid, np.int64), state, turns,
                self.shared, self.local, self.frames, entry, self.stacks, spins, self.guarded, self.marks,
            )  # fmt: skip
            if reason in (Reason.FAULT, Reason.BUDGET, Reason.DEADLOCK):
                self._fail(reason, state)
            if self.engine.traced:
                collector.take(turns[: state[State.SEGMENTS]], int(state[State.POSITION]))
            if reason == Reason.FINISHED:
                return self._trace(collector, int(state[State.FLAGS]))

    def _trace(self, collector: Collector, flags: int) -> Trace:
        warnings = [
            *self.memory.warnings,
            *assumed_warnings(self.engine.kernel, self.module),
            *(text for flag, text in _WARNINGS.items() if flags & flag),
        ]
        n = len(self.engine.guarded)
        return collector.trace(self.blocks, self.guarded[:n], self.marks[:, :n], self.memory, tuple(warnings))

    def _fail(self, reason: int, state: NDArray[np.int64]) -> NoReturn:
        from ppt_gpu.exec.schedule import WAITING, Reason, State

        block = int(self.blocks[state[State.POSITION]])
        if reason == Reason.FAULT:
            self._fault(block, self.rows[int(state[State.WARP])])
        name = self.engine.kernel.name
        if reason == Reason.BUDGET:
            raise BudgetError(
                f"kernel '{name}' used up its instruction budget of {format_count(self.budget.instructions)} warp "
                f"instructions in block {self._block_text(block)}",
                path=self.module.path,
                line=self._line(int(self.rows[int(state[State.WARP]), Slot.RESUME])),
                hint="does a thread wait for another block, which runs later? Otherwise run fewer blocks, or raise "
                "the budget: --max-instructions N, or Budget(instructions=N)",
            )
        waiting = next(row for row in self.rows if row[Slot.STATUS] == WAITING)
        raise PptError(
            f"block {self._block_text(block)} of kernel '{name}' waits for ever: warp {waiting[Slot.WARP]} stands at "
            f"barrier {waiting[Slot.BARRIER]}, which not all of the expected warps reach",
            path=self.module.path,
            line=self._line(int(waiting[Slot.RESUME])),
        )

    def _line(self, point: int) -> int | None:
        """The PTX line of a resume point: of a segment's first instruction, or of the barrier before it."""
        flow, code = self.engine.flow, self.engine.kernel.instructions
        index = flow.start[point] if point < flow.segments else flow.start[point - flow.segments + 1] - 1
        return code[index].line if index < len(code) else None

    def _block_text(self, linear: int) -> str:
        x, y, _ = self.launch.grid
        return f"({linear % x}, {linear // x % y}, {linear // (x * y)})"

    def _fault(self, block: int, row: NDArray[np.int64]) -> NoReturn:
        code, pc, lane = Fault(int(row[Slot.FAULT])), int(row[Slot.FAULT_PC]), int(row[Slot.FAULT_LANE])
        address = int(row[Slot.FAULT_ADDRESS]) & 0xFFFFFFFFFFFFFFFF
        instruction = self.engine.kernel.instructions[pc]
        thread = self.tid[int(row[Slot.WARP]), :, lane]
        where = f"block {self._block_text(block)}, thread ({thread[0]}, {thread[1]}, {thread[2]})"
        place = self._place(address)
        kind = {"load": "reads", "store": "writes"}.get(access_kind(instruction) or "", "accesses")
        hint: str | None = None
        if code == Fault.BOUNDS:
            text = f"'{instruction.opcode}' {kind} out of bounds, {where}: {place}"
        elif code == Fault.ALIGNMENT:
            text = f"'{instruction.opcode}' is misaligned, {where}: {place}"
        elif code == Fault.SPACE:
            text = f"'{instruction.opcode}' does not work there, {where}: {place}"
            hint = "parameters are read only, and atomics work in global and shared memory"
        elif code == Fault.TEXTURE:
            text = f"'{instruction.opcode}' has a handle that is no texture or surface, {where}"
            hint = "give it as an argument such as texture(data, width=64), or name it in [textures] of the workload"
        elif code == Fault.SURFACE:
            text = f"'{instruction.opcode}' is outside of its surface, {where}"
            hint = "x counts bytes; .clamp and .zero allow what .trap does not"
        elif code == Fault.TRAP:
            text = f"'{instruction.opcode}' was reached, {where}"
            hint = "an assertion of the kernel failed, or its author took this place to be unreachable"
        elif code == Fault.PARTIAL:
            text = f"'{instruction.opcode}' needs all 32 lanes of the warp, some did not execute it, {where}"
        elif code == Fault.TARGET:
            text = f"'{instruction.opcode}' has an index outside of its list, {where}"
        else:
            text = f"'{instruction.opcode}' is not executed yet: {self.engine.unsupported[pc]}, {where}"
            hint = (
                f"--assume {instruction.opcode.partition('.')[0]}=CLASS times it as fp32, int32, tensor, ... without "
                "executing it; or describe the work as a task list"
            )
        raise PptError(text, path=self.module.path, line=instruction.line, column=instruction.column, hint=hint)

    def _place(self, address: int) -> str:
        if SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_BYTES:
            return f"address {address - SHARED_WINDOW:#x} of shared memory, which has {self.layout.shared_bytes} bytes"
        if LOCAL_WINDOW <= address < LOCAL_WINDOW + WINDOW_BYTES:
            size = self.layout.local_bytes
            return f"address {address - LOCAL_WINDOW:#x} of local memory, which has {size} bytes a thread"
        if PARAM_WINDOW <= address < PARAM_WINDOW + WINDOW_BYTES:
            return f"byte {address - PARAM_WINDOW} of the parameters, which have {len(self.parameters) - 16} bytes"
        return f"address {address:#x} is {self.memory.nearest_buffer(address)}"


def _aligned(rows: int, size: int) -> NDArray[np.uint8]:
    """[rows, size] bytes that begin on a 64-byte boundary; size is a multiple of 64."""
    raw = np.zeros(rows * size + 64, np.uint8)
    skip = -raw.ctypes.data % 64
    return raw[skip : skip + rows * size].reshape(rows, size)


def _sites(engine: Engine) -> NDArray[np.int64]:
    """Empty range caches."""
    from ppt_gpu.exec.jit_access import SITE_PC, SITE_WORDS

    sites = np.zeros((max(len(engine.sites), 1), SITE_WORDS), np.int64)
    sites[: len(engine.sites), SITE_PC] = engine.sites
    return sites


def _symbol(name: str, places: Layout, memory: DeviceMemory, kernel: Kernel) -> int:
    """The address of a variable or parameter in its own space."""
    if name in places.shared:
        return places.shared[name]
    if name in places.local:
        return places.local[name]
    for param in kernel.params:
        if param.name == name:
            return param.offset
    return memory.address_of(name)


def _thread_ids(launch: Launch, warps: int) -> NDArray[np.int32]:
    """[W, 3, 32] tid.x, tid.y, tid.z of every lane; lanes beyond the block repeat its pattern."""
    x, y, _ = launch.block
    thread = np.arange(warps * 32)
    ids = np.stack([thread % x, thread // x % y, thread // (x * y)])
    flat = _aligned(1, warps * 3 * 32 * 4).view(np.int32).reshape(warps, 3, 32)
    flat[:] = ids.reshape(3, warps, 32).transpose(1, 0, 2)
    return flat
