"""Numbers as reports show them."""

from __future__ import annotations

from collections.abc import Callable

from ppt_gpu.common.units import format_bytes, format_count, format_frequency, format_rate, format_time
from ppt_gpu.report.result.result import LaunchResult, Metric

_BY_UNIT: dict[str, Callable[[float], str]] = {
    "s": format_time,
    "B": format_bytes,
    "B/s": format_rate,
    "FLOP/s": lambda value: format_rate(value, "FLOP/s"),
    "Hz": format_frequency,
    "ratio": lambda value: f"{value:.1%}",
}


def value_text(item: Metric) -> str:
    """A metric with its unit."""
    if isinstance(item.value, str):
        return item.value
    if item.unit in _BY_UNIT:
        return _BY_UNIT[item.unit](item.value)
    text = format_count(item.value) if isinstance(item.value, int) or item.value >= 1000 else f"{item.value:.3g}"
    return f"{text} {item.unit}".rstrip()


def value_of(launch: LaunchResult, tag: str) -> float:
    """A metric as a number; 0 where it says that there is none."""
    value = launch.value(tag)
    return 0.0 if isinstance(value, str) else float(value)


def metric_text(launch: LaunchResult, tag: str) -> str:
    """Metric `tag` with its unit."""
    return value_text(next(item for item in launch.metrics if item.tag == tag))


def percent(share: float) -> str:
    """0.123 -> '12 %'; below 1 %, one digit more."""
    return f"{share:.0%}" if share >= 0.0095 or share == 0 else f"{share:.1%}"
