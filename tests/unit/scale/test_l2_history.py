"""What launches leave in the L2 for the next one."""

from __future__ import annotations

from ppt_gpu.exec.trace import Range
from ppt_gpu.exec.workload import Argument, Buffer, Launch, Workload
from ppt_gpu.pipeline import predict
from ppt_gpu.scale.l2_history import copied
from ppt_gpu.spec import load_gpu

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
    assert copied(ranges, 4, LINE).tolist() == [2048 + LINE, 2048, 2 * LINE, LINE]
    assert copied(ranges, 1, LINE).tolist() == [2048 + LINE]


def test_a_launch_that_pushes_out_what_it_comes_to_later_finds_nothing_of_it(tmp_path) -> None:
    """480 KiB in a row, again and again: an L2 of 400 KiB keeps the last 400, but none of it until it is used."""
    found = {kib: hit_rate_of_a_repeated_launch(tmp_path, kib) for kib in (600, 400)}
    assert found == {600: 1.0, 400: 0.5}  # the store of a line hits after its load


def hit_rate_of_a_repeated_launch(tmp_path, kib: int) -> float:
    """L2 hit rate of the second launch that reads and writes 480 KiB."""
    (tmp_path / "read.ptx").write_text(READ)
    path = str(tmp_path / "read.ptx")
    launches = [
        Launch("read", (480, 1, 1), (256, 1, 1), (Argument("u64", buffer="a"),), dynamic_shared=256 * number)
        for number in range(2)
    ]
    gpu = load_gpu("k40", [f"l2.size={kib} KiB"])
    workload = Workload("read", path, path, tuple(launches), (Buffer("a", "u32", 122880),))
    return predict(workload, gpu, cache=False).launches[1].value("memory.l2_hit_rate")
