"""Long launches: blocks of an SM that need the same unit of it meet there, as they do when all SMs are simulated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest
from timed import timed

from ppt_gpu.common.paths import data_dir
from ppt_gpu.inputs import open_workload
from ppt_gpu.pipeline import predict, workload_traces
from ppt_gpu.scale.blocks.distribution import GridSpread, spread_grid
from ppt_gpu.scale.levels.choice import LEVELS
from ppt_gpu.scale.levels.long_launch import dram_use, long_launch
from ppt_gpu.scale.occupancy.occupancy import Occupancy
from ppt_gpu.scale.simulated_sm import TraceSm
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.workload.budget import Budget

STREAM = data_dir("validation") / "measured" / "kernels" / "stream.ptx"
A40 = load_gpu("a40")
WAVES = 64


def test_blocks_meet_at_a_unit_of_the_sm_as_on_the_whole_chip() -> None:
    """Two blocks of 40 instructions of 16 cycles each at the unit for doubles, and as long in memory.

    Of so many waves because they get in step within the first 20: loads of one block wait behind the other's doubles.
    """
    blocks = 84 * 2 * WAVES
    elements = blocks * 256 - 6
    args = (*(f"f64[{elements}]",) * 3, "f64=3", f"i64={elements}")
    workload = open_workload(STREAM, kernel="stencil5", grid=(blocks, 1, 1), block=(256, 1, 1), args=args)
    steady, whole = (
        float(predict(workload, "a40", overrides=("sm.max_blocks=2",), level=level).launches[0].value("kernel.cycles"))
        for level in ("steady", "grid")
    )
    assert steady == pytest.approx(whole, rel=0.03)
    assert steady / WAVES > 2 * 40 * 16 + 900  # both at the unit, one after the other, and a block's way to memory


def test_an_sm_is_not_left_with_the_edge_of_the_grid() -> None:
    """16 SMs, and 16 blocks in a row of the grid: SM 0 has the left edge, whose warps store twice, in step only."""
    args = (f"f32[{1 << 20}]=random:1", f"f32[{1 << 20}]", "i32=1024")
    workload = open_workload(data_dir("tasklists") / "jacobi.ptx", grid=(16, 256, 1), block=(64, 4, 1), args=args)
    steady, whole = (
        float(predict(workload, "gtx980", level=level).main.value("kernel.cycles")) for level in ("steady", "grid")
    )
    assert steady == pytest.approx(whole, rel=0.03)


@pytest.mark.parametrize(
    ("kernel", "gpu", "blocks", "args", "shared"),
    [
        ("bigsums.sum_tree", "h100", 2097152, ("i32[1073741824]", "i32[2097152]", "u64=1073741824"), 0),
        ("nvbins.count_shared", "rtx3060", 131072, ("u32[67108864]", "u32[512]", "u32=67108864", "u32=512"), 2048),
    ],
)
def test_the_rate_is_one_that_lasts(
    kernel: str, gpu: str, blocks: int, args: tuple[str, ...], shared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of 512 threads that keep a distance for some dozens of waves: as after 257 waves."""
    module, _, name = kernel.partition(".")
    source = data_dir("validation") / "published" / "kernels" / f"{module}.ptx"
    workload = open_workload(
        source, kernel=name, grid=(blocks, 1, 1), block=(512, 1, 1), args=args, dynamic_shared=shared
    )

    def cycles() -> float:
        return float(predict(workload, gpu).launches[0].value("kernel.cycles"))

    found = cycles()
    monkeypatch.setattr("ppt_gpu.scale.levels.choice.affordable_waves", lambda *_: (257,))
    assert found == pytest.approx(cycles(), rel=0.015)


@dataclass(frozen=True)
class Toy:
    """An SM of two blocks at a time, each of which moves `moved` bytes. A wave takes 1,000 cycles, or 900 while it is
    out of step."""

    gpu: Gpu
    occupancy: Occupancy
    sm_result: Callable[..., SmResult]
    launch: SimpleNamespace
    spread: GridSpread
    moved: int  # bytes
    asked: list[bool] = field(default_factory=list)  # whether out of step, of each simulation
    place: int = 0
    out_of_step: bool = False
    share: float | None = None

    def __call__(self, blocks):
        self.asked.append(self.out_of_step)
        wave = 900 if self.out_of_step else 1000
        ends = [wave // 2 * (number + 2) for number in range(len(blocks))]
        starts = [max(0, end - wave) for end in ends]
        found = replace(self.sm_result(starts, ends), dram_read_bytes=self.moved * len(blocks))
        return timed(lambda _: found)(blocks)


def toy(holding, sm_result, waves: int, moved: int) -> Toy:
    blocks = 84 * 2 * waves
    return Toy(A40, holding(2), sm_result, SimpleNamespace(blocks=blocks), spread_grid(blocks, 2, 84), moved)


SHARE = A40.dram_bytes_per_cycle * A40.dram.efficiency / 84  # B a cycle of an SM


@pytest.mark.parametrize(
    ("waves", "use", "asked"),
    [
        (100, 0.5, [True]),
        (100, 1.05, [True, False]),  # more than its share: nothing was left over for later
        (9, 0.5, [False]),  # all blocks are simulated, from the launch on
    ],
)
def test_an_sm_starts_out_of_step_where_dram_has_share_left(holding, sm_result, waves, use, asked) -> None:
    sm = toy(holding, sm_result, waves, round(use * SHARE * 900 / 2))
    found = long_launch(sm, (9, 17, 33))
    assert sm.asked == asked and found.simulated_sm.out_of_step is asked[-1]
    assert dram_use(found, A40) == pytest.approx(use * 900 / found.wave_cycles, rel=0.01)


def test_where_nothing_waits_for_dram_under_load_nothing_starts_out_of_step(holding, sm_result) -> None:
    sm = toy(holding, sm_result, 100, 1000)
    long_launch(replace(sm, gpu=load_gpu("k40")), (9, 17, 33))
    assert sm.asked == [False]


def test_stores_that_dram_falls_behind_are_simulated_until_they_wait() -> None:
    """Blocks of 384 threads fill an A100's DRAM to 1.08: nine waves later its stores have not waited yet."""
    elements = 1 << 26
    times: dict[int, float] = {}
    for threads in (384, 448):
        args = (f"f64[{elements}]", "f64[1]", "f64[1]", "f64=3", f"i64={elements}")
        workload = open_workload(
            STREAM, kernel="init", grid=(elements // threads + 1, 1, 1), block=(threads, 1, 1), args=args
        )
        overrides = ("sm.clock=1410 MHz", "sm.max_blocks=2")
        times[threads] = float(predict(workload, "a100_80gb", overrides=overrides).main.value("kernel.cycles"))
    assert times[384] > 0.97 * times[448]  # what waits between SM and DRAM at the end is a share of this launch


@pytest.mark.parametrize("gpu", ["h100", "k40"])
def test_a_level_predicts_the_same_whatever_was_predicted_before(gpu: str) -> None:
    """On an H100 level steady begins out of step, and gets more blocks than the even share: both are its own."""
    chosen = load_gpu(gpu)
    traces, _ = workload_traces(open_workload("vecadd"), chosen, {}, Budget(), (), False, None)
    sm = TraceSm.of(traces.launch(0), chosen, None)
    survey = sm.survey()
    alone, fields = LEVELS["workload"](sm, survey).cycles, vars(sm).copy()
    assert LEVELS["steady"](sm, survey).simulated_sm is not sm
    assert vars(sm) == fields and LEVELS["workload"](sm, survey).cycles == alone
