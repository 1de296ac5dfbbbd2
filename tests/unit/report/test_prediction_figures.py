"""`predict --plot`: the picture shows the numbers of the result; the same bytes each time."""

from pathlib import Path

import pytest

from ppt_gpu.cli import main
from ppt_gpu.common.errors import PptError
from ppt_gpu.pipeline import predict
from ppt_gpu.report.figures.prediction import cpi_stack, prediction_figure, stacks_figure
from ppt_gpu.report.result.result import Result

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def spmv() -> Result:
    return predict("spmv", "k40")


def test_marks_are_on_the_roofline(spmv: Result) -> None:
    roof, _ = prediction_figure(spmv).axes
    marks = {line.get_label(): line.get_xydata()[0].tolist() for line in roof.lines if len(line.get_xydata()) == 1}
    launch = spmv.launches[1]
    assert set(marks) == {"2: spmv, L2", "2: spmv, DRAM"}  # the other has no floating-point operation
    assert marks["2: spmv, DRAM"][0] == pytest.approx(launch.value("roofline.intensity"))
    assert marks["2: spmv, DRAM"][1] == pytest.approx(launch.value("roofline.achieved"))


def test_stacks_add_up(spmv: Result) -> None:
    _, stacks = prediction_figure(spmv).axes
    for number, launch in enumerate(spmv.launches):
        cpi = int(launch.extra["warp_cycles"]) / float(launch.value("sim.warp_instructions"))
        bars = [patch for patch in stacks.patches if round(patch.get_x() + patch.get_width() / 2) == number]
        assert sum(bar.get_height() for bar in bars) == pytest.approx(cpi)
        assert sum(cpi_stack(launch).values()) == pytest.approx(cpi)


def test_stacks_of_configurations(spmv: Result) -> None:
    (axis,) = stacks_figure({"k40": spmv.main, "again": spmv.main}).axes
    assert [label.get_text() for label in axis.get_xticklabels()] == ["k40", "again"]
    with pytest.raises(PptError):
        stacks_figure({})


def test_same_bytes_each_time(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.svg", "b.svg", "c.png")]
    for file in files:
        assert main(["predict", "vecadd", "--gpu", "k40", "--plot", str(file)]) == 0
    one, other, picture = (file.read_bytes() for file in files)
    assert one == other
    assert one.startswith(b"<?xml") and picture.startswith(b"\x89PNG")


def test_unknown_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "vecadd", "--gpu", "k40", "--plot", str(tmp_path / "a.bmp")]) == 2
    assert "unknown kind of picture" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
