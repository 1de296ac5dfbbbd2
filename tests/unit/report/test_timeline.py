"""`predict --timeline`: a file that viewers can read, with what the recording holds, the same bytes each time."""

import gzip
from pathlib import Path

import pytest
from trace_format import names, read, spans

from ppt_gpu.cli import main
from ppt_gpu.pipeline import predict
from ppt_gpu.report.result.result import Result
from ppt_gpu.report.timeline.timeline import APPLICATION, MEMORY, PER_LAUNCH, PIPES, SCHEDULERS, WARPS, runs
from ppt_gpu.sm.reference.recording import Window


@pytest.fixture(scope="module")
def result() -> Result:
    return predict("vecadd", "k40", window=Window(100, 200))


def written(folder: Path, name: str, *more: str) -> Path:
    file = folder / name
    assert main(["predict", "vecadd", "--gpu", "k40", "--timeline", str(file), *more]) == 0
    return file


def test_file_holds_the_recording(tmp_path: Path, result: Result) -> None:
    document = read(written(tmp_path, "sm.json.gz", "--window", "100:200"))
    recording = result.main.recording
    assert recording is not None
    first = PER_LAUNCH
    title = "vecadd on k40: copies and launches"
    assert [names(document)[p] for p in (APPLICATION, first + WARPS)] == [title, "vecadd: warps of one SM"]
    assert len(spans(document, first + SCHEDULERS)) == len(spans(document, first + PIPES)) == len(recording.issues)
    warps = spans(document, first + WARPS)
    assert sum(event["dur"] for event in warps) == recording.spans[:, 4].sum()
    flying = [e for e in document["traceEvents"] if e["ph"] == "b" and e["pid"] == first + MEMORY + 1]
    loads = [op for *_, op, _ in recording.issues.tolist() if recording.op_name[op] == "load.global"]
    assert len(flying) >= len(loads) > 0
    sources = {event["args"]["source"] for event in spans(document, first + SCHEDULERS)}
    assert any(source.startswith("ld.global.f32") for source in sources)


def test_metadata_say_what_the_window_is(tmp_path: Path) -> None:
    about = read(written(tmp_path, "sm.json", "--window", "100:200"))["otherData"]
    assert about["launch 0"].startswith("cycles 100 to 300 of the simulation of ")
    assert about["time axis"] == "1 us is drawn for 1 cycle of the SM clock, 745 MHz"


def test_application_is_drawn_in_cycles(tmp_path: Path, result: Result) -> None:
    parts = spans(read(written(tmp_path, "sm.json", "--window", "0:100")), APPLICATION)
    clock = float(result.main.value("gpu.clock"))
    assert max(part["ts"] + part["dur"] for part in parts) == pytest.approx(result.time * clock, abs=1)
    assert [part["name"] for part in parts if part["tid"] == 2] == ["vecadd"]
    assert len(result.spans) == len(parts) == 1 + len(result.copies)


def test_times_are_whole_cycles(tmp_path: Path) -> None:
    """Viewers round to nanoseconds, and drop spans that overlap after that."""
    file = tmp_path / "spmv.json"
    assert main(["predict", "spmv", "--gpu", "k40", "--timeline", str(file), "--window", "0:100"]) == 0
    events = [event for event in read(file)["traceEvents"] if event["ph"] != "M"]
    assert {type(event[key]) for event in events for key in ("ts", "dur") if key in event} == {int}


def test_same_bytes_each_time(tmp_path: Path) -> None:
    one, other = (written(tmp_path, f"{name}.json.gz", "--window", "0:60").read_bytes() for name in "ab")
    assert one == other
    plain = written(tmp_path, "a.json", "--window", "0:60").read_bytes()
    assert gzip.decompress(one) == plain


def test_task_list_and_an_end_inside_the_window(tmp_path: Path) -> None:
    file = tmp_path / "triad.json"
    task_list = str(Path(__file__).parents[3] / "tasklists" / "triad.tl")
    assert main(["predict", task_list, "--gpu", "k40", "--grid", "15", "--timeline", str(file)]) == 0
    document = read(file)
    assert "to their end of the simulation of 1 block (number 0)" in document["otherData"]["launch 0"]


@pytest.mark.parametrize(
    "more, expected",
    [
        (("--timeline", "sm.trace"), ".json or .json.gz"),
        (("--timeline", "missing/sm.json"), "there is no folder 'missing'"),
        (("--timeline", "folder.json"), "this is a folder"),
        (("--timeline", "sm.json", "--window", "5"), "expected FIRST:CYCLES"),
        (("--timeline", "sm.json", "--window", "0:0"), "at least 1 cycle"),
        (("--timeline", "sm.json", "--window", "999000:10"), "have ended after"),
        (("--window", "0:100"), "nothing shows a timeline"),
    ],
)
def test_bad_arguments_write_nothing(
    more: tuple[str, ...],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.json").mkdir()
    size = ("--grid", "15") if "have ended" in expected else ()
    name = str(Path(__file__).parents[3] / "tasklists" / "triad.tl") if size else "vecadd"
    assert main(["predict", name, "--gpu", "k40", *size, *more]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ") and expected in err
    assert [path.name for path in tmp_path.iterdir()] == ["folder.json"]


def test_runs() -> None:
    assert runs([False, True, True, False, True]) == [(1, 3), (4, 5)]
    assert runs([]) == []
