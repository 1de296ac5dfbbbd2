"""The strict TOML reader: places, types, units, ranges, merging, overrides."""

import tomllib
from pathlib import Path

import pytest

from ppt_gpu.common.errors import InputErrors, PptError
from ppt_gpu.common.paths import data_dir
from ppt_gpu.spec.toml_reader import (
    Flag,
    Keyed,
    ListOf,
    Number,
    OneOf,
    Quantity,
    Table,
    TableList,
    Text,
    check,
    dotted,
    parse_override,
    parse_toml,
    read_toml,
)
from ppt_gpu.spec.toml_scan import _unquoted

TEXT = '''\
name = "x"  # comment with = and [brackets]
clock = { value = "745 MHz", source = "a \\"q\\" sheet" }
a.b."c.d" = 3
[pipes.fp32]
lanes = [1, [2,
 3], { x = 1 }]   # and a comment
[[launch]]
text = """multi
line ] }"""
[launch.sub]
key = true
[[launch]]
literal = 'C:\\no\\escape # no comment'
[[launch.inner]]
deep = 1
[[launch.inner]]
deep = 2
'''


def test_places_are_lines_and_columns() -> None:
    document = parse_toml(TEXT, "file.toml")
    found = {dotted(path): (place.line, place.column) for path, place in document.places.items()}
    assert found["name"] == (1, 1)
    assert found["clock"] == (2, 1)
    assert found["clock.source"] == (2, 30)
    assert found['a.b."c.d"'] == (3, 1)
    assert found["pipes.fp32"] == (4, 1)
    assert found["pipes.fp32.lanes"] == (5, 1)
    assert found["pipes.fp32.lanes[1]"] == (5, 13)
    assert found["pipes.fp32.lanes[1][1]"] == (6, 2)
    assert found["pipes.fp32.lanes[2].x"] == (6, 8)
    assert found["launch[0].text"] == (8, 1)
    assert found["launch[0].sub.key"] == (11, 1)
    assert found["launch[1]"] == (12, 1)
    assert found["launch[1].literal"] == (13, 1)
    assert found["launch[1].inner[1].deep"] == (17, 1)


def test_text_is_the_value_as_written() -> None:
    document = parse_toml(TEXT, "file.toml")
    assert document.place(("clock", "value")).text == "745 MHz"
    assert document.place(("clock", "source")).text == 'a "q" sheet'
    assert document.place(("launch", 1, "literal")).text == "C:\\no\\escape # no comment"
    assert document.place(("launch", 0, "text")).text == "multi\nline ] }"


def leaves(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], object]]:
    if isinstance(value, dict):
        return [(path, value)] + [leaf for key, each in value.items() for leaf in leaves(each, (*path, key))]
    if isinstance(value, list):
        return [(path, value)] + [leaf for key, each in enumerate(value) for leaf in leaves(each, (*path, key))]
    return [(path, value)]


