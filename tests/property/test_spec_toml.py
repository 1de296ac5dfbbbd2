"""Properties of units and of the TOML scanner."""

import string

from hypothesis import given
from hypothesis import strategies as st

from ppt_gpu.common import units
from ppt_gpu.spec.toml_reader import parse_toml

EXACT = st.integers(1, 2**40)


@given(EXACT, st.sampled_from(sorted(units.UNITS)))
def test_a_quantity_reads_back(number: int, unit: str) -> None:
    dimension, factor = units.UNITS[unit]
    assert units.parse_quantity(f"{number} {unit}", dimension) == number * factor
    assert units.parse_quantity(f" {number}{unit} ", dimension) == number * factor


@given(st.floats(1e-3, 1e15))
def test_formatted_values_read_back_within_their_digits(value: float) -> None:
    for text, dimension in (
        (units.format_bytes(max(value, 1.0)), "bytes"),
        (units.format_rate(max(value, 1.0)), "bytes/s"),
        (units.format_frequency(max(min(value, 1e13), 1.0)), "frequency"),
    ):
        expected = max(min(value, 1e13), 1.0) if dimension == "frequency" else max(value, 1.0)
        assert abs(units.parse_quantity(text, dimension) - expected) <= 6e-4 * expected


KEYS = st.text(string.ascii_letters + string.digits + "_-. #\"'=[]{}é", min_size=1, max_size=8)
SCALARS = st.one_of(
    st.integers(-(2**31), 2**31),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(string.printable.replace("\x0b", "").replace("\x0c", "").replace("\r", ""), max_size=12),
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))


def quoted(text: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
    return '"' + "".join(escapes.get(each, each) for each in text) + '"'


def written(value: object) -> str:
    """The value on one line of TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return "[" + ", ".join(written(each) for each in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(key)} = {written(each)}" for key, each in value.items()) + "}"
    return repr(value)


@given(st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, max_size=4), max_size=4), st.integers(0, 2))
def test_every_key_is_found_on_its_line(tables: dict[str, dict[str, object]], gap: int) -> None:
    lines: list[str] = []
    expected: dict[tuple[str, ...], int] = {}
    for table, rows in tables.items():
        lines += [""] * gap + [f"[{quoted(table)}]  # comment"]
        expected[(table,)] = len(lines)
        for key, value in rows.items():
            lines.append(f"  {quoted(key)}= {written(value)} # comment")
            expected[(table, key)] = len(lines)
    document = parse_toml("\n".join(lines), "f")
    assert document.data == tables
    assert {path: place.line for path, place in document.places.items() if path in expected} == expected
    for path in expected:
        assert document.places[path].column == (1 if len(path) == 1 else 3)
