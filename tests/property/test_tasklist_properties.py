"""Random task lists: the text format loses nothing; loops expand as they would by hand; graph measures agree."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from some_examples import examples

from ppt_gpu.spec.gpu import COMPUTE_CLASSES, MEMORY_CLASSES
from ppt_gpu.tasklist.flat import addresses, flatten, producers
from ppt_gpu.tasklist.graph import dependency_graph, measures
from ppt_gpu.tasklist.model import (
    Buffer,
    Comment,
    Item,
    Loop,
    MemoryShape,
    Stride,
    Task,
    TaskList,
    Transactions,
    class_of,
    walk,
)
from ppt_gpu.tasklist.text import parse_tasklist, write_tasklist

COMMENTS = st.text(st.characters(blacklist_characters="\n\0", blacklist_categories=["Cs"]), max_size=12).map(str.strip)
NAMES = st.text(st.sampled_from("abcXYZ019_$.@'-<>/"), min_size=1, max_size=8)
DISTANCE = st.integers(-(2**40), 2**40)
BUFFERS = ("x", "y.1", "_Zbuf")


@st.composite
def memory_shapes(draw: st.DrawFn, space: str, depth: int) -> MemoryShape:
    size = draw(st.sampled_from((1, 2, 4, 8, 16, 32)))
    if draw(st.booleans()):
        count = draw(st.integers(1, 64))
        if space == "shared":
            return MemoryShape(size, Transactions(count))
        if draw(st.booleans()):
            return MemoryShape(size, Transactions(count, reuse=draw(st.integers(0, 10**9))))
        rates = st.floats(0, 1)
        return MemoryShape(size, Transactions(count, draw(rates), draw(rates)))
    width = draw(st.sampled_from((2, 4, 8, 16, 32)))
    return MemoryShape(
        size,
        Stride(
            draw(DISTANCE),
            draw(st.sampled_from(("", *BUFFERS))) if space == "global" else "",
            draw(DISTANCE),
            tuple(draw(st.lists(DISTANCE, max_size=depth))),
            draw(st.none() | DISTANCE),
            draw(st.none() | DISTANCE | st.tuples(DISTANCE, DISTANCE) | st.tuples(DISTANCE, DISTANCE, DISTANCE)),
            width,
            draw(DISTANCE) if width < 32 else 0,
        ),
    )


@st.composite
def bodies(draw: st.DrawFn, fresh: list[int], depth: int = 0) -> tuple[Item, ...]:
    found: list[Item] = []
    for _ in range(draw(st.sampled_from((5, 3, 8, 2, 1)))):
        kind = draw(st.sampled_from((1, 5, 0, 5, 2) if depth < 3 else (1, 0, 2)))
        if kind == 0:
            found.append(Comment(draw(COMMENTS)))
        elif kind == 5:
            found.append(Loop(draw(st.sampled_from((3, 2, 4, 1))), draw(bodies(fresh, depth + 1)), draw(COMMENTS)))
        else:
            name = draw(st.sampled_from(COMPUTE_CLASSES + MEMORY_CLASSES))
            memory = draw(memory_shapes(name.split(".")[1], depth)) if name in MEMORY_CLASSES else None
            op = name + draw(st.sampled_from(("", ".v4", ".fma")))
            active = draw(st.integers(1, 32))
            found.append(Task(fresh.pop(), op, (), memory, active, draw(COMMENTS)))
    if all(isinstance(item, Comment) for item in found):
        found.append(Task(fresh.pop(), "fp32"))
    return tuple(found)


@st.composite
def tasklists(draw: st.DrawFn) -> TaskList:
    body = draw(bodies(list(range(2000, -1, -1))))
    placed = list(walk(body))
    order = {task.number: i for i, (task, _) in enumerate(placed)}

    def allowed(task: Task, loops: tuple[Loop, ...]) -> list[int]:
        return [
            other.number
            for other, around in placed
            if order[other.number] < order[task.number] or (loops and around and loops[0] is around[0])
        ]

    chosen = {}
    for task, loops in placed:
        names = allowed(task, loops)
        chosen[task.number] = (
            tuple(draw(st.lists(st.sampled_from(names), min_size=min(2, len(names)), max_size=3, unique=True)))
            if names
            else ()
        )

    def rebuild(items: tuple[Item, ...]) -> tuple[Item, ...]:
        found: list[Item] = []
        for item in items:
            if isinstance(item, Loop):
                item = Loop(item.count, rebuild(item.body), item.comment)
            elif isinstance(item, Task):
                item = Task(item.number, item.op, chosen[item.number], item.memory, item.active, item.comment)
            found.append(item)
        return tuple(found)

    return TaskList(
        draw(NAMES),
        draw(st.integers(1, 255)),
        draw(st.integers(0, 10**6)),
        draw(st.integers(1, 1024)),
        rebuild(body),
        draw(st.just(()) | st.tuples(*[st.integers(1, 10**4)] * 3)),
        tuple(Buffer(name, draw(st.integers(1, 2**33)), draw(st.booleans())) for name in BUFFERS),
        tuple(draw(st.lists(COMMENTS, max_size=3))),
    )


@examples(40, 400, tasklists())
def test_reading_what_was_written_gives_the_same_list(tasklist: TaskList) -> None:
    text = write_tasklist(tasklist)
    again = parse_tasklist(text, "x.tl")
    assert again == tasklist
    assert write_tasklist(again) == text


def expanded(items: tuple[Item, ...], counters: tuple[int, ...] = ()) -> list[tuple[Task, tuple[int, ...]]]:
    """The plain expansion: each dynamic task with its loop counters, innermost first."""
    found: list[tuple[Task, tuple[int, ...]]] = []
    for item in items:
        if isinstance(item, Task):
            found.append((item, counters))
        elif isinstance(item, Loop):
            for i in range(item.count):
                found += expanded(item.body, (i, *counters))
    return found


BLOCKS = st.tuples(*[st.integers(0, 9)] * 3)
EXTENTS = st.tuples(*[st.integers(10, 12)] * 2)


@examples(40, 400, tasklists(), st.integers(0, 31), BLOCKS, EXTENTS)
def test_flatten_agrees_with_plain_expansion(
    tasklist: TaskList, warp: int, at: tuple[int, int, int], extents: tuple[int, int]
) -> None:
    block = at[0] + extents[0] * (at[1] + extents[1] * at[2])
    flat = flatten(tasklist)
    plain = expanded(tasklist.body)
    assert [flat.tasks[i].number for i in flat.path] == [task.number for task, _ in plain]
    memory = [(task, counters) for task, counters in plain if task.memory]
    assert [flat.tasks[i].number for i in flat.access_task] == [task.number for task, _ in memory]
    found = addresses(flat, warp, block, (*extents, 10))
    zero = addresses(flat, 0, 0)
    origin = {int(t): int(zero[k, 0]) for k, t in reversed(list(enumerate(flat.access_task)))}
    for k, (task, counters) in enumerate(memory):
        pattern = task.memory.pattern if task.memory else None
        if not isinstance(pattern, Stride):
            continue
        rows = 32 // pattern.width * pattern.row if pattern.width < 32 else 32 * pattern.lane
        wide = tasklist.block_size * pattern.lane
        wide = tasklist.block_size // pattern.width * pattern.row if pattern.width < 32 else wide
        wide = 0 if class_of(task.op).endswith(".shared") else wide
        base = origin[int(flat.access_task[k])] + sum(s * i for s, i in zip(pattern.steps, counters, strict=False))
        base += warp * (rows if pattern.warp is None else pattern.warp)
        if isinstance(pattern.block, tuple):
            base += sum(step * own for step, own in zip(pattern.block, at, strict=False))
        else:
            base += block * (wide if pattern.block is None else pattern.block)
        for lane in range(task.active):
            assert found[k, lane] == base + lane % pattern.width * pattern.lane + lane // pattern.width * pattern.row


@examples(40, 400, tasklists())
def test_producers_are_the_most_recent_executions(tasklist: TaskList) -> None:
    flat = flatten(tasklist)
    start, found = producers(flat)
    last: dict[int, int] = {}
    for e, i in enumerate(flat.path.tolist()):
        task = flat.tasks[i]
        assert found[start[e] : start[e + 1]].tolist() == [last[d] for d in task.deps if d in last]
        last[task.number] = e


@examples(40, 400, tasklists(), st.integers(0, 2**32 - 1))
def test_measures_agree_with_networkx_and_a_plain_schedule(tasklist: TaskList, seed: int) -> None:
    import networkx

    from ppt_gpu.tasklist.graph import measure, measure_plain

    flat = flatten(tasklist)
    latency = np.random.default_rng(seed).integers(1, 500, len(flat.tasks))
    found = measures(flat, latency)
    graph = dependency_graph(flat, latency)
    assert networkx.is_directed_acyclic_graph(graph)
    for node in list(graph):  # a sink behind each task, so that the last task's latency counts
        graph.add_edge(node, "end", weight=int(latency[flat.path[node]]))
    assert networkx.dag_longest_path_length(graph) == found.critical_path
    assert networkx.dag_longest_path_length(dependency_graph(flat)) + 1 == found.critical_tasks
    assert int(latency[flat.path[found.critical]].sum()) == found.critical_path
    assert all(graph.has_edge(a, b) for a, b in zip(found.critical, found.critical[1:], strict=False))
    loads = np.array([name in ("load.global", "load.local") for name in flat.task_class], bool)
    arguments = (flat.path, flat.dep_start, flat.dep_task, latency.astype(np.int64), loads)
    compiled, plain = measure(*arguments), measure_plain(*arguments)
    assert all(np.array_equal(a, b) for a, b in zip(compiled, plain, strict=True))
    _check_in_order(flat, latency, loads, found)


def _check_in_order(flat, latency, loads, found) -> None:  # type: ignore[no-untyped-def]
    """Cycle by cycle: one task a cycle, once its producers are complete; loads in flight are counted."""
    start, producer = producers(flat)
    done: list[int] = []
    spans = []
    cycle = 0
    for e, task in enumerate(flat.path.tolist()):
        while any(done[p] > cycle for p in producer[start[e] : start[e + 1]]):
            cycle += 1
        done.append(cycle + int(latency[task]))
        if loads[task]:
            spans.append((cycle, done[-1]))
        cycle += 1
    assert max(done) == found.in_order
    flight = np.zeros(max(done) + 1, int)
    for begin, end in spans:
        flight[begin:end] += 1
    assert found.loads == len(spans)
    assert found.mlp == (flight[flight > 0].mean() if spans else 0)
