"""Applications that are wrong: each ends with one error that names ranks, file and line."""

from __future__ import annotations

from typing import Any

import pytest
from plain_machine import PlainMachine

from ppt_gpu.cluster.engine.simulate import simulate
from ppt_gpu.common.errors import PptError

MACHINE = PlainMachine(nodes=3, gpus_per_node=2)


def error_of(app: Any, partitions: int = 1, **how: Any) -> str:
    with pytest.raises(PptError) as found:
        simulate(MACHINE, app, partitions=partitions, **how)
    return str(found.value)


def crossed(rank: Any) -> Any:
    yield rank.irecv(rank.index ^ 1, 100)
    yield rank.isend(rank.index ^ 1, 100)


def around(rank: Any) -> Any:
    """Large messages to the next: each waits for its receive, which is behind it."""
    yield rank.isend((rank.index + 1) % rank.size, 1 << 20)
    yield rank.irecv((rank.index - 1) % rank.size, 1 << 20)


def ends_early(rank: Any) -> Any:
    if rank.index == 4:
        return
    if rank.index == 1:
        yield rank.irecv(4, 8, 3)


def one_is_missing(rank: Any) -> Any:
    if rank.index != 3:
        yield rank.all_reduce(8)
    else:
        yield rank.irecv(0, 8)


def wrong_tag(rank: Any) -> Any:
    if rank.index == 0:
        yield rank.isend(5, 8, 1)
    if rank.index == 5:
        yield rank.irecv(0, 8, 2)


def unreceived(rank: Any) -> Any:
    yield rank.isend(0, 64, 7) if rank.index == 2 else None


def unsent(rank: Any) -> Any:
    if rank.index == 2:
        rank.irecv(1, 64)
    yield None


def too_long(rank: Any) -> Any:
    yield rank.isend(5, 800) if rank.index == 0 else None
    yield rank.irecv(0, 400) if rank.index == 5 else None


def other_collective(rank: Any) -> Any:
    yield rank.all_reduce(8) if rank.index else rank.all_gather(8)


def strange_yield(rank: Any) -> Any:
    yield 5


def no_such_rank(rank: Any) -> Any:
    yield rank.isend(6, 8)


def raises(rank: Any) -> Any:
    yield rank.launch(1e-6)
    if rank.index == 4:
        raise ValueError("out of memory")


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize(
    ("app", "texts"),
    [
        (
            crossed,
            ["deadlock: 6 of 6", "rank 0 waits for a message from rank 1 (tag 0, 100 bytes)", "rank 1 waits"],
        ),
        (
            around,
            ["deadlock: 6 of 6", "rank 0 waits for rank 1 to receive its message (tag 0)", "rank 5 waits"],
        ),
        (ends_early, ["deadlock: 1 of 6", "rank 1 waits for a message from rank 4 (tag 3", "rank 4 has ended"]),
        (
            one_is_missing,
            ["rank 0 waits for all_reduce, collective number 1 of all 6 ranks", "rank 3 waits"],
        ),
        (
            wrong_tag,
            ["rank 5 waits for a message from rank 0 (tag 2", "rank 0 sent 8 bytes to rank 5 (tag 1)"],
        ),
        (unreceived, ["do not match", "rank 2 sent 64 bytes to rank 0 (tag 7), never received"]),
        (unsent, ["do not match", "rank 2 receives from rank 1 (tag 0), which sent no such message"]),
        (too_long, ["rank 5 receives up to 400 bytes from rank 0 (tag 0), but the message has 800"]),
        (other_collective, ["all_reduce of 8 bytes (nccl)", "all_gather of 8 bytes (nccl)"]),
        (strange_yield, ["test_faults.py", "yields a int"]),
        (no_such_rank, ["test_faults.py", "no rank 6", "ranks 0 to 5"]),
        (raises, ["test_faults.py", "rank 4: ValueError: out of memory"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_one_clear_error(app: Any, texts: list[str], partitions: int) -> None:
    found = error_of(app, partitions)
    for text in texts:
        assert text in found


def test_lines_are_those_of_the_application() -> None:
    line = no_such_rank.__code__.co_firstlineno + 1
    assert f"test_faults.py:{line}: rank 0:" in error_of(no_such_rank)


def test_not_a_generator() -> None:
    assert "no generator function" in error_of(lambda rank: None)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda rank: rank.launch(-1.0), "a kernel of -1.0 s"),
        (lambda rank: rank.compute(-1.0), "a time of -1 s"),
        (lambda rank: rank.copy("gpu", "disk", 8), "unknown memory 'disk'"),
        (lambda rank: rank.isend(0, -8), "a size of -8 bytes"),
        (lambda rank: rank.isend(0, 8.5), "a size of 8.5 bytes"),
        (lambda rank: rank.isend(0, 8, -1), "tag -1"),
        (lambda rank: rank.collective("all_reduse", 8), "did you mean 'all_reduce'?"),
        (lambda rank: rank.all_reduce(8, algorithm="rings"), "there is no algorithm 'rings'"),
        (lambda rank: rank.all_reduce(8, group=[4, 5]), "a group that it is not in"),
        (lambda rank: rank.grid(0), "a grid of 0 axes"),
        (lambda rank: rank.grid(2).neighbour(2, 1), "axis 2 of a grid with 2"),
        (lambda rank: rank.grid(1).at(6), "position (6,)"),
    ],
)
def test_bad_calls(call: Any, text: str) -> None:
    def app(rank: Any) -> Any:
        yield call(rank)

    assert text in error_of(app)


def test_more_processes_than_nodes() -> None:
    assert "4 processes for 3 nodes" in error_of(unreceived, 4)


def test_no_lookahead() -> None:
    with pytest.raises(PptError, match="takes no time"):
        simulate(PlainMachine(latency=0), unreceived)
