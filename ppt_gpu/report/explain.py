"""`explain`: what a metric or a stall reason means, from the registry."""

from __future__ import annotations

import json
from dataclasses import asdict

from ppt_gpu.report.metrics import REGISTRY, definition


def explain(tag: str | None, *, as_json: bool = False) -> str:
    """The definition of `tag`, or of every metric. Raises PptError with the nearest tag when it is unknown."""
    chosen = list(REGISTRY.values()) if tag is None else [definition(tag)]
    if as_json:
        metrics = [
            {"tag": d.tag, "name": d.name, "unit": d.unit, "definition": d.text, "source": d.source} for d in chosen
        ]
        return json.dumps({"schema": 1, "metrics": metrics}, indent=2, ensure_ascii=False) + "\n"
    if tag is None:
        width = max(len(d.tag) for d in chosen)
        return "".join(f"{d.tag:{width}}  {d.name}{f' [{d.unit}]' if d.unit else ''}\n" for d in chosen)
    fields = asdict(chosen[0])
    return (
        f"{fields['tag']}: {fields['name']}\n"
        f"  unit        {fields['unit'] or 'none'}\n"
        f"  definition  {fields['text']}\n"
        f"  source      {fields['source']}\n"
    )
