"""What launches leave in the L2 for the next one."""

from __future__ import annotations

from ppt_gpu.pipeline import predict
from ppt_gpu.scale.l2_history import L2History
from ppt_gpu.sm.l2_sharing.left_lines import LeftLines
from ppt_gpu.spec import load_gpu
from ppt_gpu.workload.workload import Argument, Buffer, Launch, Range, Workload

LINE = 128
READ = """
.version 7.0
.target sm_35
.address_size 64
.visible .entry read(.param .u64 p)
{
    .reg .u32 %r<4>;
    .reg .u64 %d<4>;
    ld.param.u64 %d0, [p];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    mad.lo.u32 %r0, %r1, 256, %r0;
    mul.wide.u32 %d1, %r0, 4;
    add.u64 %d0, %d0, %d1;
    ld.global.u32 %r2, [%d0];
    st.global.u32 [%d0], %r2;
    ret;
}
"""


def hit_rates(tmp_path, kib: int, copies: bool) -> list[float]:
    """L2 hit rates of two launches in a row that read 16 KiB each of their own buffer, then of the first again."""
    (tmp_path / "read.ptx").write_text(READ)
    path = str(tmp_path / "read.ptx")
    buffers = tuple(Buffer(name, "u32", 4096, copied=copies) for name in ("a", "b"))
    arguments = [(Argument("u64", buffer=name),) for name in ("a", "b", "a")]
    # each with its own number of dynamic shared bytes, so that none is taken to be another
    launches = [
        Launch("read", (16, 1, 1), (256, 1, 1), argument, dynamic_shared=256 * number)
        for number, argument in enumerate(arguments)
    ]
    gpu = load_gpu("k40", [f"l2.size={kib} KiB"])
    result = predict(Workload("read", path, path, tuple(launches), buffers), gpu, cache=False)
    return [launch.value("memory.l2_hit_rate") for launch in result.launches]


def test_a_launch_finds_what_the_one_before_the_last_used_if_it_fits(tmp_path) -> None:
    large, small = (hit_rates(tmp_path, kib, copies=False) for kib in (256, 16))
    assert large == [0.5, 0.5, 1.0]  # the store of a line hits after its load
    assert small[0] == small[1] == small[2]


def test_the_last_copied_bytes_that_fit_stay_the_last_one_first() -> None:
    ranges = [Range("a", 0, 3 * LINE, True), Range("b", 1024, 2 * LINE, False), Range("c", 2048, 2 * LINE, True)]
    assert LeftLines.copied(ranges, 4, LINE).address.tolist() == [2048 + LINE, 2048, 2 * LINE, LINE]
    assert LeftLines.copied(ranges, 1, LINE).address.tolist() == [2048 + LINE]


def test_a_launch_that_pushes_out_what_it_comes_to_later_finds_nothing_of_it(tmp_path) -> None:
    """480 KiB in a row, again and again: an L2 of 400 KiB keeps the last 400, but none of it until it is used."""
    found = {kib: repeated_launch(tmp_path, kib, copied=False)[1] for kib in (600, 400)}
    assert found == {600: 1.0, 400: 0.5}  # the store of a line hits after its load


def test_copies_are_pushed_out_by_the_first_launch_too(tmp_path) -> None:
    found = {kib: repeated_launch(tmp_path, kib, copied=True)[0] for kib in (600, 400)}
    assert found == {600: 1.0, 400: 0.5}


def test_blocks_of_a_wave_find_what_only_their_stores_push_out(tmp_path) -> None:
    """64 KiB are copied and read in one wave: its blocks come to their loads before the first of them stores."""
    copy = READ.replace("p)", "p, .param .u64 q)").replace("    st.", "    ld.param.u64 %d2, [q];\n    st.")
    copy = copy.replace("[%d0], %r2;", "[%d2], %r2;").replace("    st.", "    add.u64 %d2, %d2, %d1;\n    st.")
    (tmp_path / "copy.ptx").write_text(copy)
    path = str(tmp_path / "copy.ptx")
    arguments = (Argument("u64", buffer="a"), Argument("u64", buffer="b"))
    launch = Launch("read", (64, 1, 1), (256, 1, 1), arguments)
    workload = Workload(
        "read", path, path, (launch,), (Buffer("a", "u32", 16384, copied=True), Buffer("b", "u32", 16384))
    )
    rates = [
        predict(workload, load_gpu("k40", [f"l2.size={kib} KiB"]), cache=False).launches[0].value("memory.l2_hit_rate")
        for kib in (64, 32)
    ]
    assert rates == [0.5, 0.0]  # an L2 of half the size lost the first half before the launch, the rest in it


def repeated_launch(tmp_path, kib: int, copied: bool) -> list[float]:
    """L2 hit rates of two launches that read and write 480 KiB."""
    (tmp_path / "read.ptx").write_text(READ)
    path = str(tmp_path / "read.ptx")
    launches = [
        Launch("read", (480, 1, 1), (256, 1, 1), (Argument("u64", buffer="a"),), dynamic_shared=256 * number)
        for number in range(2)
    ]
    gpu = load_gpu("k40", [f"l2.size={kib} KiB"])
    workload = Workload("read", path, path, tuple(launches), (Buffer("a", "u32", 122880, copied=copied),))
    return [launch.value("memory.l2_hit_rate") for launch in predict(workload, gpu, cache=False).launches]


STORE = """.version 8.0
.target sm_35
.address_size 64
.visible .entry store(.param .u64 p, .param .u32 stride) {
    .reg .b32 %r<6>; .reg .b64 %d<3>;
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r0, %r1, %r2;
    ld.param.u32 %r4, [stride]; mul.wide.u32 %d1, %r3, %r4; ld.param.u64 %d0, [p]; add.u64 %d0, %d0, %d1;
    st.global.u32 [%d0], %r3; ret;
}
"""


def test_a_line_of_one_sector_pushes_out_all_written_sectors_of_another(tmp_path) -> None:
    """The first launch leaves 64 KiB of whole lines; the second brings as many lines, one sector each."""
    (tmp_path / "store.ptx").write_text(STORE)
    path = str(tmp_path / "store.ptx")
    launches = (
        Launch("store", (64, 1, 1), (256, 1, 1), (Argument("u64", buffer="a"), Argument("u32", 4))),
        Launch("store", (2, 1, 1), (256, 1, 1), (Argument("u64", buffer="b"), Argument("u32", 128))),
    )
    workload = Workload("store", path, path, launches, (Buffer("a", "u8", 1 << 16), Buffer("b", "u8", 1 << 16)))
    second = predict(workload, load_gpu("k40", ["l2.size=64 KiB"]), cache=False).launches[1]
    assert second.value("memory.dram_write_bytes") == 1 << 16


def test_sets_do_not_count_where_dirty_lines_are_kept_longer() -> None:
    """What such an L2 leaves is not known set by set, even if it is known which lines share one."""
    assert L2History(load_gpu("gpgpusim_qv100")).sets is not None
    assert L2History(load_gpu("gpgpusim_qv100", ["l2.dirty_share=0.75"])).sets is None
