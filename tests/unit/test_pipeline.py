"""predict() end to end on the shipped samples: what must hold for every prediction."""

import json
from pathlib import Path

import pytest

import ppt_gpu
from ppt_gpu.common.errors import PptError
from ppt_gpu.report.json import document, to_json
from ppt_gpu.report.result.metrics import REGISTRY
from ppt_gpu.report.result.result import Result
from ppt_gpu.report.text.text import render
from ppt_gpu.scale.levels.steady import WAVES

ROOT = Path(__file__).parents[2]
SAMPLES = sorted(path.stem for path in (ROOT / "tasklists").glob("*.toml"))
GPUS = ("k40", "v100", "gtx480", "rtx3070", "gtx280")
#: kernels that need what the GPU does not have
NOT_HELD = {("hgemm", gpu): "needs asynchronous copies" for gpu in ("k40", "v100", "gtx480", "gtx280")}
PROMISED = (
    "kernel.time",
    "kernel.cycles",
    "kernel.thread_instructions",
    "kernel.warp_instructions",
    "sm.ipc",
    "occupancy.blocks_per_sm",
    "occupancy.limiter",
    "limiter",
    "sim.warp_instructions",
    "sim.wall",
)
VECADD = str(ROOT / "tasklists" / "vecadd.ptx")


def vecadd(blocks: int, **options: object) -> Result:
    count = blocks * 256
    arguments = [f"f32[{count}]=random", f"f32[{count}]=random", f"f32[{count}]", f"i32={count}"]
    workload = ppt_gpu.open_workload(VECADD, grid=(blocks,), block=(256,), args=arguments)
    return ppt_gpu.predict(workload, "k40", **options)  # type: ignore[arg-type]


def without_wall(result: Result) -> object:
    """The JSON document without the one metric that is a measurement of the host."""
    found = document(result)
    for holder in (found, *found["launches"]):
        holder["metrics"] = [item for item in holder["metrics"] if item["tag"] != "sim.wall"]
    return found


def is_default(sample: str, gpu: str) -> bool:
    """Each sample has its share of the kinds of GPU, and each of them its share of samples; the others are slow.

    What is refused is no work, and a sample that a single GPU holds is predicted on that one."""
    held = [each for each in GPUS if (sample, each) not in NOT_HELD]
    return (SAMPLES.index(sample) + GPUS.index(gpu)) % 3 == 0 or gpu not in held or len(held) == 1


PAIRS = [
    pytest.param(sample, gpu, marks=() if is_default(sample, gpu) else pytest.mark.slow, id=f"{sample}-{gpu}")
    for sample in SAMPLES
    for gpu in GPUS
]


@pytest.mark.parametrize(("sample", "gpu"), PAIRS)
def test_every_sample_on_every_kind_of_gpu(sample: str, gpu: str) -> None:
    if (sample, gpu) in NOT_HELD:
        with pytest.raises(PptError, match=NOT_HELD[sample, gpu]):
            ppt_gpu.predict(sample, gpu)
        return
    result = ppt_gpu.predict(sample, gpu)
    assert result.time > 0
    for launch in result.launches:
        cycles = launch.value("kernel.cycles")
        assert all(bound.cycles <= cycles * (1 + 1e-12) for bound in launch.bounds)
        assert sum(share for _, share in launch.stalls) == pytest.approx(1.0, abs=1e-12)
        assert {metric.tag for metric in launch.metrics} <= set(REGISTRY)
        assert launch.assumptions
        time = cycles / launch.value("gpu.clock") + launch.value("kernel.launch_overhead")
        assert launch.value("kernel.time") == pytest.approx(time)
    tags = {item["tag"] for item in json.loads(to_json(result))["metrics"]}
    assert set(PROMISED) <= tags
    assert render(result).startswith(f"{sample} on ")


def test_same_input_same_bytes() -> None:
    first, second = (json.dumps(without_wall(ppt_gpu.predict("stencil7", "k40"))) for _ in range(2))
    assert first == second


def test_more_sms_are_faster() -> None:
    assert vecadd(600, overrides=["sm.count=30"]).time < vecadd(600).time


