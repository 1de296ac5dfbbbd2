"""What blocks do, in a trace file: written and read again, and refused when it cannot be true."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ppt_gpu
from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.cache.recorded import describe
from ppt_gpu.emulator.trace.block_features import BlockFeatures, join
from ppt_gpu.emulator.trace.trace_file import Record, read_traces, write_traces

PTX = Path(__file__).parents[2] / "data" / "scale" / "irregular.ptx"
FEATURES = BlockFeatures(*(np.array(values, np.int64) for values in ([4, 2], [60, 30], [1920, 900], [30, 30], [0, 7])))
RECORD = Record(0, "k", (5, 1, 1), 64, 30, "id", False, FEATURES)


def same(one: BlockFeatures, other: BlockFeatures) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in vars(one))


def test_round_trip() -> None:
    (found,) = read_traces(write_traces([RECORD]), "x.trace")
    assert isinstance(found.content, BlockFeatures) and same(found.content, FEATURES)
    assert "2 blocks of 64 threads, 90 warp instructions counted by block" in describe([found])[0]


@pytest.mark.parametrize(
    ("name", "values", "text"),
    [
        ("blocks", [4, 5], "outside of the grid"),
        ("longest", [61, 30], "longer than its block"),
        ("longest", [29, 30], "longer than its warps"),
        ("thread_instructions", [1921, 0], "more than 32 threads"),
        ("sectors", [-1, 0], "no block has"),
        ("sectors", [1], "do not match"),
    ],
)
def test_what_cannot_be_is_refused(name: str, values: list[int], text: str) -> None:
    wrong = replace(RECORD, content=replace(FEATURES, **{name: np.array(values, np.int64)}))
    with pytest.raises(PptError, match=text):
        read_traces(write_traces([wrong]), "x.trace")


def test_join_sorts_and_drops_what_is_twice() -> None:
    found = join((FEATURES, FEATURES.take(np.array([1]))))
    assert found.blocks.tolist() == [2, 4] and found.sectors.tolist() == [7, 0]


def test_a_trace_file_carries_the_survey(tmp_path) -> None:
    path = tmp_path / "x.trace"
    options = {"grid": "40", "block": "128", "args": ["f32[5120]", "i32=0"], "kernel": "triangular"}
    workload = ppt_gpu.open_workload(PTX, **options)
    first = ppt_gpu.predict(workload, "k40", cache=False, trace_out=path)
    again = ppt_gpu.predict(workload, "k40", trace_in=path)
    for tag in ("kernel.cycles", "blocks.surveyed", "blocks.variation"):
        assert first.launches[0].value(tag) == again.launches[0].value(tag)
    assert float(first.launches[0].value("blocks.variation")) > 0.4
