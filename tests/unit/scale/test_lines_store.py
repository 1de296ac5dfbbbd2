"""What launches leave in the L2, kept: taken again where nothing that it depends on changed; and its file."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from plain_document import plain
from timing_cases import K40, same

import ppt_gpu
from ppt_gpu.emulator.cache import trace_cache as kept
from ppt_gpu.emulator.cache.store import Store
from ppt_gpu.scale.l2_history import MAGIC, lines_name, read_lines, write_lines
from ppt_gpu.sm.l2_sharing.left_lines import LeftLines
from ppt_gpu.sm.lowering import global_memory as lower_global

pytestmark = pytest.mark.usefixtures("empty_cache")

SLOW_DRAM = replace(K40, dram=replace(K40.dram, latency=900))
LEFT = LeftLines(
    np.array([7, 3, 1 << 40], np.uint64) * np.uint64(128),
    np.array([15, 0, 2], np.uint8),
    np.array([True, False, False]),
    12288,
    9216,
    3,
)


@pytest.fixture
def made(monkeypatch):
    """One entry each time that lines are found out from accesses."""
    calls = []
    whole = lower_global.touched_lines
    monkeypatch.setattr(lower_global, "touched_lines", lambda *given: calls.append(1) or whole(*given))
    return calls


def test_another_gpu_with_the_same_l2_finds_the_lines(made):
    expected = plain(ppt_gpu.predict("reduction", SLOW_DRAM, cache=False))
    made.clear()
    ppt_gpu.predict("reduction", K40)
    assert made == [1]
    kept.forget()
    assert plain(ppt_gpu.predict("reduction", SLOW_DRAM)) == expected
    assert made == [1]


def test_another_l2_does_not(made):
    other = replace(K40, l2=replace(K40.l2, size=K40.l2.size // 2))
    expected = plain(ppt_gpu.predict("reduction", other, cache=False))
    ppt_gpu.predict("reduction", K40)
    made.clear()
    assert plain(ppt_gpu.predict("reduction", other)) == expected
    assert made == [1]


def test_damaged_lines_are_made_again(made):
    expected = plain(ppt_gpu.predict("reduction", SLOW_DRAM, cache=False))
    ppt_gpu.predict("reduction", K40)
    (path,) = (path for path, _, _ in Store().entries() if path.suffix == ".lines")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    made.clear()
    assert plain(ppt_gpu.predict("reduction", SLOW_DRAM)) == expected
    assert made == [1] and path.read_bytes() == whole


def test_what_changes_the_name():
    usual = (K40, LEFT, [0, 7])
    line = replace(K40, l2=replace(K40.l2, line=64))
    sector = replace(K40, l2=replace(K40.l2, sector=64))
    rule = replace(K40, memory=replace(K40.memory, transactions_per_cycle=0.5))
    for at, other in ((0, line), (0, sector), (0, rule), (1, None), (1, replace(LEFT, capacity=1)), (2, [0, 8])):
        assert lines_name(*usual[:at], other, *usual[at + 1 :]) != lines_name(*usual)
    assert lines_name(SLOW_DRAM, *usual[1:]) == lines_name(*usual)


def test_what_is_read_is_what_was_written():
    empty = LeftLines(np.zeros(0, np.uint64), np.zeros(0, np.uint8), np.zeros(0, np.bool_), 5)
    for lines in (LEFT, empty):
        assert same(read_lines(write_lines(lines, 128), "x"), lines)


def test_damaged_files_are_refused():
    data = write_lines(LEFT, 128)
    turned = [data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in range(0, len(data), 7)]
    for bad in (b"", data[:20], data + b"x", struct.pack("<8sII", MAGIC, 0, 0), *turned):
        with pytest.raises(ValueError, match=r"^file\.lines: "):
            read_lines(bad, "file.lines")
