"""`validate darksilicon`: the dissertation's statements beside ours, the sensitivities, and known cores."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ppt_gpu.cli import main
from ppt_gpu.common.errors import InputErrors, PptError
from ppt_gpu.multicore.base.device_scaling import Node, load_scaling
from ppt_gpu.multicore.dark_silicon.known_cores import KnownCore, fits, load_known_cores
from ppt_gpu.multicore.dark_silicon.known_projection import project_known
from ppt_gpu.multicore.dark_silicon.known_upper_bound import Kernels, UpperBoundTime
from ppt_gpu.multicore.dark_silicon.study import load_study
from ppt_gpu.validate.papers import dark_silicon
from ppt_gpu.validate.papers.dark_silicon import CHANGES, COLUMNS


def test_statements_as_json_and_as_text(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dark_silicon, "kernels", lambda: [])  # they run eight samples: the slow test below
    monkeypatch.setattr(dark_silicon, "CHANGES", CHANGES[:5])
    assert main(["validate", "darksilicon", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    rows = {row["case"]: row for row in document["rows"]}
    fewest = rows["fewest S-cores at 8 nm, ITRS"]
    assert (fewest["reference"], fewest["predicted"]) == (29, 29)
    assert len(document["sensitivity"]) == 5
    assert set(document["sensitivity"][0]) == {"change", *COLUMNS}
    shipped = document["sensitivity"][0]
    assert rows["fastest chips at 8 nm, ITRS"]["predicted"] == shipped["best ITRS"]
    assert len({row["best ITRS"] for row in document["sensitivity"]}) == 5
    assert main(["validate", "darksilicon", "--case", "fewest"]) == 0
    text = capsys.readouterr().out
    assert "29 cores" in text
    assert "How the figures move" not in text
    assert main(["validate", "darksilicon", "--case", "nothing like it"]) == 2


@pytest.mark.slow
def test_kernels_on_known_cores_beside_the_figures() -> None:
    """S-cores stand where the dissertation's do; its own kernels and their counters are not published."""
    rows = {row.case: row for group in dark_silicon.kernels() for row in group.statements}
    assert rows["4.17: speedup of S-cores at 8 nm, conservative"].ours == pytest.approx(5.2, rel=0.3)
    assert rows["4.17: speedup of S-cores at 8 nm, ITRS"].ours == pytest.approx(20.4, rel=0.3)
    assert rows["4.17: dark share, S-cores at 8 nm, ITRS"].ours == pytest.approx(72, abs=5)
    assert rows["4.17: kernels that choose S1 or S2"].ours == 0
    assert rows["4.17: dark share, M-cores at 8 nm, ITRS"].ours == pytest.approx(52, abs=5)


def test_figure_416_is_that_of_the_dissertation() -> None:
    """16 and 29 S4+ and 480 S1 at 8 nm (section 4.5.1); 15 S1 doubled five times are 480, the area holds 474."""
    known = load_known_cores("blem")
    for table, fewest in (("conservative", 16), ("itrs", 29)):
        last = {fit.core.name: fit for fit in fits(known, load_scaling(table)) if fit.node == "8nm"}
        assert last["S4+"].count == fewest
        assert last["S1"].count == 474
        assert not last["S1"].power_limited
        assert all(last[name].power_limited for name in ("S2", "S3", "S4", "S4+", "M2", "M3"))
    first = {fit.core.name: fit.count for fit in fits(known, load_scaling("itrs")) if fit.node == "45nm"}
    assert first["S1"] * 2**5 == 480


def test_the_fastest_known_core_is_chosen() -> None:
    known = load_known_cores("blem")
    table = load_scaling("itrs")

    def time(core: KnownCore, node: Node, count: int) -> np.ndarray:
        rate = {"S3": 2.0, "M2": 3.0}.get(core.name, 0.1)
        return np.array([1.0, 10.0]) / (rate * count * node.clock)

    found = project_known(known, ("a", "b"), table, "made up", time)
    assert {chips.cores for chips in found.chips if chips.kind == "s"} == {("S3", "S3")}
    assert {chips.cores for chips in found.chips if chips.kind == "m"} == {("M2", "M2")}
    last = found.at("8nm", "s")
    base = 0.1 * known.baseline_cores
    assert last.speedup == pytest.approx([2.0 * last.count[0] * 3.85 / base] * 2)
    assert last.geomean == pytest.approx(last.speedup[0])


def test_upper_bound_of_known_cores_follows_their_scores() -> None:
    """Nothing but arithmetic: one core is to another as their SPECmarks, 99 % of it in parallel."""
    known = load_known_cores("blem")
    nothing = np.array([0.0])
    kernels = Kernels(("sum",), np.array([1e9]), np.array([1e-3]), np.array([1.0]), nothing, lambda gpu: nothing)
    time, node = UpperBoundTime(known, kernels, load_study()), load_scaling("itrs").nodes[0]
    by_name = {core.name: core for core in known.cores}
    slow, fast = (float(time(by_name[name], node, 1)[0]) for name in ("S2", "S4"))
    assert slow / fast == pytest.approx(36.5 / 6, rel=1e-6)
    four = float(time(by_name["S4"], node, 4)[0])
    assert fast / four == pytest.approx(1 / (0.01 + 0.99 / 4), rel=1e-6)


BAD = """\
title = "two cores that are not good"
[budget]
area = "111 mm2"
power = "130 W"
bandwidth = "200 GB/s"
[baseline]
core = "S5"
cores = 4
[parallel]
s = 1.5
m = 0.99
[[core]]
name = "S1"
file = "a9"
kind = "s"
[[core]]
name = "M1"
file = "fx580"
kind = "m"
"""


def test_a_broken_set_of_cores(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(BAD)
    with pytest.raises(InputErrors) as caught:
        load_known_cores(str(tmp_path / "bad.toml"))
    text = str(caught.value)
    for part in (
        "unknown core 'a9'",
        "an SM needs its area",
        "an SM needs its power",
        "no core is named 'S5'",
        "1.5 is out",
    ):
        assert part in text


def test_a_budget_that_holds_no_known_core(tmp_path: Path) -> None:
    shipped = Path(__file__).parents[3] / "hardware" / "chips" / "blem.toml"
    text = shipped.read_text().replace('"111 mm2"', '"1 mm2"', 1)
    (tmp_path / "small.toml").write_text(text)
    with pytest.raises(PptError, match="not one core fits the budget of 130 W, 1 mm2 at 45nm"):
        fits(load_known_cores(str(tmp_path / "small.toml")), load_scaling("itrs"))
