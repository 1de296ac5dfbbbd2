"""The dependency graph of a task list: critical path, instruction- and memory-level parallelism of one warp.

Definitions (GPUPerf: Sim, Dasgupta, Kim, Vuduc, PPoPP 2012, equations A.3 and A.4, solved for ILP and MLP):

* dataflow limit: every task starts when its producers are complete, with unlimited units. Its length is the critical
  path; ILP = tasks / length with every latency 1, weighted ILP = sum of latencies / length in cycles;
* in-order issue: as GPUMech's interval profile (Huang et al., equation 4), one task a cycle at most, waiting for
  producers. The graph has no other resource. ILP in order = sum of latencies / its cycles,
  MLP = sum of load latencies / cycles with a load outstanding = mean number of loads in flight while there is one.

Loads are those of global and local memory: the ones that may go to DRAM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.spec.gpu import MEMORY_SPACES, Gpu, Isa
from ppt_gpu.tasklist.flat import FlatTaskList, producers


def measure_plain(
    path: NDArray[np.int32],
    dep_start: NDArray[np.int64],
    dep_task: NDArray[np.int32],
    latency: NDArray[np.int64],
    is_load: NDArray[np.bool_],
) -> Any:
    """Dataflow limit and in-order issue of one warp in one sweep, O(entries + dependencies).

    Returns (longest [E]: dependency depth in cycles at completion, its best producer [E] (-1: none),
    depth in tasks, last completion of in-order issue, load latency summed, cycles with a load outstanding).
    """
    entries, statics = len(path), len(latency)
    longest = np.zeros(entries, np.int64)
    best = np.full(entries, -1, np.int64)
    last = np.full(statics, -1, np.int64)  # most recent execution of each static task
    depth = np.zeros(statics, np.int64)
    done = np.zeros(statics, np.int64)  # in-order completion of that execution
    deepest = finish = issue = busy = load_sum = load_end = np.int64(0)
    for e in range(entries):
        task = path[e]
        begin, level, ready = np.int64(0), np.int64(0), issue
        for k in range(dep_start[task], dep_start[task + 1]):
            producer = dep_task[k]
            at = last[producer]
            if at < 0:
                continue
            if best[e] < 0 or longest[at] > begin:
                begin, best[e] = longest[at], at
            level = max(level, depth[producer])
            ready = max(ready, done[producer])
        longest[e] = begin + latency[task]
        last[task] = e
        depth[task] = level + 1
        deepest = max(deepest, level + 1)
        done[task] = ready + latency[task]
        finish = max(finish, done[task])
        issue = ready + 1
        if is_load[task]:
            load_sum += latency[task]
            busy += max(np.int64(0), done[task] - max(ready, load_end))
            load_end = max(load_end, done[task])
    return longest, best, deepest, finish, load_sum, busy


measure = entry(measure_plain, _nrt=True)


#: Dynamic tasks up to which the networkx view is built without being asked for more; it takes about 1 kB a task.
MAX_GRAPH = 1_000_000


@dataclass(frozen=True)
class Measures:
    """What the dependency graph of one warp says. Cycles are SM cycles."""

    tasks: int  # dynamic
    latency: int  # cycles, summed over the tasks
    critical_path: int  # cycles
    critical_tasks: int  # tasks on the longest chain, every latency 1
    critical: NDArray[np.int64]  # positions in `path` of a chain that takes `critical_path`, in order
    in_order: int  # cycles from the first issue to the last completion
    loads: int
    load_latency: int  # cycles, summed over the loads
    load_busy: int  # cycles with at least one load outstanding, in-order issue

    @property
    def ilp(self) -> float:
        """Tasks per step of the longest chain, every latency 1."""
        return self.tasks / self.critical_tasks

    @property
    def weighted_ilp(self) -> float:
        """Mean number of tasks in progress at the dataflow limit."""
        return self.latency / self.critical_path

    @property
    def in_order_ilp(self) -> float:
        """Mean number of tasks in progress under in-order issue (GPUPerf A.3 with one warp)."""
        return self.latency / self.in_order

    @property
    def mlp(self) -> float:
        """Mean number of loads in flight while there is one (GPUPerf A.4); 0 without loads."""
        return self.load_latency / self.load_busy if self.load_busy else 0.0


def memory_latencies(gpu: Gpu) -> dict[str, int]:
    """Unloaded load-to-use latency of each memory space, cycles; global and local as if every access went to DRAM."""
    dram = gpu.dram.latency
    return {
        "global": dram, "local": dram, "shared": gpu.shared.latency, "constant": gpu.memory.constant_latency
    }  # fmt: skip


def latencies(flat: FlatTaskList, isa: Isa, memory: Mapping[str, int]) -> NDArray[np.int64]:
    """[S] the latency of each static task, cycles; `isa` for computation, `memory` (by space) for loads and atomics.

    A store takes 1 cycle: nothing in the warp waits for its data to arrive. Raises PptError for an operation that
    `isa` does not list or a space that `memory` lacks.
    """
    found = np.ones(len(flat.tasks), np.int64)
    for i, task in enumerate(flat.tasks):
        try:
            if not flat.is_memory[i]:
                found[i] = isa.op(task.op).latency
            elif not task.op.startswith("store"):
                found[i] = memory[MEMORY_SPACES[flat.space[i]]]
        except KeyError:
            message = f"task {task.number}: no latency for '{task.op}' on {isa.name}"
            raise PptError(message, path=flat.tasklist.path or None, line=task.line or None) from None
    return found


def measures(flat: FlatTaskList, latency: NDArray[np.int64]) -> Measures:
    """The measures of one warp, in time linear in dynamic tasks and dependencies.

    `latency` [S]: cycles of each static task, at least 1; PptError otherwise.
    """
    if len(latency) != len(flat.tasks) or (latency < 1).any():
        raise PptError(f"expected {len(flat.tasks)} latencies of at least 1 cycle")
    is_load = _loads(flat)
    longest, best, deepest, finish, load_sum, busy = measure(
        flat.path, flat.dep_start, flat.dep_task, latency.astype(np.int64), is_load
    )
    at = int(longest.argmax())
    chain = [at]
    while best[at] >= 0:
        at = int(best[at])
        chain.append(at)
    return Measures(
        tasks=len(flat.path),
        latency=int(latency[flat.path].sum()),
        critical_path=int(longest.max()),
        critical_tasks=int(deepest),
        critical=np.array(chain[::-1], np.int64),
        in_order=int(finish),
        loads=int(is_load[flat.path].sum()),
        load_latency=int(load_sum),
        load_busy=int(busy),
    )


def dependency_graph(flat: FlatTaskList, latency: NDArray[np.int64] | None = None, limit: int = MAX_GRAPH) -> Any:
    """A networkx.DiGraph of the dynamic tasks: node = position in `path`, edge = producer to consumer.

    Node attributes: `number`, `op`; edge attribute `weight`, the latency of the producer (1 without `latency` [S]).
    Raises BudgetError above `limit` tasks.
    """
    if len(flat.path) > limit:
        message = f"the graph of '{flat.tasklist.name}' has {len(flat.path):,} nodes; the budget is {limit:,}"
        raise BudgetError(message, hint="shorten the loops, or raise the limit")
    import networkx

    graph = networkx.DiGraph(name=flat.tasklist.name)
    for e, task in enumerate(flat.path.tolist()):
        graph.add_node(e, number=flat.tasks[task].number, op=flat.tasks[task].op)
    start, found = producers(flat)
    weight = np.ones(len(flat.tasks), np.int64) if latency is None else latency
    consumer = np.repeat(np.arange(len(flat.path)), np.diff(start))
    weights = weight[flat.path[found]].tolist()
    graph.add_weighted_edges_from(zip(found.tolist(), consumer.tolist(), weights, strict=True))
    return graph


def _loads(flat: FlatTaskList) -> NDArray[np.bool_]:
    return np.array([name in ("load.global", "load.local") for name in flat.task_class], bool)
