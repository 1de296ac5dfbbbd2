"""Saved results, as `predict --json` writes them, and the differences of two."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ppt_gpu.common.errors import PptError
from ppt_gpu.report.result.result import SCHEMA

SEEN = 0.0005  # a smaller relative change, or one of a share, is none
NOT_COMPARED = ("sim.wall",)  # a measurement of a machine
KEYS = ("workload", "gpu", "time_s", "launches")


@dataclass(frozen=True)
class Difference:
    """One number in both results; None where a result does not have it."""

    name: str
    unit: str
    before: Any
    after: Any

    @property
    def ratio(self) -> float | None:
        """after / before, of numbers above zero."""
        if not all(isinstance(value, int | float) and value > 0 for value in (self.before, self.after)):
            return None
        return float(self.after) / float(self.before)

    @property
    def seen(self) -> bool:
        """Is it large enough to be named?"""
        if isinstance(self.before, int | float) and isinstance(self.after, int | float):
            least = SEEN if self.unit == "ratio" else SEEN * max(abs(self.before), abs(self.after))
            return abs(self.after - self.before) > least
        return bool(self.before != self.after)


@dataclass(frozen=True)
class LaunchDifferences:
    """Of one launch in both: metrics, shares of warp cycles by reason, and bounds in cycles."""

    kernel: str
    metrics: tuple[Difference, ...]
    stalls: tuple[Difference, ...]
    bounds: tuple[Difference, ...]


@dataclass(frozen=True)
class Differences:
    """Of two results: what they are of, their times in s, and their launches one by one."""

    names: tuple[str, str]
    of: tuple[str, str]  # "sgemm on k40"
    times: tuple[float, float]
    launches: tuple[LaunchDifferences, ...]
    alone: tuple[tuple[str, ...], tuple[str, ...]]  # kernels of launches that only one of them has


def read_saved(path: str) -> dict[str, Any]:
    """The document of a saved result. PptError, with the place, for a file that is none."""
    try:
        text = Path(path).read_text("utf-8-sig")
    except OSError as error:
        raise PptError(f"cannot read the file: {error.strerror}", path=path) from None
    except UnicodeDecodeError:
        raise PptError("the file is not UTF-8 text", path=path) from None
    hint = "such as ppt-gpu predict sgemm --gpu k40 --json > a.json"
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg.lower()}"
        raise PptError(message, path=path, line=error.lineno, column=error.colno, hint=hint) from None
    except RecursionError:
        raise PptError("not a saved result", path=path, hint=hint) from None
    if not isinstance(document, dict) or any(key not in document for key in KEYS):
        raise PptError("not a saved result of predict", path=path, hint=hint)
    if document.get("schema") != SCHEMA:
        message = f"its schema is {document.get('schema')}, this program's is {SCHEMA}"
        raise PptError(message, path=path, hint="save it again with this version")
    try:
        _check(document)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise PptError("a saved result that somebody changed: parts are missing or of other types", path=path) from None
    return document


def differences(first: str, second: str) -> Differences:
    """The differences of two saved results. PptError for files that are none."""
    one, other = read_saved(first), read_saved(second)
    pairs, alone = _paired(one["launches"], other["launches"])
    return Differences(
        (first, second),
        (f"{one['workload']} on {one['gpu']}", f"{other['workload']} on {other['gpu']}"),
        (float(one["time_s"]), float(other["time_s"])),
        tuple(_of_launch(a, b) for a, b in pairs),
        alone,
    )


def _check(document: Mapping[str, Any]) -> None:
    float(document["time_s"])
    for launch in document["launches"]:
        _of_launch(launch, launch)


def _paired(
    first: Sequence[Any], second: Sequence[Any]
) -> tuple[list[tuple[Any, Any]], tuple[tuple[str, ...], tuple[str, ...]]]:
    """Launches of both: by place where the numbers of launches are equal, else by kernel in order."""
    if len(first) == len(second):
        return list(zip(first, second, strict=True)), ((), ())
    left, pairs, alone = list(second), [], []
    for launch in first:
        match = next((other for other in left if other["kernel"] == launch["kernel"]), None)
        if match is None:
            alone.append(launch["kernel"])
            continue
        left.remove(match)
        pairs.append((launch, match))
    return pairs, (tuple(alone), tuple(launch["kernel"] for launch in left))


def _of_launch(one: Mapping[str, Any], other: Mapping[str, Any]) -> LaunchDifferences:
    names = (one["kernel"], other["kernel"])
    units = {item["tag"]: str(item["unit"]) for item in (*other["metrics"], *one["metrics"])}
    metrics = [{item["tag"]: item["value"] for item in each["metrics"]} for each in (one, other)]
    stalls = [{item["reason"]: float(item["share"]) for item in each["stalls"]} for each in (one, other)]
    bounds = [{item["resource"]: float(item["cycles"]) for item in each["bounds"]} for each in (one, other)]
    return LaunchDifferences(
        names[0] if names[0] == names[1] else f"{names[0]} and {names[1]}",
        _joined({key: value for key, value in units.items() if key not in NOT_COMPARED}, metrics),
        _joined(dict.fromkeys((*stalls[0], *stalls[1]), "ratio"), stalls),
        _joined(dict.fromkeys((*bounds[0], *bounds[1]), "cycles"), bounds),
    )


def _joined(units: Mapping[str, str], values: Sequence[Mapping[str, Any]]) -> tuple[Difference, ...]:
    one, other = values
    return tuple(Difference(name, unit, one.get(name), other.get(name)) for name, unit in units.items())
