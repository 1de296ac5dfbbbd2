"""Which buffers kernels write and which steer them: sample kernels, and PTX written to be hard."""

from __future__ import annotations

from pathlib import Path

import pytest

from ppt_gpu.emulator.analysis.data_flow import Flow, data_flow
from ppt_gpu.ptx.parsing.parser import load_module, parse_module
from ppt_gpu.workload.reader import bind_workload, load_workload
from ppt_gpu.workload.workload import Argument, Launch

IRREGULAR = load_module(Path(__file__).parents[2] / "data" / "scale" / "irregular.ptx")
HEAD = ".version 7.0\n.target sm_70\n.address_size 64\n.global .align 4 .b32 table[64];\n"


def flow(kernel: str, *buffers: str) -> Flow:
    arguments = tuple(Argument("u64", buffer=name) if name else Argument("s32", 4) for name in buffers)
    return data_flow(IRREGULAR, Launch(kernel, (1, 1, 1), (32, 1, 1), arguments))


def own(body: str, *buffers: str) -> Flow:
    """Of a kernel with pointers p0, p1, ... and a body, whose %rd10, %rd11, ... hold them."""
    parameters = ", ".join(f".param .u64 p{number}" for number in range(len(buffers)))
    loads = "".join(f"ld.param.u64 %rd1{number}, [p{number}];\n" for number in range(len(buffers)))
    registers = ".reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<20>; .shared .align 4 .b8 tile[128];\n"
    module = parse_module(f"{HEAD}.visible .entry k({parameters})\n{{\n{registers}{loads}{body}\nret;\n}}\n")
    arguments = tuple(Argument("u64", buffer=name) for name in buffers)
    return data_flow(module, Launch("k", (1, 1, 1), (32, 1, 1), arguments))


def test_arithmetic_on_data_steers_nothing() -> None:
    assert flow("boundary", "in", "out", "") == Flow(frozenset({"in"}), frozenset({"out"}), frozenset())
    assert flow("triangular", "out", "") == Flow(frozenset(), frozenset({"out"}), frozenset())


def test_rows_and_columns_steer_a_sparse_product_but_its_vectors_do_not() -> None:
    found = flow("spmv", "first", "column", "value", "x", "y", "")
    assert found.steering == {"first", "column"} and found.writes == {"y"}
    assert found.reads == {"first", "column", "value", "x"}


def test_a_search_steers_itself() -> None:
    found = flow("bfs", "first", "neighbour", "depth", "", "")
    assert found.writes == {"depth"} and found.steering == {"first", "neighbour", "depth"}


@pytest.mark.parametrize("name", ["sgemm", "stencil7_shared", "reduction", "jacobi", "transpose_tiled"])
def test_regular_samples(name: str) -> None:
    workload = load_workload(name)
    module = load_module(workload.ptx_path)
    for launch in bind_workload(workload, module).launches:
        found = data_flow(module, launch)
        assert found.steering == frozenset() and found.writes and not found.writes & (found.reads or frozenset())


def test_data_that_pass_through_shared_memory_still_steer() -> None:
    body = "ld.global.u32 %r1, [%rd10];\nst.shared.u32 [tile], %r1;\nld.shared.u32 %r2, [tile+4];\n"
    assert own(body + "st.global.u32 [%rd11], %r2;", "a", "b").steering == frozenset()
    found = own(body + "setp.eq.u32 %p1, %r2, 0;\n@%p1 st.global.u32 [%rd11], %r2;", "a", "b")
    assert found.steering == {"a"} and found.writes == {"b"}


def test_an_address_from_memory_may_be_any_buffer() -> None:
    found = own("ld.global.u64 %rd1, [%rd10];\nst.global.u32 [%rd1], 1;", "a")
    assert found == Flow(frozenset({"a"}), None, frozenset({"a"}))
    index = own("ld.global.u64 %rd1, [%rd10];\nadd.s64 %rd2, %rd1, %rd11;\nst.global.u32 [%rd2], 1;", "a", "b")
    assert index == Flow(frozenset({"a"}), frozenset({"b"}), frozenset({"a"}))


def test_atomics_read_and_write_and_what_they_return_may_steer() -> None:
    body = "atom.global.add.u32 %r1, [%rd10], 1;\n"
    assert own(body, "a").steering == frozenset() and own(body, "a").writes == {"a"}
    assert own(body + "setp.eq.u32 %p1, %r1, 7;\n@%p1 st.global.u32 [%rd11], 1;", "a", "b").steering == {"a"}


def test_module_variables_are_buffers_too() -> None:
    body = "ld.global.u32 %r1, [table];\nmov.u64 %rd1, table;\nst.global.u32 [%rd1+4], %r1;"
    assert own(body) == Flow(frozenset({"table"}), frozenset({"table"}), frozenset())


def test_what_is_not_understood_is_unknown() -> None:
    body = "cp.async.ca.shared.global [tile], [%rd10], 4;"
    assert own(body, "a").writes is None
