"""Quantities with units: read ("288 GB/s", "48 KiB") and printed. Base: s, B, Hz, B/s, cycle, FLOP/s, W, mm²."""

from __future__ import annotations

import re

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_PREFIXES = _DECIMAL | _BINARY

#: unit text -> (dimension, factor to the base unit)
UNITS: dict[str, tuple[str, float]] = {
    "s": ("time", 1.0),
    "ms": ("time", 1e-3),
    "us": ("time", 1e-6),
    "µs": ("time", 1e-6),
    "ns": ("time", 1e-9),
    "cycle": ("cycles", 1.0),
    "cycles": ("cycles", 1.0),
    "B/cycle": ("bytes/cycle", 1.0),
    "%": ("ratio", 0.01),
    "mm2": ("area", 1.0),
    "mm²": ("area", 1.0),
    "cm2": ("area", 100.0),
    "cm²": ("area", 100.0),
    "mW": ("power", 1e-3),
    "W": ("power", 1.0),
    "kW": ("power", 1e3),
}
for _prefix, _factor in _PREFIXES.items():
    UNITS[f"{_prefix}B"] = ("bytes", _factor)
    UNITS[f"{_prefix}B/s"] = ("bytes/s", _factor)
    UNITS[f"{_prefix}bit/s"] = ("bytes/s", _factor / 8)
for _prefix in ("", "k", "M", "G"):
    UNITS[f"{_prefix}Hz"] = ("frequency", _DECIMAL[_prefix])

#: dimension -> an example, shown when a value has the wrong unit
EXAMPLES = {
    "time": "3.5 us",
    "cycles": "9 cycles",
    "bytes": "48 KiB",
    "bytes/s": "288 GB/s",
    "bytes/cycle": "128 B/cycle",
    "frequency": "745 MHz",
    "ratio": "85 %",
    "area": "111 mm2",
    "power": "125 W",
}

_QUANTITY = re.compile(r"\s*([-+]?\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*(\S+)\s*")


def parse_quantity(text: str, dimension: str) -> float:
    """The value of `text` in the base unit of `dimension`.

    Raises ValueError that says what was expected when the number, the unit or its dimension is wrong.
    """
    match = _QUANTITY.fullmatch(text)
    expected = f'expected a quantity such as "{EXAMPLES[dimension]}"'
    if not match:
        raise ValueError(f'"{text}" is not a number with a unit; {expected}')
    number, unit = match.groups()
    if unit not in UNITS:
        raise ValueError(f'unknown unit "{unit}" in "{text}"; {expected}')
    found, factor = UNITS[unit]
    if found != dimension:
        raise ValueError(f'"{text}" measures {found}, not {dimension}; {expected}')
    return float(number.replace("_", "")) * factor


def _scaled(value: float, steps: list[tuple[float, str]], digits: int = 4) -> str:
    for size, unit in steps:
        if abs(value) >= size:
            return f"{value / size:.{digits}g} {unit}"
    size, unit = steps[-1]
    return f"{value / size:.{digits}g} {unit}"


def format_time(seconds: float) -> str:
    """2.5e-6 -> '2.5 us'."""
    return _scaled(seconds, [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")])


def format_bytes(count: float) -> str:
    """49152 -> '48 KiB'."""
    return _scaled(count, [(2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")])


def format_rate(value: float, unit: str = "B/s") -> str:
    """2.88e11 -> '288 GB/s'."""
    return _scaled(value, [(1e15, f"P{unit}"), (1e12, f"T{unit}"), (1e9, f"G{unit}"), (1e6, f"M{unit}"), (1.0, unit)])


def format_frequency(hertz: float) -> str:
    """7.45e8 -> '745 MHz'."""
    return _scaled(hertz, [(1e9, "GHz"), (1e6, "MHz"), (1.0, "Hz")], 5)


def format_count(value: float) -> str:
    """1234567 -> '1,234,567'."""
    return f"{value:,.0f}"
