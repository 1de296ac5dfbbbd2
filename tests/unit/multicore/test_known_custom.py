"""The custom models on chips of known cores, and the figures of `darksilicon` that need them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ppt_gpu.cli import main
from ppt_gpu.common.errors import PptError
from ppt_gpu.multicore.base.core_file import load_core
from ppt_gpu.multicore.base.device_scaling import Node, load_scaling
from ppt_gpu.multicore.core_models import s_core
from ppt_gpu.multicore.core_models.m_core import MInputs
from ppt_gpu.multicore.core_models.s_inputs import SInputs
from ppt_gpu.multicore.dark_silicon.known_cores import load_known_cores
from ppt_gpu.multicore.dark_silicon.known_custom import CustomTime, Part, Program, kernels_of
from ppt_gpu.multicore.dark_silicon.known_projection import project_known
from ppt_gpu.multicore.representation.ir import Amount, Ir
from ppt_gpu.multicore.representation.ir_to_s import s_inputs_of_ir
from ppt_gpu.programs import resident
from ppt_gpu.spec import load_gpu

ALL = {"fp_fma": Amount(32e6, 1e6), "load": Amount(64e6, 2e6), "store": Amount(32e6, 1e6), "branch": Amount(32e6, 1e6)}
SAXPY = Ir(
    name="saxpy",
    origin="by hand",
    threads=32e6,
    width=32,
    operations=ALL,
    ilp={2: 1.5, 64: 4.0},
    footprint=256e6,
    element=4.0,
    strides={"1": 1.0},
    group_threads=256,
)
PROGRAMS = (Program("once", (Part(SAXPY, 16, 0, 1),)), Program("thrice", (Part(SAXPY, 16, 0, 3),)))
KNOWN = load_known_cores("blem")
ITRS = load_scaling("itrs")
CORES = {core.name: core for core in KNOWN.cores}


def test_an_s_core_is_the_model_of_chapter_4() -> None:
    found = CustomTime(KNOWN, PROGRAMS, resident)(CORES["S4"], ITRS.nodes[2], 8)
    core = load_core("nehalem")
    chip = replace(core, clock=core.clock * 2.38, cores=8, bandwidth=200e9)
    inputs = replace(s_inputs_of_ir(SAXPY, core), f_inf=0.99)
    expected = s_core.predict(inputs, chip, s_core.Options(cores=8)).time
    assert list(found) == pytest.approx([expected, 3 * expected], rel=1e-12)


def test_more_sms_and_later_nodes_are_not_slower() -> None:
    time = CustomTime(KNOWN, PROGRAMS, resident)
    for name in ("M1", "M2", "M3"):
        few, many = (time(CORES[name], ITRS.nodes[0], count)[0] for count in (2, 16))
        later = time(CORES[name], ITRS.nodes[-1], 16)[0]
        assert few >= many >= later
        assert np.isfinite(few)


def test_a_block_that_does_not_fit_cannot_run() -> None:
    huge = (Program("huge", (Part(replace(SAXPY, group_threads=1024), 32, 0, 1),)),)
    time = CustomTime(KNOWN, huge, resident)
    assert time(CORES["M1"], ITRS.nodes[0], 4)[0] == np.inf
    assert np.isfinite(time(CORES["M3"], ITRS.nodes[0], 4)[0])


def test_errors_are_random_bounded_and_repeatable() -> None:
    exact, off, again, other = (
        CustomTime(KNOWN, PROGRAMS, resident, error=error, seed=seed)
        for error, seed in ((0.0, 0), (0.2, 0), (0.2, 0), (0.2, 1))
    )
    node: Node = ITRS.nodes[0]
    for name in ("S1", "S4+", "M1", "M3"):
        times = [time(CORES[name], node, 4) for time in (exact, off, again, other)]
        assert list(times[1]) == list(times[2])
        assert list(times[1]) != list(times[3])
        assert list(times[1]) != list(times[0])
        assert np.all(np.abs(times[1] / times[0] - 1) < 1.0)
    with pytest.raises(PptError, match=r"an error of 1 in the inputs"):
        CustomTime(KNOWN, PROGRAMS, resident, error=1.0)


def test_inputs_that_are_off_stay_possible() -> None:
    from ppt_gpu.multicore.dark_silicon.known_custom import off_m, off_s

    factors = iter([1.2, 0.8] * 50)
    s = off_s(
        SInputs({"load": 10, "branch": 5}, N_mL1=4, N_mL2=4, N_mL3=4, ILP_w2=2.0, simd_memory=1.0),
        lambda: next(factors),
    )
    assert s.n_i == {"branch": 6.0, "load": 8.0}
    assert s.N_mL3 <= s.N_mL2 <= s.N_mL1
    m = off_m(MInputs(4, {"load": 10}, N_mem=10, N_off_chip=10), lambda: next(factors))
    assert m.N_off_chip <= m.N_mem <= m.N_I


def test_kernels_for_the_upper_bound() -> None:
    kernels = kernels_of(PROGRAMS)
    assert kernels.names == ("once", "thrice")
    assert list(kernels.instructions) == [160e6, 480e6]
    assert list(kernels.loads) == pytest.approx([0.6, 0.6])
    assert list(kernels.footprint) == [256e6, 256e6]
    assert kernels.misses(0.0, 64.0)[0] == pytest.approx(256e6 / 64 / 96e6)
    assert kernels.misses(1e9, 64.0)[0] == 0
    assert list(kernels.off_chip) == [1.0, 1.0]
    assert list(kernels.moved(load_gpu("fx580"))) == [4.0, 4.0]  # coalesced: 4 B a thread
    spread = Program("spread", (Part(replace(SAXPY, strides={"irregular": 1.0}), 16, 0, 1),))
    assert kernels_of((spread,)).moved(load_gpu("fx580"))[0] == 32.0  # a transaction of 32 B for every thread


def test_inputs_off_at_random_move_the_mean_little() -> None:
    """What section 5.5 finds: errors that are not biased leave the geometric mean of many programs almost as it was."""
    many = tuple(Program(f"p{number}", PROGRAMS[0].parts) for number in range(12))
    names = [program.name for program in many]
    exact = CustomTime(KNOWN, many, resident)
    off = CustomTime(KNOWN, many, resident, error=0.2)
    pair = [project_known(KNOWN, names, ITRS, "", time, exact).at("8nm", "s").geomean for time in (exact, off)]
    assert 0.85 < pair[1] / pair[0] < 1.3


@pytest.mark.parametrize("figure", ["3.5", "4.16", "4.17", "4.18", "5.6"])
def test_figures_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], figure: str) -> None:
    pytest.importorskip("matplotlib", reason="drawing is optional: pip install 'ppt_gpu[plot]'")
    picture = tmp_path / "figure.png"
    kernels = ["--kernel", "saxpy"] if figure in ("4.17", "4.18", "5.6") else []
    command = ["darksilicon", "--figure", figure, "--scaling", "itrs", *kernels]
    assert main([*command, "--plot", str(picture), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(command) == 0
    text = capsys.readouterr().out
    if kernels:
        assert document["kernels"] == ["saxpy"]
        last = document["projections"][0]["chips"][-1]
        assert (last["node"], last["kind"]) == ("8nm", "m")
        assert f"  8nm    M-cores  {last['geomean']:8.2f}" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--figure", "4.19"], "unknown figure '4.19'"),
        (["--figure", "4.16", "--kernel", "saxpy"], "--kernel: figure 4.16 has no use for it"),
        (["--figure", "4.18", "--set", "s_core.cpi=2"], "--set: figure 4.18 has no use for it"),
        (["--figure", "3.5", "--scaling", "itrs", "--scaling", "conservative"], "figure 3.5 shows one scaling"),
        (["--figure", "4.17", "--kernel", "saxpi"], "saxpi"),
        (["--figure", "4.16", "--cores", "blemm"], "unknown set of cores 'blemm'"),
        (["--kernel", "saxpy"], "--kernel: figure 3.4 has no use for it"),
    ],
)
def test_what_a_figure_cannot_do(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["darksilicon", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
