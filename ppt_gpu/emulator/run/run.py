"""The functional run of a launch: compiled once per kernel, blocks one after another, memory changed in place.

Blocks that wait for each other take turns: when every warp of a block only waits, the next block begins. Blocks that
come back for more of a work that they share (`ppt_gpu.emulator.analysis.dynamic_work`) take short turns all the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.common.threads import COMPILING
from ppt_gpu.common.units import format_bytes
from ppt_gpu.emulator.analysis.data_dependence import decided_by
from ppt_gpu.emulator.analysis.dynamic_work import come_back
from ppt_gpu.emulator.launch.layout import Layout, layout
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.races.warnings import with_shared_warnings
from ppt_gpu.emulator.run.launch_state import Tables
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.emulator.trace.trace_parts import only_blocks
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.ptx.linking.mangling import short_name
from ppt_gpu.ptx.module import Kernel, Module
from ppt_gpu.workload.arguments import pack_arguments
from ppt_gpu.workload.block_cluster import blocks_of, whole_clusters
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Launch

if TYPE_CHECKING:
    from ppt_gpu.emulator.jit.compiler.compile import Engine


def run(
    kernel: Kernel,
    module: Module,
    launch: Launch,
    memory: DeviceMemory,
    blocks: Sequence[int],
    *,
    trace: bool = True,
    results: bool = True,
    budget: Budget | None = None,
) -> Trace:
    """Run the blocks with these linear ids (x fastest) in the order given; `memory` changes.

    Instructions in the trace are those of the kernel linked with its functions (`ppt_gpu.ptx.linking.link`). With
    `trace` False only memory changes: the trace has no paths, accesses and counts. With `results` False nobody asks
    what memory holds afterwards: where memory does not steer the kernel, only what decides the trace is computed.

    Raises PptError with the PTX line for a fault (access out of bounds or misaligned, trap, an assertion, an
    instruction that is not executed yet), for arguments that do not fit the kernel, a block outside of the grid, a
    barrier that never opens or a block that waits for what no block does, and BudgetError.
    """
    from ppt_gpu.emulator.run.run_blocks import BlockRun

    ids = _block_ids(blocks, launch, module, kernel)
    limits = budget or Budget()
    parameters = pack_arguments(module, kernel, launch, memory)
    with COMPILING:
        engine = _engine(_Key(module, kernel), trace, results or not trace)
    places = layout(module, engine.kernel, launch.dynamic_shared, limits.stack)
    _check_block_memory(kernel, module, launch, memory, places, limits)
    tables = Tables(engine, module, launch, memory, parameters, places)
    together = ids
    if blocks_of(tables.cluster) > 1 or (ids[1:] <= ids[:-1]).any():
        together = np.array(whole_clusters(ids.tolist(), launch.grid, tables.cluster), np.int64)
    recorded = BlockRun(tables, module.path, together, limits, come_back(engine.kernel)).go()
    if not trace:
        return recorded
    if together is not ids:
        recorded = only_blocks(recorded, ids.tolist())
    return with_shared_warnings(recorded, engine.kernel, module.named, places, tables.copies.notes, launch.grid)


def _block_ids(blocks: Sequence[int], launch: Launch, module: Module, kernel: Kernel) -> NDArray[np.int64]:
    if isinstance(blocks, range):
        ids = np.arange(blocks.start, blocks.stop, blocks.step, dtype=np.int64)
    else:
        ids = np.array(list(blocks), np.int64)
    outside = ids[(ids < 0) | (ids >= launch.blocks)]
    if len(outside):
        raise PptError(
            f"block {outside[0]} is outside of the grid of kernel '{short_name(kernel.name)}', which has "
            f"{launch.blocks} blocks",
            path=module.path,
            line=kernel.line or None,
        )
    return ids


def _check_block_memory(
    kernel: Kernel, module: Module, launch: Launch, memory: DeviceMemory, places: Layout, budget: Budget
) -> None:
    """BudgetError when a block's shared and local memory exceed what the buffers leave of the memory budget."""
    threads = -(-launch.threads_per_block // 32) * 32
    if len(memory.data) + places.shared_bytes + threads * places.local_bytes <= budget.memory:
        return
    raise BudgetError(
        f"a block of kernel '{short_name(kernel.name)}' has {format_bytes(places.shared_bytes)} of shared memory and "
        f"{format_bytes(places.local_bytes)} of local memory a thread: with the buffers more than the memory budget of "
        f"{format_bytes(budget.memory)}",
        path=module.path,
        line=kernel.line or None,
        hint="smaller arrays, or a larger budget: --max-memory SIZE, or Budget(memory=BYTES)",
    )


class _Key:
    """Equal for the same kernel of the same module text, however often it is parsed."""

    def __init__(self, module: Module, kernel: Kernel) -> None:
        self.kernel, self.module = kernel, module
        text = "\n".join(module.lines).encode() if module.lines else repr((kernel, module.functions)).encode()
        self.value = (sha256(text).digest(), kernel.name, *sorted(module.assumptions.items()))

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.value == other.value


@lru_cache(maxsize=64)
def _engine(key: _Key, traced: bool, results: bool) -> Engine:
    from ppt_gpu.emulator.jit.compiler.compile import compile_kernel

    try:
        kernel = link(key.kernel, key.module)
        return compile_kernel(kernel, traced, None if results else decided_by(kernel))
    except PptError as error:
        error.path = error.path or key.module.path
        raise


def forget_engines() -> None:
    """Let go of all compiled kernels: the next run compiles again."""
    _engine.cache_clear()
