"""Configurations: the grid, its order, what follows, conditions; parameters of the GPU and of the launch."""

from pathlib import Path

import pytest

from ppt_gpu.common.errors import InputErrors, PptError
from ppt_gpu.explore.hardware_keys import check_value, numbers_of, text_of
from ppt_gpu.explore.launch_keys import with_values
from ppt_gpu.explore.space import Space, make_space
from ppt_gpu.inputs import open_workload
from ppt_gpu.spec import load_gpu

ROOT = Path(__file__).parents[3]
VECADD = open_workload("vecadd")


def space(*settings: str, let: tuple[str, ...] = (), where: tuple[str, ...] = ()) -> Space:
    return make_space(settings, let, where, load_gpu("k40"), VECADD)


def test_the_last_parameter_changes_first() -> None:
    made = space("sm.count=8,16", "dram.bandwidth=144 GB/s,288 GB/s")
    assert [tuple(point.values.values()) for point in made.points()] == [
        ("8", "144 GB/s"), ("8", "288 GB/s"), ("16", "144 GB/s"), ("16", "288 GB/s"),
    ]  # fmt: skip
    assert [point.number for point in made.points()] == [0, 1, 2, 3]
    assert made.point(2).overrides() == ("sm.count=16", "dram.bandwidth=144 GB/s")


def test_conditions_see_varied_and_other_values() -> None:
    made = space("sm.count=8:64:8", where=("sm.count*4 <= 160", "sm.count*sm.schedulers > 32"))
    assert [point.values["sm.count"] for point in made.points()] == ["16", "24", "32", "40"]


def test_what_follows_is_in_units_that_a_file_takes() -> None:
    made = space("sm.count=10,20", let=("dram.bandwidth=sm.count*'19.2 GB/s'", "l2.bandwidth=sm.count*32"))
    points = [point.values for point in made.points()]
    assert [point["dram.bandwidth"] for point in points] == ["192000000000 B/s", "384000000000 B/s"]
    gpu = load_gpu("k40", made.point(1).overrides())
    assert (gpu.dram.bandwidth, gpu.l2.bandwidth) == (384e9, 640)


def test_following_values_see_those_before_them() -> None:
    made = space("block=64,256", "arguments[3]=1000", let=("grid=ceil(arguments[3]/block)", "buffers.a=grid*block"))
    assert [(p.values["grid"], p.values["buffers.a"]) for p in made.points()] == [("16", "1024"), ("4", "1024")]
    launch = with_values(VECADD, made.point(0).launch()).launches[0]
    assert (launch.grid, launch.block, launch.arguments[3].value) == ((16, 1, 1), (64, 1, 1), 1000)


def test_samples_are_chosen_by_the_seed() -> None:
    made = space("sm.count=1:100:1")
    chosen = [[p.number for p in made.points(sample=10, seed=seed)] for seed in (1, 1, 2)]
    assert chosen[0] == chosen[1] != chosen[2]
    assert all(numbers == sorted(set(numbers)) and len(numbers) == 10 for numbers in chosen)
    assert len(list(made.points(sample=1000))) == 100


def test_the_grid_follows_the_block() -> None:
    sgemm = open_workload("sgemm")  # 64 x 64 blocks of 16 x 16
    for block, grid in (("32x8", (32, 128, 1)), ("8x8", (128, 128, 1)), ("48x16", (22, 64, 1)), ("16x16", (64, 64, 1))):
        assert with_values(sgemm, {"block": block}).launches[0].grid == grid
    assert with_values(sgemm, {"block.x": "64"}).launches[0].grid == (16, 64, 1)
    assert with_values(sgemm, {"block": "32x8", "grid": "7"}).launches[0].grid == (7, 1, 1)
    assert with_values(sgemm, {"block": "32x8", "grid.x": "7"}).launches[0].grid == (7, 128, 1)


def test_other_parameters_of_the_launch() -> None:
    made = with_values(VECADD, {"registers": "40", "dynamic_shared": "1024", "buffers.c": "64*64"})
    assert (made.launches[0].registers, made.launches[0].dynamic_shared, made.buffers[2].count) == (40, 1024, 4096)
    blur = open_workload(ROOT / "examples" / "blur.cu", kernel="blur", grid="4", block="256", args=["f32[1024]"])
    assert with_values(blur, {"define.TILE": "8"}).compiler_options == ("-DTILE=8",)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"block": "2048"}, "block.x is 2048"),
        ({"block": "a"}, "expected one to three positive integers"),
        ({"registers": "2.5"}, "registers is 2.5"),
        ({"arguments[3]": "x"}, "'x' is not an integer"),
        ({"buffers.a": "0"}, "out of range"),
    ],
)
def test_values_that_do_not_fit_the_launch(values: dict[str, str], message: str) -> None:
    with pytest.raises((PptError, InputErrors)) as caught:
        with_values(VECADD, values)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("sm.count", "expected KEY=..."),
        ("sm.cont=1", "did you mean 'count'"),
        ("sn.count=1", "did you mean 'sm'"),
        ("sm=1", "'sm' is a table"),
        ("sm.count=1.5", "--set sm.count: 1.5: expected an integer"),
        ("sm.count=8,5000", "5000 is out of range"),
        ("dram.bandwidth=288", "expected a quantity such as"),
        ("op.fp99.latency=3", "does not begin with a task class"),
        ("arguments[9]=1", "the launch has 4 arguments"),
        ("arguments[0]=1", "argument 0 is no scalar"),
        ("buffers.d=1", "no buffer 'd'"),
        ("define.TILE=1", "macros are of CUDA files"),
        ("block.w=1", "unknown parameter 'block.w'"),
    ],
)
def test_settings_that_are_refused(setting: str, message: str) -> None:
    with pytest.raises(PptError) as caught:
        space(setting)
    assert message in str(caught.value)


def test_too_many_and_twice() -> None:
    with pytest.raises(PptError, match="given twice"):
        space("sm.count=8", "sm.count=9")
    with pytest.raises(PptError, match="given twice"):
        space("sm.count=8", let=("sm.count=9",))
    with pytest.raises(PptError, match="configurations are too many"):
        space("sm.count=1:4000:1", "l1.latency=1:4000:1")
    with pytest.raises(PptError, match="several launches"):
        make_space(["block=64"], (), (), load_gpu("k40"), open_workload("reduction"))


def test_keys_of_the_gpu() -> None:
    numbers = numbers_of(load_gpu("k40"))
    assert (numbers["sm.count"], numbers["pipes.fp32.lanes"], numbers["l2.write"]) == (15, 192, "write-back")
    for key, value in numbers.items():
        check_value(key, text_of(key, value), key)
