"""Where a prediction gets its traces: from a trace file, from those kept of earlier runs, or by running the kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError, WaitingError
from ppt_gpu.emulator.analysis.assumed import assumed_warnings
from ppt_gpu.emulator.analysis.data_dependence import steered_by_memory
from ppt_gpu.emulator.analysis.dynamic_work import (
    Claim,
    claims_of,
    lock_text,
    sharing_text,
    waiting_text,
    waits_for_blocks,
)
from ppt_gpu.emulator.cache.store import Store
from ppt_gpu.emulator.cache.trace_cache import Kept, content_bytes, recall
from ppt_gpu.emulator.launch.layout import layout
from ppt_gpu.emulator.memory.initial_memory import MemoryState
from ppt_gpu.emulator.trace.block_features import BlockFeatures, features_of, run_features
from ppt_gpu.emulator.trace.global_accesses import global_accesses
from ppt_gpu.emulator.trace.identity import digest, launch_digest, memory_digest, module_digest, program_digest
from ppt_gpu.emulator.trace.trace import GlobalAccesses, Trace
from ppt_gpu.emulator.trace.trace_file import Content, Record
from ppt_gpu.emulator.trace.trace_parts import only_blocks
from ppt_gpu.ptx.instructions import is_bulk, is_memory
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.ptx.module import Module
from ppt_gpu.workload.block_cluster import cluster_of, whole_clusters
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Workload

if TYPE_CHECKING:
    from ppt_gpu.emulator.memory.memory import DeviceMemory

#: A grid is traced whole at its first run when that takes at most so much, so that no other GPU needs a run of its own
WHOLE_ACCESSES = 2_000_000
WHOLE_INSTRUCTIONS = 200_000_000  # of threads
#: instructions of threads that take as long as a bulk copy, which goes through Python
BULK_COPY = 300_000
#: and its global accesses are looked at whole, for what it leaves in the L2, up to so many sectors
WHOLE_SECTORS = 4_000_000

#: and so it is where its blocks share work out among themselves, up to so many
SHARED_INSTRUCTIONS = 4_000_000_000  # of threads


#: the order of what was asked for in a trace file
_ASKED: tuple[type[Content], ...] = (Trace, GlobalAccesses, BlockFeatures)

P = ParamSpec("P")
R = TypeVar("R")


class Traces:
    """The traces of a workload's launches, in order. `workload` is bound to `module`."""

    def __init__(
        self,
        module: Module,
        workload: Workload,
        contents: Mapping[str, NDArray[Any]],
        budget: Budget,
        store: Store | None = None,
    ) -> None:
        self.module, self.workload, self.budget, self.store = module, workload, budget, store
        self.text = module_digest(module)
        self.initial = "" if store is None else self._initial_digest(contents)
        self.state = MemoryState(partial(_device_memory, module, workload, contents, budget), self.initial)
        #: for kernels that memory does not steer: what buffers hold is nothing to their traces
        self.unread = MemoryState(partial(_device_memory, module, workload, contents, budget, unread=True), "")
        self.launches: dict[int, LaunchTraces] = {}  # those asked for
        self.notes: Any = ()  # how the PTX was made, for the report

    def _initial_digest(self, contents: Mapping[str, NDArray[Any]]) -> str:
        w = self.workload
        return memory_digest(self.text, w.buffers, w.symbols, contents, Path(w.path).parent, w.textures)

    def launch(self, number: int) -> LaunchTraces:
        """Those of launch `number`. Ask for launches in order, and `advance` each before the next."""
        return LaunchTraces(self, number)

    def records(self) -> list[Record]:
        """What a trace file needs to make the same prediction: the same records, whatever was kept before."""
        return [record for _, launch in sorted(self.launches.items()) for record in launch.records()]


def _device_memory(
    module: Module, workload: Workload, contents: Mapping[str, NDArray[Any]], budget: Budget, unread: bool = False
) -> DeviceMemory:
    from ppt_gpu.emulator.memory.initial_memory import device_memory  # only where something is run

    return device_memory(module, workload, contents, budget, unread)


