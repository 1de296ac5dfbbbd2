"""`explain`: what a metric, a stall reason or an analytical model is, and where it comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.report.result.metrics import REGISTRY
from ppt_gpu.report.result.stall_reasons import MEANINGS
from ppt_gpu.report.text.listing import listing

MODELS = "models"  # the word that lists them


def explain(name: str | None, *, as_json: bool = False, width: int = 120) -> str:
    """What `name` is; of None, every metric and stall reason; of "models", every model. `width`: columns.

    Raises PptError with the nearest name when it is unknown.
    """
    if name is None:
        chosen = {"metrics": list(REGISTRY), "stall_reasons": list(MEANINGS)}
    elif name in REGISTRY:
        chosen = {"metrics": [name]}
    elif name in MEANINGS:
        chosen = {"stall_reasons": [name]}
    else:
        chosen = {"models": _models(name)}
    entries = {kind: [_entry(kind, item) for item in items] for kind, items in chosen.items()}
    if as_json:
        return json.dumps({"schema": 1, **entries}, indent=2, ensure_ascii=False) + "\n"
    if name is None or name == MODELS:
        text = "\n".join(
            listing(((next(iter(e.values())), _said(e)) for e in items), width) for items in entries.values()
        )
        return text if name else text + "\n`explain models` lists the analytical models.\n"
    (entry,) = next(iter(entries.values()))
    (_, called), *rest = ((label, text or "none") for label, text in entry.items() if label != "name")
    title = f"{called}: {entry['name']}" if "name" in entry else called
    return f"{title}\n{listing(((f'  {label}', text) for label, text in rest), width)}"


def _models(name: str) -> list[str]:
    """The models of that name. PptError when nothing has it."""
    from ppt_gpu.models.registry import models

    known = [model.name for model in models()]
    if name == MODELS:
        return known
    if name not in known:
        hint = did_you_mean(name, [*REGISTRY, *MEANINGS, *known])
        raise PptError(f"unknown metric '{name}'", hint=hint or "`explain` lists them all")
    return [name]


def _entry(kind: str, name: str) -> dict[str, str]:
    if kind == "metrics":
        known = REGISTRY[name]
        return {"tag": name, "name": known.name, "unit": known.unit, "definition": known.text, "source": known.source}
    if kind == "stall_reasons":
        did, helps = MEANINGS[name]
        return {"reason": name, "the warp": did, "what helps": helps}
    from ppt_gpu.models.registry import find_model

    model = find_model(name)
    with_numbers = f"ppt-gpu compare WORKLOAD --gpu GPU --explain {name}"
    return {"model": name, "name": model.title, "source": model.source, "with numbers": with_numbers}


def _said(entry: Mapping[str, str]) -> str:
    """A line about it."""
    if "the warp" in entry:
        return f"the warp {entry['the warp']}"
    return entry["name"] + (f" [{entry['unit']}]" if entry.get("unit") else "")
