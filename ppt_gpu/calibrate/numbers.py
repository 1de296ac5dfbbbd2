"""Numbers of a GPU by the path that --set takes, in the units of its file."""

from __future__ import annotations

import re

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
