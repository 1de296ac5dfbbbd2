"""Records of named words: the same memory in NumPy and in compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, entry
from ppt_gpu.common.compiled_cache import digest_of
from ppt_gpu.common.records import Layout, Record, Table, Words, addresses, known, viewer


class Point(Record):
    x: int
    y: int
    z: int


class Wide(Record):
    a: int
    b: int
    c: int
    d: int
    e: int
    f: int
    g: int
    h: int
    i: int


class Shapes(Record):
    points: Table[Point]
    weights: NDArray[np.int32]
    totals: Words
    count: int
    scale: int


class Turned(Record):
    """As Shapes, with two fields in another order."""

    points: Table[Point]
    weights: NDArray[np.int32]
    totals: Words
    scale: int
    count: int


shapes_at, turned_at = viewer(Shapes), viewer(Turned)


@called
def grown(shapes: Shapes, number: int) -> int:
    point = shapes.points[number]
    point.z += shapes.scale * shapes.weights[number]
    return point.x + point.y + point.z


@entry
def add_up(words: Words) -> None:
    shapes = shapes_at(words)
    for number in range(shapes.count):
        shapes.totals[number] = grown(shapes, number)


@entry
def add_up_turned(words: Words) -> None:
    shapes = turned_at(words)
    for number in range(shapes.count):
        shapes.totals[number] = grown(shapes, number)


@entry
def of_row(rows: Words, row: int) -> int:
    shapes = known(shapes_at(rows[row]), "scale", 100)
    return shapes.points[1].y * shapes.scale + shapes.totals[0]


def tables() -> dict[str, Any]:
    points = np.zeros(3, Point.dtype)
    points["x"], points["y"] = (1, 2, 3), (10, 20, 30)
    return {"points": points, "weights": np.array([5, 6, 7], np.int32), "totals": np.zeros(3, np.int64),
            "count": 3, "scale": 2}  # fmt: skip


def test_compiled_code_reads_and_writes_what_numpy_sees() -> None:
    values = tables()
    add_up(addresses(Shapes, values))
    assert values["points"]["z"].tolist() == [10, 12, 14]
    assert values["totals"].tolist() == [21, 34, 47]


def test_fields_stand_where_their_record_says() -> None:
    values = tables()
    add_up_turned(addresses(Turned, values))
    assert values["totals"].tolist() == [21, 34, 47]


def test_a_table_of_each_row() -> None:
    layout = Layout({"points": Point, "totals": None}, {"points": 2, "totals": 3})
    core = np.arange(2 * layout.words).reshape(2, -1)
    parts = layout.tables(core)
    assert parts["points"].shape == (2, 2) and parts["totals"].shape == (2, 3)
    rows = addresses(Shapes, tables() | parts)
    for row in range(2):
        expected = int(parts["points"]["y"][row, 1]) * 100 + int(parts["totals"][row, 0])
        assert of_row(rows, row) == expected


@pytest.mark.parametrize(("kind", "words"), [(Point, 4), (Wide, 16)])
def test_records_are_powers_of_two_or_lines(kind: type[Record], words: int) -> None:
    assert kind.dtype.itemsize == 8 * words
    assert list(kind.dtype.names or ()) == list(kind.__annotations__)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("weights", np.zeros(3, np.int64)),
        ("totals", np.zeros((3, 2), np.int64)[:, 0]),
        ("points", np.zeros(3, Wide.dtype)),
    ],
)
def test_an_array_of_another_kind(name: str, value: NDArray[Any]) -> None:
    with pytest.raises(TypeError, match=f"Shapes.{name} is no array of"):
        addresses(Shapes, tables() | {name: value})


def test_other_fields() -> None:
    with pytest.raises(TypeError, match=r"Shapes has other fields: \['more'\]"):
        addresses(Shapes, tables() | {"more": int64(1)})


def test_kept_code_depends_on_where_fields_stand() -> None:
    digests = {digest_of(loop.made().py_func, loop.made().targetoptions) for loop in (add_up, add_up_turned)}
    assert len(digests) == 2
