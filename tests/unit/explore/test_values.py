"""Ranges and lists of values, as text."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppt_gpu.common.errors import PptError
from ppt_gpu.explore.space import parse_values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("15", ("15",)),
        ("8:64:8", tuple(str(n) for n in range(8, 65, 8))),
        ("8:20:8", ("8", "16")),
        ("8:64:*2", ("8", "16", "32", "64")),
        ("0.1:0.5:0.1", ("0.1", "0.2", "0.3", "0.4", "0.5")),
        ("144 GB/s:576 GB/s:*2", ("144 GB/s", "288 GB/s", "576 GB/s")),
        ("144:432:144 GB/s", ("144 GB/s", "288 GB/s", "432 GB/s")),
        ("500 MHz:1 GHz:0.25 GHz", ("500 MHz", "750 MHz", "1000 MHz")),
        ("1:1000:log4", ("1", "10", "100", "1000")),
        ("0.5:2:log3", ("0.5", "1", "2")),
        ("1:4:log8", ("1", "2", "3", "4")),  # whole numbers between whole ends, each once
        ("gto, lrr", ("gto", "lrr")),
        ("288 GB/s,576 GB/s", ("288 GB/s", "576 GB/s")),
        ("64,128:256:64,64", ("64", "128", "192", "256")),
        ("[0, 16384],[0, 32768]", ("[0, 16384]", "[0, 32768]")),
        ('"a,b",c', ('"a,b"', "c")),
        ("32x8,16x16", ("32x8", "16x16")),
    ],
)
def test_values(text: str, expected: tuple[str, ...]) -> None:
    assert parse_values(text, "--set k") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("64:8:8", "is empty: it begins above its end"),
        ("8:64:0", "is not above zero"),
        ("8:64:*1", "is not above one"),
        ("0:64:*2", "does not begin above zero"),
        ("8:64:x", "unknown unit|is not a range"),
        ("a:b:c", "is not a range"),
        ("1:2:log1", "fewer than two values"),
        ("1:1000000000:1", "more than 100,000 values"),
        ("1 GB/s:2 GHz:*2", "mixes"),
        ("1 Gb/s:2 Gb/s:*2", 'unknown unit "Gb/s"'),
        ("8,,9", "an empty value"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(PptError, match=message) as caught:
        parse_values(text, "--set k")
    assert str(caught.value).startswith("--set k: ")


@given(st.integers(1, 500), st.integers(0, 2000), st.integers(1, 50), st.integers(0, 2))
def test_steps_are_exact(low: int, more: int, step: int, digits: int) -> None:
    """However small the step: no value is off by a rounding error, none beyond the end."""
    unit = Fraction(1, 10**digits)
    texts = parse_values(":".join(f"{n / 10**digits:.{digits}f}" for n in (low, low + more, step)), "")
    assert [Fraction(text) for text in texts] == [(low + n * step) * unit for n in range(more // step + 1)]