def _alone(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """One thread at a time for each launch that is known by the same runs: the others find what it ran."""

    @wraps(method)
    def locked(self: Any, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.kept.lock:
            return method(self, *args, **kwargs)

    return locked


class LaunchTraces:
    """The traces of one launch. Running leaves what the launch finds in memory as it is; `advance` changes it."""

    claims: tuple[Claim, ...] = ()  # by which its blocks share work out among themselves
    waits = False  # it has a loop in which it waits for what other blocks write
    local_frame: int  # bytes of local memory of a warp

    def __init__(self, traces: Traces, number: int) -> None:
        self.traces, self.number = traces, number
        self.module, self.budget, self.store = traces.module, traces.budget, traces.store
        self.launch = traces.workload.launches[number]
        self.kernel = link(traces.module.kernels[self.launch.kernel], traces.module)
        self.local_frame = layout(self.module, self.kernel, stack=self.budget.stack).warp_frame
        self.identity = launch_digest(traces.text, self.launch, traces.workload.buffers)
        self.cluster = cluster_of(self.kernel, self.launch)
        self.separable = not steered_by_memory(self.kernel)  # clusters from each other
        # What steers nothing need not be the same, and later launches need not wait for what earlier ones leave.
        self.found = traces.initial if self.separable else traces.state.digest
        self.kept = self._kept()
        traces.launches[number] = self
        self._asked: set[tuple[type[Content], tuple[int, ...]]] = set()  # what the prediction needed
        if not self.separable and self.launch.blocks > 1:
            self.claims, self.waits = claims_of(self.kernel), waits_for_blocks(self.kernel)
        self.together = False  # blocks wait for others: no part of the grid runs alone
        self.warned = False  # a run had warnings of its own: traces are not put together
        self._scratch: DeviceMemory | None = None

    def _kept(self) -> Kept:
        if self.store is None:
            return Kept("")
        return recall(self._group(self.found), self.store)

    def _group(self, found: str) -> str:
        # Warnings name the file: what a copy of it left says the same with another name.
        return digest(program_digest(), self.identity, found, self.budget, self.module.named)

    def run(self, blocks: Sequence[int]) -> Trace:
        """The trace of these blocks, run in this order. Raises as `ppt_gpu.emulator.run.run.run`."""
        found: Trace = self._run(blocks)
        self._asked.add((Trace, tuple(blocks)))
        return found

    @_alone
    def _run(self, blocks: Sequence[int]) -> Trace:
        known: Trace | None = self.kept.whole(Trace, blocks)
        if known is None and self.separable:
            known = self._joined(blocks)
        return known if known is not None else self._keep(self._execute(blocks), separable=False)

    def touched(self, blocks: Sequence[int]) -> GlobalAccesses:
        """The global accesses of these blocks."""
        found: GlobalAccesses = self._touched(blocks)
        self._asked.add((GlobalAccesses, tuple(blocks)))
        return found

    @_alone
    def _touched(self, blocks: Sequence[int]) -> GlobalAccesses:
        known: GlobalAccesses | None = self.kept.whole(GlobalAccesses, blocks)
        if known is None and self.separable:
            missing = self.kept.missing_globals(blocks)
            if not missing or (not self.warned and self._run_missing(missing, only_global=True)):
                known = self.kept.join_globals(self.kernel, blocks)
        if known is None:
            known = self._keep(global_accesses(self.kernel, self._execute(blocks)), separable=False)
        return known

    def whole_grid(self, features: BlockFeatures) -> GlobalAccesses | None:
        """The global accesses of all blocks, where by the `features` of some they are cheap to have; else None."""
        scale = self.launch.blocks / max(len(features), 1)
        cheap = (
            int(features.sectors.sum()) * scale <= WHOLE_SECTORS
            and int(features.thread_instructions.sum()) * scale <= WHOLE_INSTRUCTIONS
            and int(features.warp_instructions.sum()) * scale <= self.budget.instructions
        )
        if not (self.separable and cheap):
            return None
        try:
            return self.touched(range(self.launch.blocks))
        except PptError:  # a block that the prediction does not need is at fault, or is not in a recorded trace
            return None

    def last_blocks(self, features: BlockFeatures, sectors: int) -> GlobalAccesses | None:
        """The global accesses of as many of the last blocks as access `sectors` sectors, where they run alone; by the
        `features` of some."""
        each = max(len(features), 1)
        wanted = sectors / max(int(features.sectors.sum()) / each, 1.0)
        affordable = WHOLE_INSTRUCTIONS / max(int(features.thread_instructions.sum()) / each, 1.0)
        count = min(math.ceil(wanted), int(affordable), self.launch.blocks)
        if not self.separable or count < 1:
            return None
        try:
            return self.touched(range(self.launch.blocks - count, self.launch.blocks))
        except PptError:  # as in `whole_grid`
            return None

    def features(self, blocks: Sequence[int]) -> BlockFeatures:
        """What each of these blocks does. Traces are kept where they are small: the simulation may ask for them."""
        found: BlockFeatures = self._features(blocks)
        self._asked.add((BlockFeatures, tuple(blocks)))
        return found

    @_alone
    def _features(self, blocks: Sequence[int]) -> BlockFeatures:
        known: BlockFeatures | None = self.kept.whole(BlockFeatures, blocks)
        if known is None:
            if len(blocks) == 1 or self._cheap(len(blocks), self.kept.any_trace()):
                known = features_of(self._run(blocks))
            else:
                known = run_features(self._execute, blocks)
            self._keep(known, separable=False)
        return known

    @_alone
    def advance(self, blocks: Sequence[int]) -> None:
        """Run these blocks for what they leave in memory, which later launches find."""
        state = self.traces.state
        change = partial(self._change, blocks=blocks)
        name = digest("advance", tuple(blocks))[:32]
        group = self._group(state.digest)
        state.change(change, digest(state.digest, self.identity, tuple(blocks)))
        if self.store is None or not self.store.has_mark(group, name):
            state.memory  # noqa: B018  (runs it)
            if self.store is not None:
                self.store.mark(group, name)

    def release(self) -> None:
        """Let go of the memory that runs were made in."""
        self._scratch = None

    def _change(self, memory: DeviceMemory, blocks: Sequence[int]) -> None:
        from ppt_gpu.emulator.run.run import run

        run(self.kernel, self.module, self.launch, memory, blocks, trace=False, budget=self.budget)

    @property
    def sharing(self) -> str:
        """What to say of blocks that share work out among themselves; empty where they do not."""
        return sharing_text(self.claims, self.runs_whole) if self.claims else ""

    def waiting(self, said: Sequence[str]) -> str:
        """What to say of blocks that wait for others, beside the warnings `said`; empty where there is nothing."""
        name = self.kernel.name
        return lock_text(name) if self.waits and waiting_text(name) not in said else ""

    @cached_property
    def runs_whole(self) -> bool:
        """Do the blocks share work out, and is the whole grid run to learn what is whose?

        Blocks that come back for more would take everything when they run alone, so there it always is.
        """
        if not self.claims or any(claim.repeated for claim in self.claims):
            return bool(self.claims)
        return self.kept.whole(Trace, range(self.launch.blocks)) is not None or self._affordable()

    def _affordable(self) -> bool:
        """May the grid be run whole, by what one block does alone? It has to be where blocks wait for others."""
        blocks = self.launch.blocks
        try:
            one = features_of(self._execute_alone([blocks // 2]))
        except WaitingError:
            self.together = True
            return True
        return (
            int(one.thread_instructions[0]) * blocks <= SHARED_INSTRUCTIONS
            and int(one.warp_instructions[0]) * blocks <= self.budget.instructions
        )

    def _execute(self, blocks: Sequence[int]) -> Trace:
        if not self.together and not self.runs_whole:
            try:
                return self._execute_alone(blocks)
            except WaitingError:
                if len(set(blocks)) == self.launch.blocks:
                    raise
                self.together = True
        return only_blocks(self._whole_run, blocks)

    def _execute_alone(self, blocks: Sequence[int]) -> Trace:
        from ppt_gpu.emulator.run.run import run

        if self._scratch is None or not self.separable:
            self._scratch = (self.traces.unread if self.separable else self.traces.state).copy()
        memory = self._scratch
        return run(
            self.kernel, self.module, self.launch, memory, blocks, results=not self.separable, budget=self.budget
        )

    @cached_property
    def _whole_run(self) -> Trace:
        """The trace of the whole grid, whose blocks wait for one another or share work out."""
        grid = range(self.launch.blocks)
        known: Trace | None = self.kept.whole(Trace, grid)
        if known is None:
            known = self._execute_alone(grid)
            if self.together or self.waits:
                known = replace(known, warnings=(*known.warnings, waiting_text(self.kernel.name)))
            self._keep(known, separable=False)
        return known

    def _joined(self, blocks: Sequence[int]) -> Trace | None:
        """The trace put together from blocks, those that are missing run now; None where that cannot be."""
        missing = self.kept.missing(blocks)
        if missing and (self.warned or not self._run_missing(missing)):
            return None
        found = self.kept.join(blocks)
        within = found.warp_instructions <= self.budget.instructions and content_bytes(found) <= self.budget.trace
        return found if within else None

    def _run_missing(self, missing: Sequence[int], only_global: bool = False) -> bool:
        """Run and keep these blocks, or the whole grid where that is cheap. False when their trace has no parts.

        Of a cluster all blocks run, and so all are kept.
        """
        wide = self._whole_grid() if self.store is not None else []
        if wide:
            try:
                return self._keep_parts(self._execute(wide), only_global=False)
            except PptError:
                pass  # a block that nobody asked for is at fault
        return self._keep_parts(self._execute(whole_clusters(missing, self.launch.grid, self.cluster)), only_global)

    def _keep_parts(self, trace: Trace, only_global: bool) -> bool:
        self.warned = self._warns(trace)
        if trace.block_threads is None or self.warned:
            return False
        self._keep(global_accesses(self.kernel, trace) if only_global else trace, separable=True)
        return True

    def _warns(self, trace: Trace) -> bool:
        """Are there warnings of what some block did? They must not come from where that block is not asked for."""
        standing = (*self.traces.unread.memory.warnings, *assumed_warnings(self.kernel, self.module))
        return trace.warnings != standing

    def _whole_grid(self) -> list[int]:
        """The blocks without a trace, when tracing all of them is cheap; else none."""
        cheap = self._cheap(self.launch.blocks, self.kept.any_trace())
        return self.kept.missing(range(self.launch.blocks)) if cheap else []

    def _cheap(self, blocks: int, sample: Trace | None) -> bool:
        """Are the traces of so many blocks small, by one that can be taken apart?"""
        if sample is None:
            return False
        scale = blocks / len(sample.blocks)
        copies = sum(int(sample.pc_executed[i.index]) for i in self.kernel.instructions if is_bulk(i) and is_memory(i))
        return (
            len(sample.access_base) * scale <= WHOLE_ACCESSES
            and (sample.thread_instructions + copies * BULK_COPY) * scale <= WHOLE_INSTRUCTIONS
            and sample.warp_instructions * scale <= self.budget.instructions
        )

    def _keep(self, content: Any, separable: bool) -> Any:
        self.kept.add(self.record(content, separable))
        return content

    @_alone
    def records(self) -> list[Record]:
        """What the prediction asked for, in a fixed order. Of blocks that stand alone each is there once; and the whole
        grid, where that is small, so that other GPUs find the blocks that they need."""
        asked = sorted(self._asked, key=lambda each: (_ASKED.index(each[0]), -len(each[1]), each[1]))
        ran = [blocks for kind, blocks in asked if kind is Trace]
        alone = self.separable and all(self._has_parts(self._run(blocks)) for blocks in ran)
        whole = self._small_grid(self._run(ran[0])) if alone and ran else None
        found = [] if whole is None else [self.record(whole, separable=True)]
        known = set() if whole is None else set(range(self.launch.blocks))
        ask: dict[type[Content], Callable[[Sequence[int]], Content]] = {
            Trace: self._run, GlobalAccesses: self._touched, BlockFeatures: self._features,
        }  # fmt: skip
        for kind, blocks in asked:
            parts = alone and kind is not BlockFeatures
            if not (parts and known.issuperset(blocks)):
                found.append(self.record(ask[kind](blocks), separable=parts))
                known.update(blocks if parts else ())
        grid = range(self.launch.blocks)
        if self.claims and self.runs_whole and (Trace, tuple(grid)) not in self._asked:  # by which a reader knows it
            found.append(self.record(self._whole_run, separable=False))
        return found

    def _small_grid(self, sample: Trace) -> Trace | None:
        """The trace of the whole grid, where by that of some blocks it is small, and can be taken apart."""
        if not self._cheap(self.launch.blocks, sample):
            return None
        try:
            found: Trace = self._run(range(self.launch.blocks))
        except PptError:  # a block that the prediction does not need is at fault, or is not in a recorded trace
            return None
        return found if self._has_parts(found) else None

    def _has_parts(self, trace: Trace) -> bool:
        return trace.block_threads is not None and not self._warns(trace)

    def record(self, content: Content, separable: bool) -> Record:
        """`content` with what it belongs to."""
        return Record(
            launch=self.number,
            kernel=self.kernel.name,
            grid=self.launch.grid,
            threads=self.launch.threads_per_block,
            instructions=len(self.kernel.instructions),
            identity=self.identity,
            separable=separable,
            content=content,
        )
