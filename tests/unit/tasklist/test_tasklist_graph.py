"""Graph measures by hand-counted examples; the property tests hold them against networkx."""

from __future__ import annotations

import numpy as np
import pytest

from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.spec import load_gpu
from ppt_gpu.tasklist.flat import FlatTaskList, addresses, flatten
from ppt_gpu.tasklist.graph import dependency_graph, latencies, measures, memory_latencies
from ppt_gpu.tasklist.text import parse_tasklist


def flat_of(body: str, header: str = "") -> FlatTaskList:
    return flatten(parse_tasklist(f"tasklist 1\nblock 64\nregisters 8\n{header}{body}\nend\n", "x.tl"))


def test_a_chain_has_no_parallelism() -> None:
    found = measures(flat_of("repeat 10 {\n1 fp32 after 1\n}"), np.array([4]))
    assert (found.tasks, found.critical_path, found.critical_tasks, found.in_order) == (10, 40, 10, 40)
    assert found.ilp == found.weighted_ilp == found.in_order_ilp == 1.0
    assert found.mlp == 0.0
    assert found.critical.tolist() == list(range(10))


def test_independent_tasks() -> None:
    """Ten tasks of 4 cycles: all at once in the dataflow limit, one a cycle in order: 9 + 4 cycles."""
    found = measures(flat_of("repeat 10 {\n1 fp32\n}"), np.array([4]))
    assert (found.ilp, found.weighted_ilp, found.in_order) == (10.0, 10.0, 13)


def test_mlp_counts_loads_in_flight() -> None:
    """Two loads at 0 and 1 of 100 cycles each, outstanding from 0 to 101."""
    text = "1 load.global bytes 4 stride 4\n2 load.global bytes 4 stride 4\n3 fp32 after 1,2"
    found = measures(flat_of(text), np.array([100, 100, 4]))
    assert (found.loads, found.load_latency, found.load_busy) == (2, 200, 101)
    assert found.mlp == 200 / 101


def test_latencies_of_a_gpu() -> None:
    gpu = load_gpu("k40")
    text = "1 fp32.fma\n2 load.global bytes 4 stride 4\n3 load.shared bytes 4 stride 4\n4 store.global bytes 4 stride 4"
    found = latencies(flat_of(text), gpu.isa, memory_latencies(gpu))
    assert found.tolist() == [gpu.isa.op("fp32").latency, gpu.dram.latency, gpu.shared.latency, 1]
    with pytest.raises(PptError, match=r"x.tl:5: task 2: no latency for 'load.global'"):
        latencies(flat_of(text), gpu.isa, {"shared": 30})


def test_budget_and_bad_latencies() -> None:
    flat = flat_of("repeat 100 {\n1 fp32\n}")
    with pytest.raises(BudgetError, match="100 nodes; the budget is 99"):
        dependency_graph(flat, limit=99)
    for bad in (np.array([0]), np.array([1, 1])):
        with pytest.raises(PptError, match="expected 1 latencies"):
            measures(flat, bad)


def test_addresses_of_threads_that_continue() -> None:
    """Consecutive threads of consecutive blocks touch consecutive floats; the loop moves by its step."""
    flat = flat_of("repeat 3 {\n1 load.global bytes 4 stride 4 buffer a step 4096\n}", "buffer a 1 MiB\n")
    first = addresses(flat, 0, 0)
    for warp, block in ((1, 0), (0, 1), (1, 5)):
        thread = block * 64 + warp * 32
        assert (addresses(flat, warp, block) == first + 4 * thread).all()
    assert (first - first[0, 0] == np.array([0, 4096, 8192])[:, None] + 4 * np.arange(32)).all()


def test_rows() -> None:
    flat = flat_of("1 load.shared bytes 4 stride 4 width 16 row 256 active 20")
    assert addresses(flat, 0, 3)[0, :20].tolist() == [*range(0, 64, 4), 256, 260, 264, 268]
    assert addresses(flat, 1, 0)[0, 0] == 512  # the next warp continues with the next row
    assert flat.pattern_mask[0] == (1 << 20) - 1


def test_tasks_without_a_buffer_do_not_share_lines() -> None:
    flat = flat_of("1 load.global bytes 4 stride 4\n2 load.global bytes 4 stride 4", "buffer a 4 GiB\n")
    assert abs(int(np.diff(flat.access_base)[0])) > 2**36
