"""`check` reads every file of chips beyond one SM."""

from pathlib import Path

import pytest

from ppt_gpu.cli import main
from ppt_gpu.common.paths import data_dir

EXAMPLES = Path(__file__).parents[3] / "examples" / "counters"
FILES = [
    *(
        path
        for kind in ("cores", "chips", "scaling", "studies", "suites")
        for path in data_dir("hardware").glob(f"{kind}/*.toml")
    ),
    *EXAMPLES.iterdir(),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_shipped_file(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{path}: ") and "GPU" not in out


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("core.toml", 'base = "atom"\n[op]\nfp_ad = { latency = 1, uops = "p0" }\n', "unknown operation 'fp_ad'"),
        ("run.csv", "l1_accesses,5\nl1_misses,7\n", "l1_misses is 7, more than the 5 of l1_accesses"),
        ("ir.toml", "version = 2\n[operations]\n", "version: 2 is out of range, expected at least 1 and at most 1"),
    ],
)
def test_a_bad_one(tmp_path: Path, name: str, text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_text(text)
    assert main(["check", str(tmp_path / name)]) == 2
    assert message in capsys.readouterr().err


def test_other_files_go_where_they_went(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["check", str(data_dir("hardware") / "gpus" / "k40.toml")]) == 0
    assert "GPU 'k40'" in capsys.readouterr().out
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    assert main(["check", str(tmp_path / "table.csv")]) == 2
    assert "cannot check a '.csv' file" in capsys.readouterr().err