def test_work_of_the_simulation_does_not_grow_with_the_grid() -> None:
    for blocks in (6000, 48000):
        launch = vecadd(blocks).main
        waves = float(launch.value("sim.blocks")) / float(launch.value("occupancy.blocks_per_sm"))
        assert waves < max(WAVES) + 1
        assert launch.value("kernel.thread_instructions") == blocks * 256 * 21


def test_workload_level_uses_one_wave() -> None:
    result = vecadd(600, level="workload")
    assert result.main.level == "workload"
    assert result.main.value("sim.blocks") == result.main.value("occupancy.blocks_per_sm")


def test_second_launch_sees_the_first_ones_results() -> None:
    """The reduction's second launch reads what the whole first grid wrote; its time must not depend on luck."""
    result = ppt_gpu.predict("reduction", "k40")
    assert len(result.launches) == 2
    assert result.launches[0].value("kernel.time") > result.launches[1].value("kernel.time")


def test_translated_kernel_predicts_like_the_kernel(tmp_path: Path) -> None:
    arguments = [*(f"f32[{600 * 256}]",) * 3, f"i32={600 * 256}"]
    workload = ppt_gpu.open_workload(VECADD, grid=(600,), block=(256,), args=arguments, registers=12)
    path = tmp_path / "vecadd.tl"
    path.write_text(ppt_gpu.translate(workload))
    again = ppt_gpu.predict(ppt_gpu.open_workload(path, grid=(600,)), "gpgpusim_qv100")
    assert again.time == pytest.approx(ppt_gpu.predict(workload, "gpgpusim_qv100").time, rel=0.1)


def test_strict_makes_warnings_errors(tmp_path: Path) -> None:
    text = (ROOT / "tasklists" / "vecadd.toml").read_text().replace("vecadd.ptx", VECADD)
    path = tmp_path / "unused.toml"
    path.write_text(text + 'spare = "f32[16]"\n')
    with pytest.raises(PptError, match="spare"):
        ppt_gpu.predict(path, "k40", strict=True)


def triangular(**options: object) -> Result:
    """Block b does b + 1 units of work."""
    path = ROOT / "tests" / "data" / "scale" / "irregular.ptx"
    arguments = ["f32[25600]", "i32=0"]
    workload = ppt_gpu.open_workload(path, kernel="triangular", grid=(200,), block=(128,), args=arguments)
    return ppt_gpu.predict(workload, "k40", **options)  # type: ignore[arg-type]


def test_the_report_says_what_was_looked_at_and_how_different_it_was() -> None:
    result = triangular(blocks=40)
    launch = result.main
    assert launch.value("blocks.surveyed") == 40 and launch.value("grid.blocks") == 200
    assert float(launch.value("blocks.variation")) == pytest.approx(0.56, abs=0.03)
    assert 0 < float(launch.value("blocks.sampling_error")) < 0.05
    shares = [float(share.rstrip("%")) for share in str(launch.value("blocks.shares")).split(", ")]
    assert len(shares) == launch.value("blocks.kinds") and sum(shares) == pytest.approx(100, abs=0.1)
    text = " ".join(render(result).split())
    assert "40 of 200 looked at" in text and "standard error" in text and "kinds of blocks" in text
    assert "blocks differ, and all are resident at once: SMs" in text


def test_every_block_looked_at_gives_exact_counts() -> None:
    launch = triangular(blocks="all").main
    assert launch.value("blocks.surveyed") == 200 and launch.value("blocks.sampling_error") == 0
    lanes = 200 * 32 * float(launch.value("blocks.warp_instructions"))
    assert 0.99 * lanes < float(launch.value("kernel.thread_instructions")) <= lanes  # a guard leaves some out
    sampled = triangular(blocks=40).main
    assert sampled.value("kernel.cycles") == pytest.approx(float(launch.value("kernel.cycles")), rel=0.08)


def test_a_level_that_takes_blocks_for_alike_warns_where_they_differ() -> None:
    assert any("blocks differ" in text for text in triangular(level="workload").main.warnings)
    assert not any("blocks differ" in text for text in vecadd(600, level="workload").main.warnings)
    with pytest.raises(PptError, match="blocks differ"):
        triangular(level="workload", strict=True)
