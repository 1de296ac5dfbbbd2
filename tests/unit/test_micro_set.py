"""The set `micro`: published numbers of GPUs, their sources, and some of them held against the simulation."""

import json
import re
from pathlib import Path

import pytest

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.paths import data_dir
from ppt_gpu.spec import load_gpu
from ppt_gpu.validate import validate
from ppt_gpu.validate.silicon import micro
from ppt_gpu.validate.silicon.micro import QUANTITIES

HEAD = "quantity,gpu,clock_mhz,value,quality,source,note\n"


def test_every_number_has_a_source_and_every_quantity_a_number() -> None:
    text = (data_dir("hardware") / "SOURCES.md").read_text(encoding="utf-8")
    known = set(re.findall(r"^\| ([A-Z][A-Z0-9]+) \|", text, re.MULTILINE))
    found = micro.published()
    assert {one.source for one in found} <= known
    assert {one.quantity for one in found} | {"atomics, one word", "atomics, own words"} == set(QUANTITIES)
    for name in {one.target.name for one in found}:
        assert load_gpu(name).compute_capability >= (3, 0)


#: what rests on one parameter or rule that other GPUs of the generation do not have
CLOSE = (
    "t4 shared read, 16 B", "t4 L1 read, 16 B", "t4 shuffle rate", "rtx4090 hfma2 rate", "a100 hfma2 rate",
    "gtx1080ti hfma2 rate", "titanx dfma rate", "h100 mma rate", "a40 mma rate", "rtx4090 mma rate", "l40 L1 latency",
    "b200 barrier, 32 warps",
)  # fmt: skip


@pytest.mark.parametrize("case", CLOSE)
def test_as_published(case: str) -> None:
    (_, row), *others = micro.pairs([case])
    assert not others and abs(row.error) < 0.1


def test_as_text_and_json() -> None:
    text = validate("micro", ["a100 launch", "v100 launch"])
    assert "FORUM3US" in text and "GBENCH" in text and "+0.0%" in text and "measured" in text
    document = json.loads(validate("micro", ["b200 copy"], as_json=True))
    (row,) = document["rows"]
    assert row["gpu"] == "b200" and row["note"] == "B300" and abs(row["error"]) < 0.01
    with pytest.raises(PptError, match="no case of 'micro'"):
        validate("micro", ["of no GPU"])


@pytest.mark.parametrize(
    ("line", "message"),
    (
        ("ffma rat,a100,,64,vendor,BPG,", "unknown quantity 'ffma rat'"),
        ("ffma rate,a100,,64,guessed,BPG,", "unknown quality 'guessed'"),
        ("ffma rate,a100,,none,vendor,BPG,", "value is 'none', expected a positive number"),
        ("ffma rate,a100,-1,64,vendor,BPG,", "clock_mhz is '-1', expected a positive number"),
    ),
)
def test_lines_that_make_no_sense(line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "micro").mkdir()
    (tmp_path / "micro" / "published.csv").write_text(HEAD + line + "\n")
    monkeypatch.setattr(micro, "data_dir", lambda _: tmp_path)
    with pytest.raises(PptError, match=re.escape(message)) as caught:
        micro.published()
    assert ":2:" in str(caught.value)
