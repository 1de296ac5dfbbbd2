"""Counters of a run on a CPU: their names and units, each with the place it was read from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ppt_gpu.common.errors import InputErrors, PptError, did_you_mean
from ppt_gpu.common.units import UNITS, parse_quantity
from ppt_gpu.multicore.base.operations import CLASSES, LARGEST


class Kind(NamedTuple):
    """What a counter measures: its dimension ("count", "share", "number", or a unit of common.units), its meaning."""

    dimension: str
    meaning: str
    least: float = 0.0


#: counter -> kind. `op.CLASS` and `stride_N` are allowed beside these.
COUNTERS: Mapping[str, Kind] = {
    "instructions": Kind("count", "instructions retired"),
    "uops": Kind("count", "micro-ops retired"),
    "cycles": Kind("count", "core cycles of the run, to compare with"),
    "time": Kind("time", "time of the run, to compare with"),
    "ilp": Kind("number", "operations that could start in a cycle, in the window of an out-of-order core", 1.0),
    "ilp_window2": Kind("number", "the same in a window of 2, as for an in-order core", 1.0),
    "l1_accesses": Kind("count", "loads and stores"),
    "l1_misses": Kind("count", "of these, misses of the first data cache"),
    "l2_accesses": Kind("count", "accesses of the second cache"),
    "l2_misses": Kind("count", "misses of the second cache"),
    "l3_accesses": Kind("count", "accesses of the third cache"),
    "l3_misses": Kind("count", "misses of the third cache"),
    "l3_misses_overlapped": Kind("count", "misses of the last cache while another one was under way"),
    "itlb_misses": Kind("count", "misses of the instruction TLB"),
    "dtlb_accesses": Kind("count", "accesses of the data TLB"),
    "dtlb_misses": Kind("count", "misses of the data TLB"),
    "loads": Kind("count", "loads retired"),
    "stores": Kind("count", "stores retired"),
    "fp_operations": Kind("count", "floating-point instructions retired"),
    "branches": Kind("count", "branches retired"),
    "branch_misses": Kind("count", "branches mispredicted"),
    "parallel_fraction": Kind("share", "share of the run that can be parallel"),
    "footprint": Kind("bytes", "distinct bytes of data touched"),
    "element": Kind("bytes", "bytes of a data element", 1.0),
    "simd_width": Kind("number", "elements in a SIMD register, 1 for scalar code", 1.0),
    "simd_share": Kind("share", "loads and stores that move SIMD registers"),
    "outer_iterations": Kind("count", "iterations of the outer loop, which could run side by side"),
    "inner_loops": Kind("number", "inner loops that end in an iteration of the outer loop"),
    "unroll": Kind("number", "elements (or SIMD registers) that one iteration of the outer loop works on", 1.0),
}

_STRIDE = re.compile(r"stride_(\d+|irregular)")


@dataclass(frozen=True)
class Value:
    """A counter's value in base units. `share` marks an operation that was given in per cent of all."""

    value: float
    text: str
    path: str
    line: int
    share: bool = False


@dataclass
class Counters:
    """The counters of one run, and the errors found so far."""

    path: str
    values: dict[str, Value] = field(default_factory=dict)
    errors: list[PptError] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)  # events that no model here uses

    def get(self, name: str, default: float = 0.0) -> float:
        return self.values[name].value if name in self.values else default

    def add(self, name: str, text: str, line: int, path: str | None = None, *, replace: bool = False) -> None:
        """Read `text` ("1200", "8 MiB", "35 %") as counter `name`; a mistake joins the errors."""
        place = path or self.path
        kind = kind_of(name)
        if kind is None:
            names = [*COUNTERS, *(f"op.{each}" for each in CLASSES), "stride_1", "stride_irregular"]
            self._wrong(f"unknown counter '{name}'", line, place, did_you_mean(name, names))
        elif name in self.values and not replace:
            self._wrong(f"'{name}' stands in line {self.values[name].line} already", line, place)
        else:
            try:
                value, share = _read(name, kind, text)
                self.values[name] = Value(value, text, place, line, share)
            except ValueError as error:
                self._wrong(f"{name}: {error}", line, place)

    def _wrong(self, message: str, line: int, path: str, hint: str | None = None) -> None:
        self.errors.append(PptError(message, path=path, line=line or None, hint=hint))

    def contradiction(self, name: str, message: str) -> None:
        """Add an error at the place of counter `name`."""
        value = self.values[name]
        self._wrong(message, value.line, value.path)

    def finish(self) -> Counters:
        """These counters. Raises InputErrors with every error."""
        if self.errors:
            raise InputErrors(sorted(self.errors, key=lambda error: (error.path or "", error.line or 0)))
        return self

    @property
    def operations(self) -> dict[str, float]:
        """op.* as counts by class; shares are of the micro-ops, or of the instructions where those are not known."""
        total = self.get("uops") or self.get("instructions")
        return {
            name[3:]: value.value * total if value.share else value.value
            for name, value in self.values.items()
            if name.startswith("op.")
        }

    @property
    def strides(self) -> dict[str, float]:
        """Shares of the accesses by the distance between neighbouring elements."""
        return {name[7:]: value.value for name, value in self.values.items() if name.startswith("stride_")}


def kind_of(name: str) -> Kind | None:
    """The kind of counter `name`, None for an unknown one."""
    if name.startswith("op."):
        return Kind("operations", CLASSES[name[3:]]) if name[3:] in CLASSES else None
    if _STRIDE.fullmatch(name):
        return Kind("share", "accesses whose neighbouring elements lie so many elements apart")
    return COUNTERS.get(name)


def _read(name: str, kind: Kind, text: str) -> tuple[float, bool]:
    """(value in base units, given in per cent). ValueError says what was expected."""
    bare = text.strip()
    number = _number(bare)
    percent = bare.endswith("%")
    if kind.dimension in ("share", "operations") and percent:
        number = parse_quantity(_spaced(bare), "ratio")
    elif number is None:
        if kind.dimension in ("count", "number", "share", "operations"):
            unit = UNITS.get(bare.split()[-1]) if bare.split() else None
            measures = f"measures {unit[0]}" if unit else "is not a number"
            raise ValueError(f'"{bare}" {measures}; expected {_expected(kind)}')
        number = parse_quantity(bare, kind.dimension)
    elif kind.dimension not in ("count", "number", "share", "bytes", "operations"):
        parse_quantity(bare, kind.dimension)  # says which unit is missing
    _in_range(name, kind, number, bare, percent)
    return number, percent and kind.dimension == "operations"


def _in_range(name: str, kind: Kind, number: float, text: str, percent: bool) -> None:
    if not kind.least <= number <= LARGEST:
        raise ValueError(f"{text} is out of range; expected {kind.least:g} to {LARGEST:g}")
    if (kind.dimension == "share" or percent) and number > 1:
        raise ValueError(f"{text} is more than 1; '{name}' is a share")


def _number(text: str) -> float | None:
    try:
        return float(text.replace("_", "")) if re.match(r"[-+.\d]", text) else None
    except ValueError:
        return None


def _spaced(text: str) -> str:
    return text[:-1].strip() + " %"


def _expected(kind: Kind) -> str:
    return {
        "count": "a count", "number": "a number", "share": 'a share (0.85 or "85 %")',
        "operations": 'a count, or a share of the operations in per cent ("25 %")',
    }[kind.dimension]  # fmt: skip
