"""The progress of a run: by iterations where programs say how many, by tasks of a graph, else by events and time."""

import json

import pytest

import ppt_gpu.common.progress as progress
from ppt_gpu.cli import main
from ppt_gpu.cluster.engine.simulate import simulate
from ppt_gpu.cluster.load import load_machine
from ppt_gpu.cluster.task_graph import read_task_graph
from ppt_gpu.common.progress import line

MACHINE = load_machine("dgx_h100", 2)


def seen_in(program, at):
    """What is shown of a run when rank 0 has done `at` steps."""
    lines = []

    def watched(rank):
        for step, _ in enumerate(program(rank)):
            if rank.number == 0 and step in (at // 2, at):
                lines.append(line("cluster", 5, 0, 120))
                lines.append(line("cluster", 5, progress._open[-1].began + 30, 120))
            yield _

    simulate(MACHINE, watched, collapse=False)
    return lines[-1]


def app(of):
    def program(rank):
        for _ in range(10):
            yield rank.compute(1e-3)
            yield rank.barrier()
            rank.mark(of)

    return program


def test_iterations_where_the_program_says_how_many() -> None:
    text = seen_in(app(10), 8)
    # The others come after rank 0, which is at its fourth; the time is that since the first look, at the first one.
    assert text == "cluster 0:05 | 3 of 10 iterations, 1:44 left"


def test_events_and_time_where_it_does_not() -> None:
    text = seen_in(app(None), 8)
    assert text.startswith("cluster 0:05 | ") and text.endswith(" ms simulated") and " events, " in text


def test_it_begins_without_a_time() -> None:
    assert "left" not in seen_in(app(10), 0)


def test_tasks_of_a_graph(tmp_path) -> None:
    nodes = [{"id": n, "type": "kernel", "time": "1 ms", "after": [n - 1] if n else []} for n in range(5)]
    path = tmp_path / "graph.json"
    path.write_text(json.dumps({"schema": 1, "nodes": nodes}))
    graph = read_task_graph(path)
    told = []

    def watched(rank):
        body = graph.program(rank)
        yield next(body)
        told.append(rank.told)

    simulate(MACHINE, watched, collapse=False)
    assert {(one.what, one.total, one.finished()) for one in told} == {("tasks", 5, 5)}


def test_saying_how_many_changes_nothing(capsys) -> None:
    def digest(of):
        program = app(of)
        return simulate(MACHINE, program).time

    assert digest(10) == digest(None)


@pytest.mark.parametrize("of", ["0", "-3", "2.5", "'ten'"])
def test_what_is_no_number_of_iterations(of, tmp_path, capsys) -> None:
    path = tmp_path / "app.py"
    path.write_text(f"def app(rank):\n    yield rank.compute(1e-3)\n    rank.mark(of={of})\n")
    assert main(["cluster", str(path), "--machine", "dgx_h100"]) == 2
    error = capsys.readouterr().err
    assert f"app.py:3: rank 0: mark(of={of}): expected how many marks the rank makes" in error
