"""The fast reader of plain TOML gives what Python's own gives, or gives it up."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppt_gpu.paths import data_dir
from ppt_gpu.spec.toml_plain import plain_toml

HARDWARE = sorted(data_dir("hardware").rglob("*.toml"))
#: written in several lines, by hand
NOT_PLAIN = {"extended"}


@pytest.mark.parametrize("path", HARDWARE, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_shipped_hardware_is_plain(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert plain_toml(text) == (None if path.stem in NOT_PLAIN else tomllib.loads(text))


KEYS = st.sampled_from(["a", "b", "a-1", "_", '"a"', '"a.b"', "'a'", "a.b", '""', "é", "1"])
PATHS = st.sampled_from(["a", "b", "a.b", "a.b.a", "b.a", " a", 'a."b"', "a..b", "1", ""])
NUMBERS = st.sampled_from(
    ["0", "-0", "+12", "007", "1_000", "0x1F", "1.5", "-0.0", "1e3", "1E-03", "1.", ".5", "1.5e", "inf", "nan"]
)
WORDS = st.sampled_from(
    ["true", "false", "True", "trueish", '""', '"text"', '"# }],"', '"a\\n"', '"tab\t"', '"""x"""', "'x'", '"é"', '"']
)
OTHERS = st.sampled_from(
    ["1979-05-27", "07:32:00", "1979-05-27 07:32:00Z", "[", "]", "{", "}", "", "1 2", "\x01", '"\x7f"']
)
SCALARS = NUMBERS | WORDS | OTHERS
SPACE = st.sampled_from(["", " ", "\t", " \t "])


def _array(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    parts = st.lists(st.tuples(SPACE, values, SPACE).map("".join), max_size=3)
    return st.tuples(parts, st.sampled_from(["", ",", " , ", ",,"]), SPACE).map(
        lambda made: f"[{','.join(made[0])}{made[1]}{made[2]}]"
    )


def _inline(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(SPACE, KEYS, SPACE, st.just("="), SPACE, values, SPACE).map("".join)
    parts = st.lists(pair, max_size=3)
    return st.tuples(parts, st.sampled_from(["", "", ","])).map(lambda made: f"{{{','.join(made[0])}{made[1]}}}")


VALUES = st.recursive(SCALARS, lambda inner: _array(inner) | _inline(inner), max_leaves=5)
COMMENT = st.sampled_from(["", "", "# text", "#", "#\x01", "x", "# é ]}"])
LINES = st.one_of(
    st.tuples(SPACE, KEYS, SPACE, st.just("="), SPACE, VALUES, SPACE, COMMENT).map("".join),
    st.tuples(SPACE, st.just("["), PATHS, st.just("]"), SPACE, COMMENT).map("".join),
    st.tuples(SPACE, st.just("[["), PATHS, st.just("]]"), SPACE, COMMENT).map("".join),
    st.tuples(SPACE, COMMENT).map("".join),
)


@given(st.lists(LINES, max_size=7).map("\n".join))
def test_what_is_read_is_what_pythons_parser_reads(text: str) -> None:
    found = plain_toml(text)
    if found is None:
        return
    assert repr(found) == repr(tomllib.loads(text))  # which tells 1 from 1.0 and True, and keeps the order


@given(st.text(alphabet='ab=."[]{},# \n\t01-+e\\', max_size=40))
def test_no_other_text_is_read_otherwise(text: str) -> None:
    found = plain_toml(text)
    if found is not None:
        assert repr(found) == repr(tomllib.loads(text))


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("[a]\nx = 1\n[a.b]\ny = [1, 2,]\n", {"a": {"x": 1, "b": {"y": [1, 2]}}}),
        ("[a.b]\nx = 1\n[a.c]\n", {"a": {"b": {"x": 1}, "c": {}}}),
        ("[[a]]\nx = 1\n[a.b]\n[[a]]\n[a.b]\ny = 2\n", {"a": [{"x": 1, "b": {}}, {"b": {"y": 2}}]}),
        ("[[a]]\n[[a.b]]\n[[a.b]]\nx = 1\n[[a]]\n[[a.b]]\n", {"a": [{"b": [{}, {"x": 1}]}, {"b": [{}]}]}),
        ('x = { value = 1.5, "a.b" = [true, { c = "d" }] } # why', {"x": {"value": 1.5, "a.b": [True, {"c": "d"}]}}),
        ("", {}),
    ],
)
def test_plain_documents_are_read(text: str, data: dict) -> None:
    assert plain_toml(text) == data == tomllib.loads(text)
