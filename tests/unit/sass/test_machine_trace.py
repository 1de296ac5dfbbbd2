"""Kernel traces of machine code: what is read is what was written, in every form of the format."""

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traceg_writer import Line, trace

from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.ptx.instructions import access_bytes, is_barrier, operation
from ppt_gpu.sass.accesses import GLOBAL, LOCAL, SHARED
from ppt_gpu.sass.trace_body import MachineTrace, read_machine_trace
from ppt_gpu.workload.workload import Range

HEAP = 0x7F1000000000
FULL = 0xFFFFFFFF


def written(folder: Path, text: str, name: str = "k.traceg") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def lanes(trace_: Trace, access: int) -> dict[int, int]:
    """Lane -> address of one access."""
    pattern = trace_.access_pattern[access]
    mask, base = int(trace_.pattern_mask[pattern]), int(trace_.access_base[access])
    return {lane: base + int(trace_.pattern_offset[pattern, lane]) for lane in range(32) if mask >> lane & 1}


def read(folder: Path, *lines: Line, version: int = 5, form: int | None = None, **values: object) -> MachineTrace:
    return read_machine_trace(written(folder, trace({(0, 0, 0): [lines]}, version, form, **values)))


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("form", [0, 1, 2])
def test_every_version_and_form_gives_the_same_addresses(tmp_path: Path, version: int, form: int) -> None:
    addresses = tuple(HEAP + 8 * lane for lane in range(16))
    found = read(
        tmp_path,
        Line(0x10, "LDG.E.64.SYS", (2,), (4,), 0xFFFF, addresses, 8),
        Line(0x20, "FADD", (3,), (2, 3)),
        Line(0x30, "EXIT"),
        version=version,
        form=form,
    )
    load, add, leave = found.kernel.instructions
    assert lanes(found.trace, 0) == dict(enumerate(addresses))
    assert (access_bytes(load), found.trace.access_space.tolist()) == (8, [GLOBAL])
    assert (load.writes, load.reads) == ((2, 3), (4, 5))  # 64-bit data and address
    assert (add.reads, add.writes) == ((2, 3), (3,))
    assert [operation(each) for each in (load, add, leave)] == ["load.global", "fp32.add", "branch.ret"]
    assert found.trace.pc_threads.tolist() == [16, 32, 32]
    assert found.module.lines[0] == "0010 LDG.E.64.SYS R2, R4"


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    mask=st.integers(1, FULL),
    form=st.sampled_from([0, 2, None]),
    version=st.sampled_from([1, 3, 5]),
)
def test_any_addresses_come_back(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, mask: int, form: int | None, version: int
) -> None:
    count = mask.bit_count()
    addresses = tuple(
        HEAP + 4 * number for number in data.draw(st.lists(st.integers(0, 1 << 30), min_size=count, max_size=count))
    )
    line = Line(0, "STG.E", (), (2, 4), mask, addresses)
    found = read(tmp_path_factory.mktemp("t"), line, version=version, form=form)
    active = [lane for lane in range(32) if mask >> lane & 1]
    assert lanes(found.trace, 0) == dict(zip(active, addresses, strict=True))


def test_blocks_and_warps_come_in_order_wherever_they_stand(tmp_path: Path) -> None:
    """Blocks 1 and 0, warp 1 of block 0 shorter: equal streams share a path, and counts are those by hand."""
    long = [Line(0, "MOV", (1,), (2,)), Line(16, "LDG.E", (2,), (4,), FULL, tuple(range(HEAP, HEAP + 128, 4)))]
    blocks = {(1, 0, 0): [long, long], (0, 0, 0): [long, long[:1]]}
    found = read_machine_trace(written(tmp_path, trace(blocks, grid=(2, 1, 1), block=(64, 1, 1)))).trace
    assert found.blocks.tolist() == [0, 1]
    assert found.warp_path.tolist() == [0, 1, 0, 0]
    assert np.diff(found.access_start).tolist() == [1, 0, 1, 1]
    assert found.warp_threads.tolist() == [64, 32, 64, 64]
    assert found.block_threads is not None
    assert found.block_threads.tolist() == [[64, 32], [64, 64]]
    assert found.pc_executed.tolist() == [4, 3]


