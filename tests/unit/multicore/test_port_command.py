"""`port` as a user types it."""

import json
from pathlib import Path

import pytest

from ppt_gpu.cli import main
from ppt_gpu.multicore.representation.ir_text import read_ir

EXAMPLES = Path(__file__).parents[3] / "examples" / "counters"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code = main(["port", *arguments])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return out


@pytest.fixture(scope="module")
def vecadd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The representation of a shipped sample."""
    path = tmp_path_factory.mktemp("ir") / "vecadd.toml"
    assert main(["port", "--from-gpu", "vecadd", "--to", "sandybridge", "-o", str(path)]) == 0
    return path


def test_a_kernel_becomes_a_representation(vecadd: Path) -> None:
    ir = read_ir(vecadd)
    assert ir.strides == {"1": 1.0} and ir.width == 32
    assert ir.operations["store"].threads * 2 == ir.operations["load"].threads
    assert ir.operations["fp_add"].threads == ir.operations["store"].threads
    assert ir.footprint == pytest.approx(3 * 4 * ir.operations["store"].threads)


def test_from_a_file_as_from_the_kernel(vecadd: Path, capsys: pytest.CaptureFixture[str]) -> None:
    straight = json.loads(run(capsys, "--from-gpu", "vecadd", "--to", "atom", "--json"))
    through = json.loads(run(capsys, "--from-ir", str(vecadd), "--to", "atom", "--json"))
    assert straight == through
    assert straight["time_s"] == pytest.approx(sum(straight["launches"][0]["parts"].values()) / 1.66e9)


def test_to_every_core_and_two_gpus(vecadd: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = {
        name: json.loads(run(capsys, "--from-ir", str(vecadd), "--to", name, "--json"))["time_s"]
        for name in ("a8", "atom", "xeon", "nehalem", "sandybridge", "gtx660ti", "k40")
    }
    assert list(times.values()) == sorted(times.values(), reverse=True)


def test_the_report(vecadd: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "--from-ir", str(vecadd), "--to", "Sandybridge", "--explain", "--sensitivity")
    assert out.startswith("vecadd on sandybridge\n")
    assert "CPU core from a run on a GPU (section 5.4.2): -71% to +476%" in " ".join(out.split())
    assert "(4.10) l_mu' = l_mu + W_max = " in out
    assert "N_mL3 " in out and "time over the time above" in out
    assert "3% of the branches are taken to be mispredicted" in out


def test_counters_to_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--from-cpu", str(EXAMPLES / "saxpy.csv"), "--to", "k40"]
    found = json.loads(run(capsys, *arguments, "--json", "--explain", "--sensitivity"))["launches"][0]
    assert found["blocks"] * found["block"] == 1_024_000
    assert found["time_s"] == min(found["tried"].values())
    assert found["inputs"]["N_mem"] == 3 and found["inputs"]["avg_trans_warp"] == 1
    assert {step["number"] for step in found["steps"]} >= {"(1)", "(12)", "(16)"}
    assert {each["name"] for each in found["sensitivity"]} >= {"n_i", "N_off_chip", "warps"}
    text = run(capsys, *arguments, "--threads", "256", "--explain")
    assert "4,000 blocks of 256 threads;" in text and "(1) T_exec = " in text
    literal = json.loads(run(capsys, *arguments, "--json", "--literal"))["launches"][0]
    assert (literal["block"], literal["tried"]) == (256, {})


def test_the_bandwidth_of_a_gpu_is_a_floor(capsys: pytest.CaptureFixture[str]) -> None:
    """Scattered accesses of a GPU without caches move 32 B a thread."""
    arguments = ["--from-cpu", str(EXAMPLES / "saxpy.csv"), "--to", "fx580", "--json", "--counter", "simd_share=0"]
    found = json.loads(run(capsys, *arguments))["launches"][0]
    assert found["limiter"] == "DRAM bandwidth"
    inputs = found["inputs"]
    moved = inputs["N_off_chip"] * 32 * 32 * inputs["warps"]
    assert found["time_s"] == pytest.approx(moved / (25.6e9 * 0.8))


def test_counters_to_their_own_core(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "--from-cpu", str(EXAMPLES / "saxpy.perf.txt"), "--to", "sandybridge")
    assert "measured    1.324 ms (this run: predicted " in out
    assert "-53% to +114%, mean +29%, mean absolute 49%" in out
    four = ["--cores", "4", "--parallel", "0.99", "--counter", "ilp=6.1"]
    one, many = (
        json.loads(run(capsys, "--from-cpu", str(EXAMPLES / "saxpy.perf.txt"), "--to", "sandybridge", "--json", *more))
        for more in (four[4:], four)
    )
    assert many["time_s"] == pytest.approx(one["time_s"] * (0.01 + 0.99 / 4))


def test_a_workload_with_several_launches(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "--from-gpu", "spmv", "--to", "nehalem")
    assert "row_starts on nehalem" in out and "all launches on nehalem: " in out
    second = run(capsys, "--from-gpu", "spmv", "--launch", "2", "--to", "nehalem")
    assert second.count(" on nehalem") == 1
