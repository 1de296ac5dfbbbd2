"""`calibrate`: calibrated numbers as text and JSON, each with its confidence and the launches that it rests on.

Numbers are named by the path that --set takes, and have the units of the GPU's file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ppt_gpu.spec.gpu import Gpu

_OP = re.compile(r'op\."?(?P<name>[\w.]+?)"?\.(?P<field>latency|ii)')


def value_of(gpu: Gpu, path: str) -> float:
    """The number at `path`, such as "l1.latency", "pipes.fp32.collectors" or 'op."fp32.fma".latency', in base units."""
    if match := _OP.fullmatch(path):
        return float(getattr(gpu.isa.op(match["name"]), match["field"]))
    found = gpu
    for part in path.split("."):
        found = found[part] if isinstance(found, dict) else getattr(found, part)
    return float(found)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Calibrated:
    """A number found from measurements."""

    path: str  # as --set takes it
    value: float  # in the unit
    unit: str  # "" for cycles and plain numbers
    before: float  # in the GPU's file, or its base
    low: float  # what single measurements, or the fastest and slowest repeats, ask for
    high: float
    residual: float  # mean absolute relative error of the launches at the value, the others as they are
    rests_on: tuple[str, ...]
    determined: bool = True  # False: the launches take as long whatever the number, and the value is that before

    @property
    def confidence(self) -> str:
        if not self.determined:
            return "not determined"
        return f"{shown(self.low)} to {shown(self.high)}"


def shown(value: float) -> str:
    """Four digits are more than any measurement here gives."""
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"


def to_text(title: str, found: Sequence[Calibrated]) -> str:
    """A table; what the launches do not determine last."""
    names = [f"{one.path}, {one.unit}" if one.unit else one.path for one in found]
    width = max(map(len, names))
    lines = [title, f"{'number':{width}} {'value':>9} {'before':>9}  {'confidence':18} {'residual':>8}  rests on"]
    for name, one in sorted(zip(names, found, strict=True), key=lambda pair: not pair[1].determined):
        lines.append(
            f"{name:{width}} {shown(one.value):>9} {shown(one.before):>9}  {one.confidence:18} {one.residual:8.1%}  "
            f"{', '.join(one.rests_on)}"
        )
    lines += [
        "",
        "confidence: the values that single launches or repeats ask for; residual: mean error of the launches with it",
    ]
    return "\n".join(lines) + "\n"


def to_json(gpu: str, found: Sequence[Calibrated]) -> str:
    document = {"schema": 1, "gpu": gpu, "numbers": [asdict(one) for one in found]}
    return json.dumps(document, indent=2) + "\n"
