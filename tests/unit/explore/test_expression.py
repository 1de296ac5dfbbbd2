"""Expressions over parameters: their values, what they refuse, and that nothing in them is run."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppt_gpu.common.errors import PptError
from ppt_gpu.explore.expression import check_names, parse_expression, text_value

VALUES = {"sm.count": 15, "dram.bandwidth": 288e9, "block.x": 128, "arguments[3]": 1000, "sm.policy": "gto", "n": 3}


def value(text: str) -> object:
    return parse_expression(text, "--where")(VALUES.__getitem__)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sm.count*4 <= 256", True),
        ("sm.count*4 <= 59", False),
        ("dram.bandwidth == '288 GB/s'", True),
        ("dram.bandwidth / '1 GB/s'", 288.0),
        ("ceil(arguments[3] / block.x)", 8),
        ("sm.policy == 'gto'", True),
        ("not sm.policy == 'lrr'", True),
        ("sm.policy != 'gto' or 1 < n <= 3", True),
        ("sm.count > 20 and n", False),
        ("min(sm.count, 4, n) + -n", 0),
        ("2**10 % 1000 // 7", 3),
        ("log2(64) + sqrt(16) + abs(-1) + floor(2.7) + round(2.6) + max(1, 2)", 18.0),
    ],
)
def test_values(text: str, expected: object) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__import__('os').system('ls')", "not allowed"),
        ("().__class__.__bases__", "not allowed"),
        ("[1 for _ in n]", "not allowed"),
        ("(lambda: 1)()", "not allowed"),
        ("open('x')", "unknown function 'open'"),
        ("celi(n)", "did you mean 'ceil'"),
        ("f'{n}'", "not allowed"),
        ("n if n else n", "not allowed"),
        ("n := 3", "not an expression"),
        ("n <", "not an expression"),
        ("min(*n)", "not allowed"),
        ("round(n, ndigits=2)", "not allowed"),
        ("1/0", "division by zero"),
        ("sm.policy + 1", "'gto' is not a number"),
        ("sm.policy < 3", "cannot compare"),
        ("9**9**9**9", "--where 9**9**9**9: "),
        ("1e200*1e200", "too large"),
        ("(-8)**0.5", "root of a negative"),
        ("sqrt(-1)", "--where sqrt(-1): "),
        ("-" * 100 + "1", "operations within one another"),
        ("(" * 300 + "1" + ")" * 300, "not an expression"),
        ("1+" * 1500 + "1", "characters"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(PptError) as caught:
        value(text)
    assert message in str(caught.value)


def test_names() -> None:
    expression = parse_expression("sm.count + arguments[3]*sm.count", "--let")
    assert expression.names == ("sm.count", "arguments[3]")
    check_names([expression], VALUES)
    with pytest.raises(PptError, match=r"--let sm.cont: unknown parameter 'sm.cont'\n  hint: did you mean 'sm.count'"):
        check_names([parse_expression("sm.cont", "--let")], VALUES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("15", 15), ("0.5", 0.5), ("48 KiB", 49152), ("745 MHz", 745e6), ("gto", "gto"), ("8x8", "8x8")],
)
def test_texts(text: str, expected: object) -> None:
    assert text_value(text) == expected


@given(st.text(alphabet="n.sm()[]+-*/<>= 0123456789'\"andorit,:\n\\", max_size=40))
def test_any_text_is_a_value_or_one_error(text: str) -> None:
    try:
        found = value(text)
    except (PptError, KeyError):
        return
    assert isinstance(found, str | bool | int) or math.isfinite(found)  # type: ignore[arg-type]
