"""The shipped S-cores, and what a bad core file is told."""

from pathlib import Path

import pytest

from ppt_gpu.common.errors import InputErrors, PptError
from ppt_gpu.multicore.base.core_file import list_cores, load_core
from ppt_gpu.multicore.base.operations import CLASSES


@pytest.mark.parametrize("name", list_cores())
def test_every_number_of_a_shipped_core_has_a_source(name: str) -> None:
    core = load_core(name)
    missing = [path for path, source in core.sources.items() if not source.source and not path.startswith("op.")]
    assert [path for path in missing if path not in ("base", "title", "notes")] == []
    assert set(core.operations) == set(CLASSES)


def test_the_five_cores_of_the_dissertation_are_there() -> None:
    assert {"a8", "atom", "xeon", "nehalem", "sandybridge"} <= set(list_cores())


def test_a_core_of_ones_own_is_a_few_lines_over_another(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('base = "sandybridge"\n[core]\nclock = "4 GHz"\n[op]\nfp_add = { latency = 4, uops = "p01" }\n')
    core = load_core(path, ["core.window=224"])
    assert (core.clock, core.window, core.ports) == (4e9, 224, 6)
    assert core.operations["fp_add"].uops == ((0, 1),)
    assert core.operations["fp_mul"] == load_core("sandybridge").operations["fp_mul"]


def test_all_errors_of_a_file_come_at_once(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(
        'base = "atom"\n'
        "[core]\n"
        'clock = "1.66 GB/s"\n'
        "windw = 3\n"
        "[l2]\n"
        'size = "8 KiB"\n'
        "[op]\n"
        'fp_ad = { latency = 1, uops = "p0" }\n'
        'fp_mul = { latency = 1, uops = "p7" }\n'
        'fp_add = { latency = 1, uops = "q0" }\n'
    )
    with pytest.raises(InputErrors) as caught:
        load_core(path)
    text = str(caught.value)
    for line, message in (
        (3, "measures bytes/s, not frequency"),
        (4, "unknown key core.windw"),
        (6, "l2.size 8192 is below l1.size 24576"),
        (8, "unknown operation 'fp_ad'"),
        (9, "port 7 of a core with 2 ports"),
        (10, 'is no list of micro-ops such as "p015" or "2*p0 + p5"'),
    ):
        assert any(f":{line}:" in each and message in each for each in text.splitlines()), (line, message, text)
    assert "did you mean 'fp_add'?" in text and "did you mean 'window'?" in text


@pytest.mark.parametrize(("name", "hint"), [("sandybrige", "'sandybridge'"), ("Xenon", "'xeon'")])
def test_an_unknown_core(name: str, hint: str) -> None:
    with pytest.raises(PptError, match=f"unknown core '{name}'") as caught:
        load_core(name)
    assert caught.value.hint == f"did you mean {hint}?"
