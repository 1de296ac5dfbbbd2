"""`gpus`: the shipped GPUs as a table, and one GPU's numbers, each with its source."""

from __future__ import annotations

import json

from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.units import format_count, format_frequency, format_rate


def listing(*, as_json: bool = False) -> str:
    """One line a GPU: name, title, compute capability."""
    from ppt_gpu.spec import list_gpus

    entries = list_gpus()
    if as_json:
        rows = [{"name": e.name, "title": e.title, "compute_capability": e.compute_capability} for e in entries]
        return json.dumps({"schema": 1, "gpus": rows}, indent=2, ensure_ascii=False) + "\n"
    names = max(len(entry.name) for entry in entries)
    titles = max(len(entry.title) for entry in entries)
    return "".join(f"{e.name:{names}}  {e.title:{titles}}  cc {e.compute_capability}\n" for e in entries)


def sheet(gpu: Gpu, *, as_json: bool = False) -> str:
    """Every number of a GPU as written in its file, with its source and line."""
    if as_json:
        numbers = [{"key": s.path, "value": s.text, "source": s.source} for s in gpu.sources.values()]
        head = {"schema": 1, "name": gpu.name, "compute_capability": ".".join(map(str, gpu.compute_capability))}
        return json.dumps(head | {"numbers": numbers}, indent=2, ensure_ascii=False) + "\n"
    peak = gpu.pipes["fp32"].lanes * 2 * gpu.sm.count * gpu.sm.clock
    lines = [
        f"{gpu.name} ({gpu.chip}), compute capability {'.'.join(map(str, gpu.compute_capability))}",
        f"  {format_count(gpu.sm.count)} SMs at {format_frequency(gpu.sm.clock)}, "
        f"{format_rate(peak, 'FLOP/s')} fp32 (fma), {format_rate(gpu.dram.bandwidth)} DRAM",
        "",
    ]
    if gpu.notes:
        lines[2:2] = [f"  {gpu.notes}"]
    keys = max(len(key) for key in gpu.sources)
    values = min(28, max(len(source.text) for source in gpu.sources.values()))
    lines += [f"  {key:{keys}}  {item.text:{values}}  {item.source}".rstrip() for key, item in gpu.sources.items()]
    return "\n".join(lines) + "\n"
