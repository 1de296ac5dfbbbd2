"""The micro-benchmarks of Hong and Kim as kernels, measured times from files, and the command that fits to them."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest

from ppt_gpu.cli import main
from ppt_gpu.common.errors import InputErrors, PptError
from ppt_gpu.common.paths import data_dir
from ppt_gpu.models.hong_kim.hong_kim import hong_kim_cycles
from ppt_gpu.models.hong_kim.tables import MICRO_BENCHMARKS
from ppt_gpu.pipeline import predict, simulated_sms, workload_traces
from ppt_gpu.scale.simulated_sm import TraceSm
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.validate.mwp.memory_fit import read_measurements
from ppt_gpu.validate.mwp.micro_benchmarks import (
    MicroLaunch,
    executed,
    micro_inputs,
    micro_launches,
    micro_module,
    micro_path,
    micro_workload,
)
from ppt_gpu.workload.budget import Budget


@pytest.fixture(scope="module")
def fx5600() -> Gpu:
    return load_gpu("fx5600", ())


@pytest.mark.parametrize("name", MICRO_BENCHMARKS)
@pytest.mark.parametrize("access", ["c", "uc"])
def test_loops_have_the_counts_of_table_4(name: str, access: str) -> None:
    kernel = f"{name.lower()}_{access}"
    once, twice = executed(kernel, 1), executed(kernel, 2)
    each = MICRO_BENCHMARKS[name]
    assert (twice.comp - once.comp, twice.memory - once.memory) == (each.comp, each.memory)
    assert once.stores == 1 and once.barriers == 0
    multiply_adds = [item for item in micro_module().kernels[kernel].instructions if item.base == "fma"]
    assert len(multiply_adds) == each.fp


def test_programs_of_figure_29_differ_by_the_barrier() -> None:
    with_barrier, without = executed("sync_a_c", 10), executed("sync_b_c", 10)
    assert (with_barrier.barriers, without.barriers) == (10, 0)
    assert with_barrier.comp == without.comp + 10
    assert with_barrier.memory == without.memory == 20 and without.waits == 10


def test_the_file_is_what_its_program_writes() -> None:
    spec = importlib.util.spec_from_file_location("make_micro", data_dir("validation") / "hong_kim" / "make.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert made.module() == micro_path().read_text()


def test_a_warp_executes_what_is_counted(fx5600: Gpu) -> None:
    launch = MicroLaunch("mb4_uc", 32, 1, 10)
    workload = micro_workload(launch, fx5600)
    traces, sequence = workload_traces(workload, fx5600, {}, Budget(), (), False, None)
    sm = next(simulated_sms(workload, traces, sequence, fx5600, None, True))
    assert isinstance(sm, TraceSm)
    counts = executed("mb4_uc", 10)
    assert sm.traces.run([0]).pc_executed.sum() == counts.comp + counts.memory + counts.stores
    given = micro_inputs(launch, fx5600)
    assert (given.uncoal_mem_insts, given.coal_mem_insts, given.active_sms) == (20, 1, 1)


def test_a_loaded_chip_follows_the_model_on_the_simulator(fx5600: Gpu) -> None:
    """With the simulator's own departure delay, the sector over an SM's share of the DRAM bandwidth."""
    share = fx5600.dram_bytes_per_cycle * fx5600.dram.efficiency / 16
    for kernel in ("mb3_uc", "mb7_uc"):
        launch = MicroLaunch(kernel, 256, 48, 20)
        cycles = float(predict(micro_workload(launch, fx5600), fx5600, cache=False).launches[0].value("kernel.cycles"))
        found = hong_kim_cycles(replace(micro_inputs(launch, fx5600), dep_uncoal=32 / share))
        assert found == pytest.approx(cycles, rel=0.05)


def test_resident_blocks_come_from_occupancy(fx5600: Gpu) -> None:
    last = list(micro_launches(fx5600))[-1]
    assert (last.blocks, micro_inputs(last, fx5600).active_blocks_per_sm) == (48, 3)
    with pytest.raises(PptError, match="unknown micro-benchmark 'mb9_c'"):
        executed("mb9_c", 1)


def measured_file(folder: Path, gpu: Gpu, column: str) -> Path:
    """Times of a machine with a latency of 500 and delays of 20 and 5 cycles, by the model."""
    lines = ["# times of a made-up machine", f"kernel,threads_per_block,blocks,iterations,{column}"]
    for launch in micro_launches(gpu, 1000):
        if launch.kernel.startswith(("mb3", "sync_a")) and launch.threads_per_block in (32, 256):
            inputs = replace(micro_inputs(launch, gpu), mem_ld=500, dep_uncoal=20, dep_coal=5)
            cycles = hong_kim_cycles(inputs)
            time = cycles if column == "cycles" else cycles / gpu.sm.clock * 1e6
            lines.append(f"{launch.kernel}, {launch.threads_per_block}, {launch.blocks}, 1000, {time!r}")
    path = folder / "times.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_measured_times_are_fitted(tmp_path: Path, fx5600: Gpu, capsys: pytest.CaptureFixture[str]) -> None:
    path = measured_file(tmp_path, fx5600, "time_us")
    assert main(["fit", "--gpu", "fx5600", "--measured", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    fitted = {name: entry["value"] for name, entry in found["parameters"].items()}
    assert fitted == pytest.approx({"mem_ld": 500, "dep_uncoal": 20, "dep_coal": 5}, rel=1e-5)
    assert [row["kernel"] for row in found["kernels"]] == [
        "mb3_c",
        "mb3_uc",
        "sync_a_c",
        "sync_a_uc",
    ]
    assert max(row["error"] for row in found["kernels"]) < 1e-5
    by_cycles = read_measurements(measured_file(tmp_path, fx5600, "cycles"), fx5600)
    path = measured_file(tmp_path, fx5600, "time_us")
    assert [each.cycles for each in read_measurements(path, fx5600)] == pytest.approx([m.cycles for m in by_cycles])


def test_every_bad_line_is_named(tmp_path: Path, fx5600: Gpu) -> None:
    path = tmp_path / "times.csv"
    path.write_text("kernel,threads_per_block,blocks,cycles\nmb3_d,32,1,9\nmb3_c,0,1,9\nmb3_c,32,1,\nmb3_c,32,1,nan\n")
    with pytest.raises(InputErrors) as caught:
        read_measurements(path, fx5600)
    texts = [f"{error.line}: {error.message}" for error in caught.value.errors]
    assert texts == [
        "2: unknown micro-benchmark 'mb3_d'",
        "3: threads_per_block is '0', expected a positive number",
        "4: no time",
        "5: cycles is 'nan', expected a positive number",
    ]


@pytest.mark.slow
def test_the_simulation_is_fitted_as_a_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "--gpu", "fx5600", "--iterations", "50", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"]["dep_uncoal"]["value"] == pytest.approx(11.25, rel=0.05)
    assert found["error"] < 0.15
