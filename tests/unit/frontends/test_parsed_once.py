"""The module of the last text is kept; a file that changed is read anew."""

from pathlib import Path

import pytest

from ppt_gpu.frontends import prepare
from ppt_gpu.frontends.prepare import read_module
from ppt_gpu.ptx.module import Module
from ppt_gpu.workload.workload import Workload

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def module_of(path: Path, assume: tuple[str, ...] = ()) -> Module:
    return read_module(Workload("k", str(path), str(path), ()), assume=assume).module


def test_a_text_is_parsed_once_and_anew_where_it_changed(tmp_path: Path) -> None:
    path, other = tmp_path / "k.ptx", tmp_path / "other.ptx"
    path.write_text(HEAD + ".entry one() { ret; }\n")
    first = module_of(path)
    assert module_of(path) is first
    assert module_of(path, ("made.up=fp32",)) is not first
    path.write_text(HEAD + ".entry two() { ret; }\n")
    assert list(module_of(path).kernels) == ["two"]
    other.write_text(path.read_text())
    assert module_of(other).path == str(other)  # which messages name


def test_long_texts_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "KEPT_TEXT", 10)
    path = tmp_path / "k.ptx"
    path.write_text(HEAD + ".entry one() { ret; }\n")
    assert module_of(path) is not module_of(path)
