"""The memory of a functional run: tables that all its blocks read, and what each block in flight has for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.analysis.access_groups import Groups
from ppt_gpu.emulator.jit.async_copies import AsyncCopies
from ppt_gpu.emulator.launch.layout import Layout
from ppt_gpu.emulator.memory.memory import DeviceMemory, function_address, has_function
from ppt_gpu.emulator.memory.warp_context import BARRIERS, SLOTS, Slot
from ppt_gpu.ptx.module import Module
from ppt_gpu.workload.block_cluster import blocks_of, cluster_of, is_explicit
from ppt_gpu.workload.workload import Launch

if TYPE_CHECKING:
    from ppt_gpu.emulator.jit.compiler.compile import Engine

TURN = 20_000  # warp instructions before the next warp of the block gets its turn
#: blocks that take turns at a work which they share: about as many as the largest GPUs hold
AT_ONCE = 4096
#: warp instructions of each warp in such a turn
SHORTEST_TURN, LONGEST_TURN = 64, 1024
#: entries of the divergence stack: paths part at most 31 times before they meet again, each with a join, and once more
#: where lanes that met go on apart
STACK_ENTRIES = 160
LEAST_FRAME = 16  # B of stack that every call takes


def shared_turn(done: int, blocks: int, warps: int) -> int:
    """Warp instructions of a block's turn at a work which it shares: a small part of what each has done.

    done: by all `blocks` that have begun, of so many `warps` each.
    """
    return min(max(done // (blocks * warps) // 16, SHORTEST_TURN), LONGEST_TURN) * warps


class Tables:
    """What stays the same from block to block. W warps a block."""

    def __init__(
        self, engine: Engine, module: Module, launch: Launch, memory: DeviceMemory, parameters: bytes, places: Layout
    ) -> None:
        self.engine, self.module, self.launch = engine, module, launch
        self.memory, self.layout = memory, places
        self.warps = -(-launch.threads_per_block // 32)
        self.cluster = cluster_of(engine.kernel, launch)
        self.parameters = np.frombuffer(parameters + bytes(16), np.uint8).copy()
        self.ranges = np.stack([memory.starts, memory.ends], axis=1).astype(np.int64).ravel()
        self.sites = _sites(engine)
        self.symbols = np.array([_symbol(s, places, memory, module) for s in engine.symbols] or [0], np.int64)
        self.guarded = np.zeros(max(len(engine.guarded), 1), np.int64)
        self.guarded_before = np.zeros_like(self.guarded)
        self.marks = np.zeros((0, len(self.guarded)), np.int64)  # [blocks or 0, n] `guarded` at the end of each block
        self.uniform = np.zeros(max(len(engine.uniform), 1), np.int64)
        self.copies = AsyncCopies(engine.kernel, engine.traced and blocks_of(self.cluster) == 1)
        self.notes = np.zeros(max(len(engine.kernel.instructions), 1), np.int64)
        self.tid = _thread_ids(launch, self.warps)
        self.grid = np.array(launch.grid, np.int64)
        self.cleared = np.array(engine.entry_offsets, np.int64).reshape(-1, 2)
        waiting = engine.flow.waiting
        self.spins = np.array([waiting.spins * 2, waiting.only * 2], np.int64).T.copy()

    def groups(self) -> Groups:
        """Of accesses, with the distances of this launch, once it has run."""
        return self.engine.groups.of_launch(dict(zip(self.engine.uniform, self.uniform.tolist(), strict=False)))

    def values(self) -> dict[Slot, int]:
        """Slots that are the same for all warps of all blocks."""
        found = {
            Slot.LOCAL_BYTES: self.layout.local_bytes,
            Slot.SHARED_BYTES: self.layout.shared_room,
            Slot.USER_SHARED: self.layout.shared_bytes,
            Slot.RESERVED_SHARED: max(self.layout.reserved, 0),
            Slot.PARAM: self.parameters.ctypes.data,
            Slot.PARAM_BYTES: len(self.parameters) - 16,
            Slot.SITES: self.sites.ctypes.data,
            Slot.RANGES: self.ranges.ctypes.data,
            Slot.RANGE_COUNT: len(self.ranges) // 2,
            Slot.HOST: self.memory.data.ctypes.data - self.memory.base,
            Slot.SYMBOLS: self.symbols.ctypes.data,
            Slot.GUARDED: self.guarded.ctypes.data,
            Slot.UNIFORM: self.uniform.ctypes.data,
            Slot.NOTES: self.notes.ctypes.data,
            Slot.COPIES: self.copies.block.ctypes.data,
            Slot.WARPS: self.warps,
            Slot.DYNAMIC_SHARED: self.launch.dynamic_shared,
            Slot.CONST_END: self.memory.const_end,
            Slot.CLUSTER_BLOCKS: blocks_of(self.cluster),
            Slot.CLUSTER_EXPLICIT: int(is_explicit(self.engine.kernel, self.launch)),
            Slot.TEXTURES: self.memory.textures.rows.ctypes.data,
            Slot.TEXTURE_COUNT: self.memory.textures.count,
            Slot.ARENA: self.memory.data.ctypes.data,
        }
        for axis in range(3):
            found[Slot(Slot.NTID_X + axis)] = self.launch.block[axis]
            found[Slot(Slot.NCTAID_X + axis)] = self.launch.grid[axis]
            found[Slot(Slot.CLUSTER_X + axis)] = self.cluster[axis]
        return found


class Resident:
    """A block in flight: its warps' rows, registers and stacks, its shared and local memory, its scheduler state.

    Blocks that run one after another share one.
    """

    def __init__(self, tables: Tables, shared: NDArray[np.uint8] | None = None, rank: int = 0) -> None:
        """`shared` [blocks of the cluster, bytes]: the shared memory of a cluster, in which the block has `rank`."""
        from ppt_gpu.emulator.run.schedule import State

        warps, engine, places = tables.warps, tables.engine, tables.layout
        self.tables = tables
        self.cluster = np.zeros((1, max(places.shared_room, 1)), np.uint8) if shared is None else shared
        self.rank = rank
        self.shared = self.cluster[rank]
        #: what to clear when a block begins: not what other blocks of its cluster may have written before
        self.cleared = self.shared if len(self.cluster) == 1 else self.shared[:0]
        self.local = np.zeros(max(warps * 32 * places.local_bytes, 1), np.uint8)
        self.frames = _aligned(warps, engine.frame_bytes)
        calls = places.local_bytes // LEAST_FRAME if engine.kernel.calls else 0
        self.stacks = np.zeros((warps, STACK_ENTRIES + calls, 4), np.int32)
        self.rows = np.zeros((warps, SLOTS), np.int64)
        self._fill_rows()
        self.state = np.zeros(State.FIRST_BARRIER + BARRIERS, np.int64)
        self.state[State.LOCAL_BYTES] = places.local_bytes
        self.state[State.TURN] = TURN
        self.state[State.THREADS] = tables.launch.threads_per_block

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (self.shared, self.local, self.frames, self.stacks, self.rows))

    def _fill_rows(self) -> None:
        tables, rows = self.tables, self.rows
        for slot, value in tables.values().items():
            rows[:, slot] = value
        rows[:, Slot.SHARED] = self.shared.ctypes.data
        rows[:, Slot.CLUSTER_SHARED] = self.cluster.ctypes.data
        rows[:, Slot.CLUSTER_STRIDE] = self.cluster.shape[1]
        rows[:, Slot.CLUSTER_RANK] = self.rank
        x, y, _ = tables.cluster
        place = (self.rank % x, self.rank // x % y, self.rank // (x * y))
        rows[:, [Slot.CLUSTER_CTAID_X, Slot.CLUSTER_CTAID_Y, Slot.CLUSTER_CTAID_Z]] = place
        rows[:, Slot.STACK_ROOM] = self.stacks.shape[1]
        for w in range(tables.warps):
            rows[w, Slot.WARP] = w
            rows[w, Slot.FRAME] = self.frames[w].ctypes.data
            rows[w, Slot.STACK] = self.stacks[w].ctypes.data
            rows[w, Slot.LOCAL] = self.local.ctypes.data + w * 32 * tables.layout.local_bytes
            rows[w, Slot.TID] = tables.tid[w].ctypes.data

    def lane_memory(self, warp: int, lane: int) -> NDArray[np.uint8]:
        """The local memory of one thread."""
        size = self.tables.layout.local_bytes
        first = (32 * warp + lane) * size
        return self.local[first : first + size]


def _aligned(rows: int, size: int) -> NDArray[np.uint8]:
    """[rows, size] bytes that begin on a 64-byte boundary; size is a multiple of 64."""
    raw = np.zeros(rows * size + 64, np.uint8)
    skip = -raw.ctypes.data % 64
    return raw[skip : skip + rows * size].reshape(rows, size)


def _sites(engine: Engine) -> NDArray[np.int64]:
    """Empty range caches."""
    from ppt_gpu.emulator.jit.access import SITE_PC, SITE_WORDS

    sites = _aligned(max(len(engine.sites), 1), 8 * SITE_WORDS).view(np.int64)
    sites[: len(engine.sites), SITE_PC] = engine.sites
    return sites


def _symbol(name: str, places: Layout, memory: DeviceMemory, module: Module) -> int:
    """The address of a variable in its own space, or of a function."""
    if name in places.shared:
        return places.shared[name]
    if name in memory.index or not has_function(module, name):
        return memory.address_of(name)
    return function_address(module, name)


def _thread_ids(launch: Launch, warps: int) -> NDArray[np.int32]:
    """[W, 3, 32] tid.x, tid.y, tid.z of every lane; lanes beyond the block repeat its pattern."""
    x, y, _ = launch.block
    thread = np.arange(warps * 32)
    ids = np.stack([thread % x, thread // x % y, thread // (x * y)])
    flat = _aligned(1, warps * 3 * 32 * 4).view(np.int32).reshape(warps, 3, 32)
    flat[:] = ids.reshape(3, warps, 32).transpose(1, 0, 2)
    return flat
