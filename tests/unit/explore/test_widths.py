"""The tables of studies in narrow terminals: no line is longer than it, and nothing is lost."""

from pathlib import Path

import pytest

from ppt_gpu.cli import main

COMMANDS = {
    "what_if": "what-if vecadd --gpu k40 --parameter dram.bandwidth --parameter sm.count --level workload",
    "tune": "tune vecadd --gpu k40 --set block=64,2048 --level workload",
    "design": "design vecadd --gpu k40 --set sm.count=8,16 --set sm.clock=500\xa0MHz --target 1\xa0s --cost sm.count "
    "--level workload",
}


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", COMMANDS)
def test_no_line_is_too_long(
    name: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(f"ppt_gpu.commands.{name}.terminal", lambda: {"width": width, "color": False})
    assert main([word.replace("\xa0", " ") for word in COMMANDS[name].split(" ")]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    for word in {"what_if": ("dram.bandwidth",), "tune": ("block 64",), "design": ('base = "k40"', "sm.count")}[name]:
        assert word in out


def test_two_results_in_a_narrow_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for name, more in (("a", []), ("b", ["--set", "sm.count=30"])):
        assert main(["predict", "vecadd", "--gpu", "k40", "--level", "workload", "--json", *more]) == 0
        files.append(str(tmp_path / f"{name}.json"))
        Path(files[-1]).write_text(capsys.readouterr().out)
    monkeypatch.setattr("ppt_gpu.commands.compare.terminal", lambda: {"width": 60, "color": False})
    assert main(["compare", *files]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60
