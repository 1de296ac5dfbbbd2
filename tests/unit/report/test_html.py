"""`predict --html`: one page, well formed, self-contained, accessible, the same bytes each time, and true."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from wellformed import Page

from ppt_gpu.cli import main
from ppt_gpu.pipeline import predict
from ppt_gpu.report.html.occupancy import Need, curves
from ppt_gpu.report.html.page import to_html
from ppt_gpu.report.html.palette import PAIRS, STALLS, THEME, contrast
from ppt_gpu.report.html.svg import Frame, Scale
from ppt_gpu.report.html.tags import Markup, join, tag
from ppt_gpu.report.result.result import Result, Suggestion
from ppt_gpu.report.result.stall_reasons import MEANINGS
from ppt_gpu.scale.occupancy.occupancy import occupancy
from ppt_gpu.scale.occupancy.rules import OccupancyLimits
from ppt_gpu.sm.program.result import STALL_REASONS
from ppt_gpu.sm.reference.recording import Window
from ppt_gpu.spec import load_gpu

SECTIONS = ("bounds", "stalls", "roofline", "memory", "occupancy", "source", "pipes", "warps", "made")
#: limited by DRAM; by latency, with atomics; two launches, one without floating point
KERNELS = (("vecadd", "a100"), ("histogram", "a100"), ("spmv", "k40"))


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    return {name: predict(name, gpu, window=Window(0, 100)) for name, gpu in KERNELS}


@pytest.fixture(scope="module")
def vecadd(results: dict[str, Result]) -> Result:
    return results["vecadd"]


@pytest.mark.parametrize("name", [name for name, _ in KERNELS])
def test_page_is_whole(name: str, results: dict[str, Result]) -> None:
    page = Page(to_html(results[name]))
    several = len(results[name].launches) > 1
    wanted = [f"launch{n}-{part}" if several else part for n in range(1 + several) for part in SECTIONS]
    assert set(wanted) <= set(page.ids)
    anchors = [reference[1:] for reference in page.references if reference.startswith("#")]
    assert set(anchors) <= set(page.ids)
    assert "Limited by " + str(results[name].main.value("limiter")) in page.text()


@pytest.mark.parametrize("name", [name for name, _ in KERNELS])
def test_page_needs_nothing_else(name: str, results: dict[str, Result]) -> None:
    text = to_html(results[name])
    page = Page(text)
    assert all(reference.startswith("#") or reference == "data:," for reference in page.references)
    assert not re.search(r"https?:|//[a-z]|@import|url\(", text.replace("\n//", "\n"))
    assert len(page.all("script")) == len(page.all("style")) == 1


def test_page_is_accessible(vecadd: Result) -> None:
    page = Page(to_html(vecadd))
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("h1")) == len(page.all("main")) == len(page.all("nav")) == 1
    assert all(svg["role"] == "img" and svg["aria-label"] for svg in page.all("svg"))
    assert len(page.all("title")) > len(page.all("svg"))
    regions = [attributes for _, attributes in page.elements if attributes.get("role") == "region"]
    assert regions and all(region["tabindex"] == "0" and region["aria-label"] for region in regions)
    assert len(page.all("caption")) == len(page.all("table")) - 1  # the source is named by its region
    assert all(head["scope"] in ("col", "row") for head in page.all("th"))
    assert page.all("meta")[1]["content"] == "width=device-width, initial-scale=1"
    levels = [int(name[1]) for name, _ in page.elements if re.fullmatch("h[1-6]", name)]
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_contrast_of_both_themes() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    for theme in (0, 1):
        for front, back, least in PAIRS:
            assert contrast(THEME[front][theme], THEME[back][theme]) >= least, (front, back, theme)
        for reason, colours in STALLS.items():
            assert contrast(colours[theme], THEME["card"][theme]) >= 3.0, (reason, theme)
        assert len({colours[theme] for colours in STALLS.values()}) == len(STALL_REASONS)


def test_every_stall_reason_is_explained() -> None:
    assert tuple(MEANINGS) == STALL_REASONS


def test_names_are_escaped(vecadd: Result) -> None:
    evil = '</script><b>&"quoted"\'</b>'
    detail = vecadd.main.detail
    assert detail is not None
    lines = tuple(replace(line, text=evil) for line in detail.source)
    launch = replace(
        vecadd.main, kernel=evil, assumptions=(evil,), warnings=(evil,), detail=replace(detail, source=lines)
    )
    page = Page(to_html(replace(vecadd, workload=evil, gpu=evil, launches=(launch,))))
    assert page.all("b") == []
    assert len(page.all("script")) == 1
    assert evil in page.text("h1")
    assert page.text("td").count(evil) >= len(lines)


def test_same_bytes_each_time(vecadd: Result, tmp_path: Path) -> None:
    found = []
    for name in ("a.html", "b.htm"):
        file = tmp_path / name
        assert main(["predict", "vecadd", "--gpu", "a100", "--html", str(file), "--window", "0:100"]) == 0
        found.append(file.read_text())
    assert found[0] == found[1] == to_html(vecadd)


def test_numbers_are_those_of_the_result(vecadd: Result) -> None:
    page = Page(to_html(vecadd))
    detail, recording = vecadd.main.detail, vecadd.main.recording
    assert detail is not None and recording is not None
    executed = [line for line in detail.source if line.issued]
    rows = [row["id"] for row in page.all("tr") if "id" in row]
    assert rows == [f"line{line.line}" for line in executed]
    assert sum(line.issued for line in executed) == vecadd.main.value("sim.warp_instructions")
    assert sum(line.warp_cycles for line in executed) == vecadd.main.extra["warp_cycles"]
    drawn = sum(int(n) for path in page.all("path") if "data-reason" in path for n in re.findall(r"h(\d+)v", path["d"]))
    slots = sorted(set(recording.spans[:, 0].tolist()))[:12]
    assert drawn == sum(s[4] for s in recording.spans.tolist() if s[0] in slots)
    for item in vecadd.main.metrics:
        assert (item.tag in page.text("th")) == (item.tag != "sim.wall")


def test_result_without_details_has_what_is_known(vecadd: Result) -> None:
    bare = replace(vecadd, launches=(replace(vecadd.main, detail=None, recording=None),))
    assert "bounds" in Page(to_html(bare)).ids


def test_occupancy_curves_are_the_rules() -> None:
    gpu = load_gpu("k40")
    registers, shared, threads = curves(OccupancyLimits.of(gpu), Need(256, 60, 2048))
    assert occupancy(gpu, 256, 60, 2048).warps_per_sm == 32
    assert registers.step == (48, 40)
    assert occupancy(gpu, 256, 48, 2048).warps_per_sm == 40 > occupancy(gpu, 256, 49, 2048).warps_per_sm
    for curve, of in ((registers, lambda v: (256, v, 2048)), (shared, lambda v: (256, 60, v)),
                      (threads, lambda v: (v, 60, 2048))):  # fmt: skip
        for value, warps in curve.points:
            if warps:
                assert occupancy(gpu, *of(value)).warps_per_sm == warps


@pytest.mark.parametrize(
    "scale", [Scale(0, 64, 0, 100), Scale(0, 255, 0, 100), Scale(0.02, 1.5, 0, 100), Scale(0.003, 4e5, 0, 100, True)]
)
def test_ticks_are_round_and_inside(scale: Scale) -> None:
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 8
    assert all(scale.low - 1e-9 <= tick <= scale.high + 1e-9 for tick in ticks)
    assert [scale(tick) for tick in ticks] == sorted(scale(tick) for tick in ticks)
    assert (scale(scale.low), scale(scale.high), scale(scale.high * 2)) == (0, 100, 100)


def test_frame_turns_upside_down() -> None:
    up = Frame(100, 100).up(0, 1)
    assert up(0) > up(1)


def test_tags() -> None:
    assert tag("p", "a < b", tag("br"), class_="x", hidden=True, title=None) == '<p class="x" hidden>a &lt; b<br></p>'
    assert tag("i", aria_label='"&') == '<i aria-label="&quot;&amp;"></i>'
    assert tag("rect", x=1.0, y=2.50001, width=-0.0001) == '<rect x="1" y="2.5" width="0"></rect>'
    assert isinstance(join("a", Markup("<b>")), Markup)


@pytest.mark.parametrize("name, expected", [("out.txt", ".html or .htm"), ("no/out.html", "there is no folder 'no'")])
def test_bad_targets(
    name: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["predict", "vecadd", "--gpu", "k40", "--html", name]) == 2
    assert expected in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_advice(vecadd: Result) -> None:
    assert 'id="advice"' not in to_html(vecadd)
    said = Suggestion("blocks of <64> threads", 1.5e-3, 1.25, "ptxas: 32 registers")
    page = to_html(replace(vecadd, advice=(said,)))
    assert 'href="#advice"' in page and "blocks of &lt;64&gt; threads (ptxas: 32 registers)" in page
    assert "1.25x" in page and "1.5 ms" in page
    assert "None of the changes that were simulated makes it faster" in to_html(replace(vecadd, advice=()))
