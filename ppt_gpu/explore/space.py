"""The configurations of a study: every combination of the values of some parameters, less those that a condition drops.

A parameter is a key of the GPU ("sm.count") or of the workload ("block", "arguments[3]"); some follow from others by
an expression. Configurations are numbered in the order of the grid: the values of the last parameter change first.

Values of a parameter as text: "8:64:8", "144 GB/s:1152 GB/s:*2", "1:1000:log7", "gto,lrr", or several of these.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from ppt_gpu.common.errors import PptError, nearest
from ppt_gpu.common.units import UNITS
from ppt_gpu.explore.expression import Expression, Value, check_names, parse_expression, text_value
from ppt_gpu.explore.hardware_keys import check_value, leaf_of, numbers_of, text_of
from ppt_gpu.explore.launch_keys import (
    FAMILIES,
    FORMS,
    PLAIN,
    SHAPES,
    check_launch_key,
    check_launch_value,
    is_launch_key,
    launch_values,
)
from ppt_gpu.inputs import extents
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.spec.gpu_schema import GPU
from ppt_gpu.workload.workload import Workload

MOST_VALUES = 100_000  # values of one parameter
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
        if len(found) > MOST_VALUES:
            raise PptError(f"{label}: more than {MOST_VALUES:,} values")
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
    if count > MOST_VALUES:
        raise PptError(f"{label}: '{text}' has more than {MOST_VALUES:,} values")


def _plain(value: Decimal) -> str:
    """Without exponent and without zeros behind the point."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


MOST = 1_000_000  # configurations


@dataclass(frozen=True)
class Parameter:
    """A key and the values that it takes, as text."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Point:
    """One configuration: its place in the grid, and the text of each parameter, those that follow last."""

    number: int
    values: Mapping[str, str]

    def overrides(self) -> tuple[str, ...]:
        """The values of the GPU, as `ppt_gpu.predict` takes them."""
        return tuple(f"{key}={text}" for key, text in self.values.items() if not is_launch_key(key))

    def launch(self) -> dict[str, str]:
        """The values of the workload."""
        return {key: text for key, text in self.values.items() if is_launch_key(key)}


@dataclass(frozen=True)
class Space:
    """Parameters, what follows from them (key, expression), conditions; and the values of everything else."""

    parameters: tuple[Parameter, ...]
    follow: tuple[tuple[str, Expression], ...]
    conditions: tuple[Expression, ...]
    base: Mapping[str, Value]

    @property
    def size(self) -> int:
        """Combinations, before conditions."""
        return math.prod(len(parameter.values) for parameter in self.parameters)

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that configurations give values, in order."""
        return (*(parameter.key for parameter in self.parameters), *(key for key, _ in self.follow))

    def point(self, number: int) -> Point:
        """The configuration of this number. PptError where an expression has no value."""
        values: dict[str, str] = {}
        rest = number
        for parameter in reversed(self.parameters):
            rest, place = divmod(rest, len(parameter.values))
            values[parameter.key] = parameter.values[place]
        values = {parameter.key: values[parameter.key] for parameter in self.parameters}
        for key, expression in self.follow:
            value = expression(self.lookup(values))
            values[key] = _launch_text(value) if is_launch_key(key) else text_of(key, value)
        return Point(number, values)

    def points(self, sample: int | None = None, seed: int = 0) -> Iterator[Point]:
        """Those that every condition admits, in order; of more than `sample` so many, chosen by `seed`."""
        numbers: Sequence[int] = range(self.size)
        if sample is not None and sample < self.size:
            numbers = sorted(random.Random(seed).sample(range(self.size), sample))
        for number in numbers:
            point = self.point(number)
            if self.admits(point):
                yield point

    def admits(self, point: Point) -> bool:
        """Do all conditions hold?"""
        value_of = self.lookup(point.values)
        return all(condition(value_of) for condition in self.conditions)

    def lookup(self, values: Mapping[str, str]) -> _Lookup:
        """What names in expressions stand for, in the configuration of these values."""
        return _Lookup(values, self.base)


@dataclass(frozen=True)
class _Lookup:
    values: Mapping[str, str]
    base: Mapping[str, Value]

    def __call__(self, name: str) -> Value:
        shape, dot, axis = name.partition(".")
        if shape in ("block", "grid") and shape in self.values:
            sizes = (*extents(shape, self.values[shape]), 1, 1)[:3]
            return sizes["xyz".index(axis)] if dot else math.prod(sizes)
        if name in self.values:
            return text_value(self.values[name])
        if shape in ("block", "grid") and not dot:
            return math.prod(int(self(f"{shape}.{each}")) for each in "xyz")
        return self.base[name]


def make_space(
    settings: Sequence[str], follow: Sequence[str], where: Sequence[str], gpu: Gpu, workload: Workload
) -> Space:
    """From "KEY=VALUES" texts, "KEY=EXPRESSION" texts and conditions, around a GPU and a workload.

    Raises PptError for unknown keys and names, values that do not fit, and grids that are too large.
    """
    parameters = tuple(_parameter(text, workload) for text in settings)
    following = tuple(_follow(text, workload) for text in follow)
    conditions = tuple(parse_expression(text, "--where") for text in where)
    keys = [parameter.key for parameter in parameters]
    base = {**numbers_of(gpu), **launch_values(workload)}
    for key, expression in following:
        check_names([expression], [*base, *keys])
        keys.append(key)
    doubled = next((key for number, key in enumerate(keys) if key in keys[:number]), None)
    if doubled is not None:
        raise PptError(f"the parameter '{doubled}' is given twice", hint="write its values as one list: KEY=1,2,4:8:1")
    check_names(conditions, [*base, *keys])
    space = Space(parameters, following, conditions, base)
    if space.size > MOST:
        raise PptError(f"{space.size:,} configurations are too many", hint=f"at most {MOST:,}; give fewer values")
    return space


def _parameter(text: str, workload: Workload) -> Parameter:
    key, label = _key(text, "--set", workload)
    values = parse_values(text.partition("=")[2], label)
    if not is_launch_key(key):
        for value in values:
            check_value(key, value, f"{label}: {value}")
    else:
        for value in values:
            check_launch_value(workload, key, value, label)
    return Parameter(key, values)


def _follow(text: str, workload: Workload) -> tuple[str, Expression]:
    key, _ = _key(text, "--let", workload)
    return key, parse_expression(text.partition("=")[2], "--let")


def _key(text: str, option: str, workload: Workload) -> tuple[str, str]:
    """(key, label for messages) of KEY=..., a key that is there."""
    key, equals, rest = text.partition("=")
    key = key.strip()
    if not key or not equals or not rest.strip():
        hint = (
            "such as --set sm.count=8:64:8"
            if option == "--set"
            else "such as --let 'grid.x=ceil(arguments[3]/block.x)'"
        )
        raise PptError(f"{option} {text}: expected KEY=...", hint=hint)
    label = f"{option} {key}"
    if is_launch_key(key):
        check_launch_key(workload, key, label)
    elif (table := key.partition(".")[0]) in GPU.fields:
        leaf_of(key, label)
    else:
        close = nearest(table, (*SHAPES, *PLAIN, *FAMILIES, *GPU.fields))
        known = f"of the launch: {', '.join(FORMS)}; or of the GPU, such as sm.count"
        raise PptError(f"{label}: unknown key '{table}'", hint=f"did you mean '{close}'?" if close else known)
    return key, label


def _launch_text(value: Value) -> str:
    return str(int(value)) if isinstance(value, float) and value == int(value) else str(value)
