"""Values of a parameter as text: "8:64:8", "144 GB/s:1152 GB/s:*2", "1:1000:log7", "gto,lrr", or several of these."""

from __future__ import annotations

import re
from decimal import Decimal

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.units import UNITS

MOST = 100_000  # values of one parameter
DIGITS = 4  # significant digits of values between the ends of a logarithmic range

_END = re.compile(r"\s*(?P<number>[-+]?\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*(?P<unit>[^\d\s:][^\s:]*)?\s*")
_FACTOR = re.compile(r"\s*\*\s*(?P<number>\d+(?:\.\d+)?)\s*")
_POINTS = re.compile(r"\s*log\s*(?P<number>\d+)\s*")
_HINT = "such as 8:64:8, 8:64:*2, '144 GB/s:1152 GB/s:*2', 1:1000:log7, or a list: 15,30,60"


def parse_values(text: str, label: str) -> tuple[str, ...]:
    """The values in order, each once. `label` is what messages begin with. PptError for a text that is none."""
    found: list[str] = []
    for part in _parts(text):
        if not part:
            raise PptError(f"{label}: an empty value", hint=_HINT)
        found += _range(part, label) if part.count(":") == 2 and part[0] not in "[\"'" else [part]
        if len(found) > MOST:
            raise PptError(f"{label}: more than {MOST:,} values")
    return tuple(dict.fromkeys(found))


def _parts(text: str) -> list[str]:
    """`text` between commas that stand neither in brackets nor in quotes."""
    parts, depth, quote = [""], 0, ""
    for char in text:
        if char == "," and not depth and not quote:
            parts.append("")
            continue
        parts[-1] += char
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        else:
            depth += (char in "[(") - (char in "])")
    return [part.strip() for part in parts]


def _range(text: str, label: str) -> list[str]:
    first, last, step = text.split(":")
    low, high = _END.fullmatch(first), _END.fullmatch(last)
    factor, points, plain = _FACTOR.fullmatch(step), _POINTS.fullmatch(step), _END.fullmatch(step)
    if low is None or high is None or not (factor or points or plain):
        raise PptError(f"{label}: '{text}' is not a range", hint=_HINT)
    ends = [low, high] if plain is None else [low, high, plain]
    unit = next((end["unit"] for end in ends if end["unit"]), "")
    numbers = [_in_unit(end, unit, text, label) for end in ends]
    if numbers[0] > numbers[1]:
        raise PptError(f"{label}: the range '{text}' is empty: it begins above its end", hint=_HINT)
    if plain is not None:
        values = _added(numbers[0], numbers[1], numbers[2], text, label)
    elif numbers[0] <= 0:
        raise PptError(f"{label}: the range '{text}' grows by a factor, but does not begin above zero", hint=_HINT)
    elif factor is not None:
        values = _multiplied(numbers[0], numbers[1], Decimal(factor["number"]), text, label)
    else:
        assert points is not None
        values = _logarithmic(numbers[0], numbers[1], int(points["number"]), text, label)
    return [f"{_plain(value)} {unit}".strip() for value in values]


def _in_unit(end: re.Match[str], unit: str, text: str, label: str) -> Decimal:
    """The number of an end of a range, in `unit`; without a unit of its own it is in that already."""
    number = Decimal(end["number"].replace("_", ""))
    own = end["unit"] or unit
    for each in (own, unit):
        if each and each not in UNITS:
            raise PptError(f"{label}: unknown unit \"{each}\" in '{text}'", hint=_HINT)
    if own == unit:
        return number
    if UNITS[own][0] != UNITS[unit][0]:
        raise PptError(f"{label}: '{text}' mixes {UNITS[own][0]} and {UNITS[unit][0]}", hint=_HINT)
    return (number * Decimal(repr(UNITS[own][1])) / Decimal(repr(UNITS[unit][1]))).normalize()


def _added(low: Decimal, high: Decimal, step: Decimal, text: str, label: str) -> list[Decimal]:
    if step <= 0:
        raise PptError(f"{label}: the step of '{text}' is not above zero", hint=_HINT)
    steps = int((high - low) / step)
    _bounded(steps, text, label)
    return [low + number * step for number in range(steps + 1)]


def _multiplied(low: Decimal, high: Decimal, factor: Decimal, text: str, label: str) -> list[Decimal]:
    if factor <= 1:
        raise PptError(f"{label}: the factor of '{text}' is not above one", hint=_HINT)
    found = [low]
    while found[-1] * factor <= high:
        found.append(found[-1] * factor)
        _bounded(len(found), text, label)
    return found


def _logarithmic(low: Decimal, high: Decimal, points: int, text: str, label: str) -> list[Decimal]:
    """`points` values from low to high, the logarithms evenly apart; whole where both ends are."""
    if points < 2:
        raise PptError(f"{label}: '{text}' has fewer than two values", hint=_HINT)
    _bounded(points, text, label)
    whole = low == int(low) and high == int(high)
    ratio = (high / low).ln() / (points - 1)
    between = [low * (ratio * number).exp() for number in range(1, points - 1)]
    inner = [value.quantize(Decimal(1)) if whole else Decimal(f"{value:.{DIGITS}g}") for value in between]
    return [low, *inner, high]


def _bounded(count: int, text: str, label: str) -> None:
    if count > MOST:
        raise PptError(f"{label}: '{text}' has more than {MOST:,} values")


def _plain(value: Decimal) -> str:
    """Without exponent and without zeros behind the point."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