@pytest.mark.parametrize("path", sorted(data_dir("hardware").rglob("*.toml")), ids=lambda path: path.stem)
def test_every_value_of_the_shipped_files_has_its_place(path: Path) -> None:
    document = read_toml(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    for where, value in leaves(document.data):
        assert where in document.places, dotted(where)
        place = document.places[where]
        if isinstance(value, str):
            assert place.text == value
        if where and isinstance(where[-1], str) and not isinstance(value, dict):
            written = lines[place.line - 1][place.column - 1 :]
            assert written.startswith((where[-1], f'"{where[-1]}"', f"[[{dotted(where)}]]")), dotted(where)


def test_syntax_error_has_line_and_column() -> None:
    with pytest.raises(PptError) as caught:
        parse_toml("a = 1\nb = = 2\n", "f.toml")
    assert (caught.value.path, caught.value.line, caught.value.column) == ("f.toml", 2, 5)
    with pytest.raises(PptError) as caught:
        parse_toml("a = 1\nb = [1,\n", "f.toml")
    assert caught.value.line == 3


@pytest.mark.parametrize(
    "text, line, message",
    [
        ("grid = 1\nblock = 2\ngrid = 3\n", 3, "the key grid is given twice"),
        ("[x.y]\na = 1\n[x.y]\n", 3, "cannot declare x.y twice"),
        ("x = 1\n[x]\n", 2, "the key x is given twice"),
    ],
)
def test_what_is_given_twice_has_its_name(text: str, line: int, message: str) -> None:
    with pytest.raises(PptError, match=message) as caught:
        parse_toml(text, "f.toml")
    assert caught.value.line == line and "(" not in str(caught.value)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(PptError, match="cannot read the file"):
        read_toml(tmp_path / "absent.toml")
    (tmp_path / "latin.toml").write_bytes(b'a = 1\nb = "\xe4"\n')
    with pytest.raises(PptError) as caught:
        read_toml(tmp_path / "latin.toml")
    assert caught.value.line == 2


SCHEMA = Table(
    fields={
        "name": Text(default=""),
        "count": Number(integer=True, minimum=1, maximum=8, default=1),
        "share": OneOf(
            leaves=(Number(above=0, maximum=1), Quantity(dimension="ratio")), expected="a share", default=1.0
        ),
        "size": Quantity(dimension="bytes", plain=True, integer=True, default=0),
        "clock": Quantity(dimension="frequency", above=0, default=1.0),
        "on": Flag(default=False),
        "grid": ListOf(item=Number(integer=True, minimum=1), min_items=1, max_items=3, single=True, default=(1,)),
        "mode": Text(choices=("fast", "slow"), default="fast"),
        "step": TableList(item=Table(fields={"kernel": Text()}), default=[]),
        "pipe": Keyed(item=Number(), key=lambda name: None if name.islower() else ("upper case", None), default={}),
    }
)


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ('size = "48 KiB"', "size", 49152),
        ("size = 512", "size", 512),
        ('clock = "1.5 GHz"', "clock", 1.5e9),
        ('clock = { value = "745 MHz", source = "sheet" }', "clock", 745e6),
        ('share = "85 %"', "share", 0.85),
        ("share = 0.5", "share", 0.5),
        ("grid = 4", "grid", (4,)),
        ("grid = [4, 2]", "grid", (4, 2)),
        ("count = 8", "count", 8),
        ("on = true", "on", True),
        ('[[step]]\nkernel = "a"\n[[step]]\nkernel = "b"', "step", [{"kernel": "a"}, {"kernel": "b"}]),
        ("[pipe]\nfp = 2", "pipe", {"fp": 2.0}),
    ],
)
def test_values(text: str, key: str, value: object) -> None:
    assert check(parse_toml(text, "f"), SCHEMA).finish()[key] == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("count = true", "f:1:1: count: expected an integer, not a boolean true"),
        ("count = 2.5", "f:1:1: count: expected an integer, not 2.5"),
        ("count = 9", "f:1:1: count: 9 is out of range, expected at least 1 and at most 8"),
        ("count = nan", "f:1:1: count: expected a finite number, not nan"),
        ("grid = []", "f:1:1: grid: expected 1 to 3 items, not 0"),
        ("grid = [1, 0]", "f:1:1: grid: 0 is out of range, expected at least 1"),
        ("clock = 745", 'f:1:1: clock: expected a quantity such as "745 MHz", not an integer 745'),
        ('mode = "fats"', "f:1:1: mode: unknown value \"fats\"\n  hint: did you mean 'fast'?"),
        ("step = 3", "f:1:1: step: expected tables ([[step]]), not an integer 3"),
        ("[[step]]\n", "f:1:1: missing key step[0].kernel"),
        ("[pipe]\nFP = 1", "f:2:1: upper case"),
        ("nmae = 1", "f:1:1: unknown key nmae\n  hint: did you mean 'name'?"),
        ("name = { valeu = 3 }", "unknown key name.valeu\n  hint: did you mean 'value'?"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(InputErrors) as caught:
        check(parse_toml(text, "f"), SCHEMA).finish()
    assert message in str(caught.value)


def test_all_errors_at_once_in_the_order_of_the_file() -> None:
    checked = check(parse_toml('clock = "3 s"\nbad = 1\ncount = 0\n', "f"), SCHEMA)
    checked.problem(("count",), "count and clock disagree")
    with pytest.raises(InputErrors) as caught:
        checked.finish()
    assert [error.line for error in caught.value.errors] == [1, 2, 3, 3]


def test_sources() -> None:
    checked = check(parse_toml('size = { value = "1 KiB", source = "here" }\ncount = 2\n', "f"), SCHEMA)
    assert (checked.sources["size"].text, checked.sources["size"].source, checked.sources["size"].line) == (
        "1 KiB",
        "here",
        1,
    )
    assert (checked.sources["count"].text, checked.sources["count"].source) == ("2", "")


def test_merge_replaces_leaves_and_their_sources() -> None:
    low = parse_toml('a = { value = 1, source = "old" }\n[t]\nb = 2\nc = 3\n', "low")
    top = parse_toml("a = { value = 5 }\n[t]\nc = 4\n", "top")
    merged = low.merged(top)
    assert merged.data == {"a": {"value": 5}, "t": {"b": 2, "c": 4}}
    assert (merged.place(("t", "b")).file, merged.place(("t", "c")).file) == ("low", "top")
    assert ("a", "source") not in merged.places
    assert low.data["t"]["c"] == 3, "merging must not change its inputs"


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("sm.count=30", {"sm": {"count": 30}}),
        ("dram.bandwidth=1 TB/s", {"dram": {"bandwidth": "1 TB/s"}}),
        ('op."fp32.fma".latency = 6', {"op": {"fp32.fma": {"latency": 6}}}),
        ('shared.carveouts=["0 B", 8]', {"shared": {"carveouts": ["0 B", 8]}}),
    ],
)
def test_override(text: str, data: dict[str, object]) -> None:
    assert parse_override(text).data == data


@pytest.mark.parametrize("text", ["sm.count", "=3", "sm count=3", "sm.count=", "sm..count=3"])
def test_bad_override(text: str) -> None:
    with pytest.raises(PptError, match="expected KEY=VALUE"):
        parse_override(text)


def test_errors_of_an_override_name_it() -> None:
    document = parse_toml("count = 1", "f").merged(parse_override("count=99"))
    with pytest.raises(InputErrors) as caught:
        check(document, SCHEMA).finish()
    assert str(caught.value).startswith("--set count=99: count: 99 is out of range")


def test_unquoted_agrees_with_the_standard_parser() -> None:
    for written in ('"a\\tb"', "'a\\tb'", '"""x"""'):
        assert _unquoted(written) == tomllib.loads(f"v = {written}")["v"]
