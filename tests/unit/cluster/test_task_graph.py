"""Task graphs in JSON: what they mean, and what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from plain_machine import US, PlainMachine

from ppt_gpu.cluster.application import load_application
from ppt_gpu.cluster.engine.simulate import simulate
from ppt_gpu.common.errors import PptError

MACHINE = PlainMachine(nodes=2, gpus_per_node=1)


def written(folder: Path, nodes: Any, **more: Any) -> Path:
    path = folder / "graph.json"
    path.write_text(json.dumps({"schema": 1, "nodes": nodes} | more))
    return path


def ends(path: Path) -> list[int]:
    return [rank.end for rank in simulate(MACHINE, load_application(path).program).ranks]


def test_dependencies(tmp_path: Path) -> None:
    """Rank 0: two kernels, then a message; rank 1 computes when it is there; then all combine."""
    nodes = [
        {"id": 1, "type": "kernel", "rank": 0, "time": "10 us"},
        {"id": 2, "type": "kernel", "rank": 0, "time": "5 us", "after": [1]},
        {"id": 3, "type": "send", "rank": 0, "to": 1, "bytes": "1 kB", "after": [2]},
        {"id": 4, "type": "receive", "rank": 1, "from": 0, "bytes": 1000},
        {"id": 5, "type": "kernel", "rank": 1, "time": "7 us", "after": [4]},
        {"id": 6, "type": "copy", "from": "gpu", "to": "host", "bytes": 100, "after": [2, 5]},
        {"id": 7, "type": "collective", "kind": "all_reduce", "bytes": 8, "after": [6]},
    ]
    arrives = 15 * US + 2 * US + 1000 * 100 + US // 2
    last = arrives + 7 * US + 100 * 50
    collective = MACHINE.collective("all_reduce", 8, 2, 1, "nccl").duration
    assert ends(written(tmp_path, nodes, description="a chain")) == [last + collective] * 2
    assert load_application(tmp_path / "graph.json").description == "a chain"


def test_a_stream_keeps_its_order(tmp_path: Path) -> None:
    kernels = [{"id": k, "type": "kernel", "time": "2 us", "stream": 1, "rank": 0} for k in range(3)]
    assert ends(written(tmp_path, kernels)) == [6 * US, 0]


@pytest.mark.parametrize(
    ("nodes", "texts"),
    [
        ([], ["nodes: expected a list of at least one node"]),
        ([5], ["nodes[0]: expected an object"]),
        ([{"id": 1, "type": "kernle"}], ["nodes[0]: unknown type 'kernle'", "did you mean 'kernel'?"]),
        ([{"id": 1, "type": "kernel"}], ["a kernel needs either 'kernel' or 'time'"]),
        ([{"id": -1, "type": "kernel", "time": "1 s"}], ["id: expected a whole number of 0 or more"]),
        ([{"id": 1, "type": "kernel", "time": "1 MB"}], ["time: ", "measures bytes, not time"]),
        ([{"id": 1, "type": "kernel", "time": 5}], ["time: expected a text with a unit"]),
        ([{"id": 1, "type": "kernel", "time": "1 s", "after": [1]}], ["after: no node before this has id 1"]),
        ([{"id": 1, "type": "send", "to": 1}], ["a send needs 'bytes'"]),
        ([{"id": 1, "type": "copy", "from": "gpu", "to": "disk", "bytes": 8}], ["to: unknown 'disk'"]),
        ([{"id": 1, "type": "send", "to": 1, "bytes": 8, "tga": 1}], ["unknown key 'tga'", "did you mean 'tag'?"]),
        ([{"id": 1, "type": "collective", "kind": "gather", "bytes": 8}], ["kind: unknown 'gather'"]),
        ([{"id": 1, "type": "collective", "kind": "barrier", "bytes": 8, "ranks": [1, 1]}], ["a rank twice"]),
        ([{"id": 1, "type": "kernel", "time": "1 s"}, {"id": 1, "type": "kernel", "time": "1 s"}], ["id 1 is taken"]),
    ],
)
def test_wrong_nodes(tmp_path: Path, nodes: Any, texts: list[str]) -> None:
    with pytest.raises(PptError) as found:
        load_application(written(tmp_path, nodes))
    for text in ["graph.json", *texts]:
        assert text in str(found.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "expected an object"),
        ('{"schema": 2, "nodes": [{"id": 0, "type": "kernel", "time": "1 s"}]}', "schema: expected 1"),
        ('{"schema": 1,\n "nodes": [}', "graph.json:2:12: Expecting value"),
        ('{"schema": 1, "schema": 1}', "key 'schema' twice"),
        ('{"schema": 1, "nodse": []}', "unknown key 'nodse'"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "graph.json").write_text(text)
    with pytest.raises(PptError) as found:
        load_application(tmp_path / "graph.json")
    assert message in str(found.value)


def test_every_error_at_once(tmp_path: Path) -> None:
    nodes = [{"id": 1, "type": "send", "to": 1}, {"id": 2, "type": "kernel"}]
    with pytest.raises(PptError) as found:
        load_application(written(tmp_path, nodes, extra=1))
    assert len(str(found.value).splitlines()) >= 3
