from __future__ import annotations

from dataclasses import replace

import pytest

from ppt_gpu.common.errors import PptError
from ppt_gpu.scale.host import LaunchTime, application_time, copy_seconds
from ppt_gpu.spec.gpu import Host
from ppt_gpu.workload.workload import Copy

HOST = Host(launch_overhead=3e-6, block_launch=0, link_bandwidth=10e9, pageable_bandwidth=4e9, copy_latency=10e-6)


def test_copies() -> None:
    assert copy_seconds(Copy(10**6, "in"), HOST) == pytest.approx(110e-6)
    assert copy_seconds(Copy(10**6, "in", pinned=False), HOST) == pytest.approx(260e-6)


def test_one_launch_pays_its_overhead() -> None:
    found = application_time([LaunchTime("k", 50e-6)], [], HOST)
    assert found.total == pytest.approx(53e-6)
    assert found.overhead == pytest.approx(3e-6)


def test_overhead_hides_behind_long_kernels() -> None:
    found = application_time([LaunchTime("k", 50e-6, repeat=1000)], [], HOST)
    assert found.total == pytest.approx(3e-6 + 0.05)


def test_tiny_kernels_repeat_at_the_launch_rate() -> None:
    found = application_time([LaunchTime("k", 1e-6, repeat=1000)], [], HOST)
    assert found.total == pytest.approx(1000 * 3e-6 + 1e-6)


def test_closed_form_of_repeats_equals_single_launches() -> None:
    for times in ([2e-6, 9e-6, 1e-6], [1e-6, 1e-6, 20e-6], [4e-6, 0.5e-6, 0.5e-6]):
        grouped = application_time([LaunchTime("k", seconds, 7) for seconds in times], [], HOST)
        single = application_time([LaunchTime("k", seconds) for seconds in times for _ in range(7)], [], HOST)
        assert grouped.total == pytest.approx(single.total, rel=1e-12)
        assert grouped.kernels == pytest.approx(single.kernels, rel=1e-12)


def test_the_whole_sequence() -> None:
    copies = [Copy(10**6, "in", name="A"), Copy(2 * 10**6, "out", name="C")]
    found = application_time([LaunchTime("k", 40e-6, 2)], copies, HOST)
    assert [span.name for span in found.spans] == ["copy in A", "k", "copy out C"]
    assert found.total == pytest.approx(110e-6 + 3e-6 + 80e-6 + 210e-6)
    assert found.total == pytest.approx(found.kernels + found.copies + found.overhead)
    assert found.copy_times == (("copy in A", pytest.approx(110e-6)), ("copy out C", pytest.approx(210e-6)))
    assert all(one.end <= two.start + 1e-15 for one, two in zip(found.spans, found.spans[1:], strict=False))


@pytest.mark.parametrize(
    ("launches", "copies", "text"),
    [
        ([LaunchTime("k", 1e-6, 0)], [], "launch 'k'"),
        ([LaunchTime("k", -1e-6)], [], "launch 'k'"),
        ([], [Copy(5, "up", name="A")], "direction 'up'"),
        ([], [Copy(-5, "in", name="A")], "-5 B"),
    ],
)
def test_bad_sequences(launches: list, copies: list, text: str) -> None:
    with pytest.raises(PptError, match=text):
        application_time(launches, copies, HOST)


GAPS = replace(HOST, launch_gap=2e-6, graph_gap=0.5e-6)


def test_kernels_of_a_stream_leave_a_gap_between_them_however_long_they_are() -> None:
    found = application_time([LaunchTime("k", 50e-6, 1000)], [], GAPS)
    assert found.total == pytest.approx(3e-6 + 1000 * 50e-6 + 999 * 2e-6)
    assert found.overhead == pytest.approx(found.total - 0.05)


def test_kernels_that_are_shorter_than_the_overhead_less_the_gap_wait_for_the_host() -> None:
    for seconds, step in ((0.5e-6, 3e-6), (1.5e-6, 3.5e-6)):
        found = application_time([LaunchTime("k", seconds, 1000)], [], GAPS)
        assert found.total == pytest.approx(3e-6 + 999 * step + seconds)


def test_kernels_of_a_graph_are_enqueued_at_once() -> None:
    found = application_time([LaunchTime("a", 1e-6, 10), LaunchTime("b", 2e-6)], [], GAPS, graph=True)
    assert found.total == pytest.approx(3e-6 + 10 * 1.5e-6 + 2e-6)
    assert [span.name for span in found.spans] == ["a", "b"]


@pytest.mark.parametrize("graph", [False, True])
def test_repeats_with_gaps_equal_single_launches(graph: bool) -> None:
    for times in ([2e-6, 9e-6, 0.3e-6], [0.4e-6, 1e-6, 20e-6], [4e-6, 0.5e-6, 0.5e-6]):
        grouped = application_time([LaunchTime("k", seconds, 7) for seconds in times], [], GAPS, graph=graph)
        each = [LaunchTime("k", seconds) for seconds in times for _ in range(7)]
        assert grouped.total == pytest.approx(application_time(each, [], GAPS, graph=graph).total, rel=1e-12)