def test_generic_addresses_go_to_the_space_of_their_window(tmp_path: Path) -> None:
    shared, local = 0x7F2000000000, 0x7F2002000000
    found = read(
        tmp_path,
        Line(0, "LD.E.SYS", (2,), (4,), 3, (shared + 64, shared + 68)),
        Line(16, "LD.E.SYS", (2,), (4,), 3, (HEAP, HEAP + 4)),
        Line(32, "LD.E.SYS", (2,), (4,), 3, (HEAP, shared)),
        Line(48, "LDS.U.128", (8,), (4,), 3, (16, 32), 16),
        Line(64, "ST.E.SYS", (), (4, 2), 3, (local + 8, local + 8)),
    ).trace
    assert found.access_space.tolist() == [SHARED, GLOBAL, GLOBAL, SHARED, LOCAL]
    assert lanes(found, 0) == {0: 64, 1: 68}
    assert lanes(found, 2) == {0: HEAP}  # the lane in shared memory is not of this access
    assert lanes(found, 3) == {0: 16, 1: 32}


def test_local_memory_is_interleaved_lane_by_lane_and_apart_for_each_warp(tmp_path: Path) -> None:
    """Two words of every lane's frame: lanes lie side by side, the next word 128 bytes on, warps nowhere together."""
    warp = [
        Line(0, "STL", (), (1, 2), FULL, (0xFFFC80,) * 32),
        Line(16, "LDL", (3,), (1,), FULL, (0xFFFC84,) * 32),
    ]
    text = trace({(0, 0, 0): [warp, warp]}, block=(64, 1, 1))
    found = read_machine_trace(written(tmp_path, text)).trace
    first, second = lanes(found, 0), lanes(found, 1)
    assert found.access_space.tolist() == [LOCAL] * 4
    assert [first[lane] - first[0] for lane in range(32)] == list(range(0, 128, 4))
    assert second[0] - first[0] == 128
    assert not set(first.values()) & set(lanes(found, 2).values())


@pytest.mark.parametrize("ending", ["xz", "gz"])
def test_compressed_files_are_read(tmp_path: Path, ending: str) -> None:
    text = trace({(0, 0, 0): [[Line(0, "EXIT")]]}).encode()
    path = tmp_path / f"k.traceg.{ending}"
    path.write_bytes(lzma.compress(text) if ending == "xz" else gzip.compress(text))
    assert len(read_machine_trace(str(path)).kernel.instructions) == 1
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(PptError, match="damaged or cut"):
        read_machine_trace(str(path))


def test_results_behind_a_predicate_are_results(tmp_path: Path) -> None:
    """The tracer counts the result of SHFL PT, R2, ... and ATOMG PT, R2, ... among the sources."""
    found = read(
        tmp_path,
        Line(0, "SHFL.BFLY", (), (2, 3)),
        Line(16, "ATOMG.E.ADD.STRONG.GPU", (), (6, 4, 7), 1, (HEAP,)),
        Line(32, "BAR.SYNC"),
        Line(48, "BAR.ARV"),
    )
    shuffle, atomic, wait, arrive = found.kernel.instructions
    assert (shuffle.writes, shuffle.reads) == ((2,), (3,))
    assert (atomic.writes, atomic.reads) == ((6,), (4, 5, 7))
    assert (operation(atomic), is_barrier(wait), is_barrier(arrive)) == ("atomic.global", True, False)


def test_asynchronous_copies_have_groups(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        Line(0, "LDGSTS.E.BYPASS.128", (), (8, 4), 1, (HEAP,), 16),
        Line(16, "LDGDEPBAR"),
        Line(32, "DEPBAR.LE", immediate=1),
        binary_version=80,
    )
    assert [each.opcode for each in found.kernel.instructions] == [
        "cp.async.cg.shared.global",
        "cp.async.commit_group",
        "cp.async.wait_group",
    ]
    assert access_bytes(found.kernel.instructions[0]) == 16
    assert found.kernel.instructions[2].operands[0].value == 1  # type: ignore[union-attr]


def test_buffers_are_the_copied_ones_and_what_else_is_touched(tmp_path: Path) -> None:
    loads = [Line(pc, "LDG.E", (2,), (4,), 1, (HEAP + at,)) for pc, at in ((0, 0), (16, 1 << 20), (32, (1 << 20) + 64))]
    path = written(tmp_path, trace({(0, 0, 0): [loads]}))
    found = read_machine_trace(path, (Range("copy0", HEAP, 4096, True),)).trace
    assert [(each.start, each.copied) for each in found.ranges] == [(HEAP, True), (HEAP + (1 << 20), False)]


def test_a_budget_ends_the_reading(tmp_path: Path) -> None:
    path = written(tmp_path, trace({(0, 0, 0): [[Line(0, "EXIT")] * 100]}))
    with pytest.raises(BudgetError, match="larger than 100 bytes"):
        read_machine_trace(path, limit=100)
