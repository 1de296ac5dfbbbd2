"""gpus and explain: what there is, and what it means."""

from __future__ import annotations

import argparse
import json
from textwrap import indent

from ppt_gpu.commands.options.arguments import terminal
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.units import format_count, format_frequency, format_rate
from ppt_gpu.report.explain import explain
from ppt_gpu.report.text.listing import listing as listing_of
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu

WIDEST = (30, 14)  # columns of keys and values


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


def sheet(gpu: Gpu, *, as_json: bool = False, isa: bool = False, width: int = 120) -> str:
    """Every number of a GPU as written in its file, with its source, for so many columns.

    `isa`: with those of its instructions; JSON always has them.
    """
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
    rows = [(key, item.text, item.source) for key, item in gpu.sources.items()]
    shown = [row for row in rows if isa or not row[0].startswith("op.")]
    text = "\n".join(lines) + "\n" + indent(listing_of(shown, width - 2, WIDEST), "  ")
    hidden = len(rows) - len(shown)
    return text + (f"  and {hidden} numbers of its instructions: --isa\n" if hidden else "")


def show_gpus(arguments: argparse.Namespace) -> str:
    if arguments.name is None:
        if arguments.set:
            raise PptError("--set needs the name of a GPU", hint="ppt-gpu gpus k40 --set sm.count=30")
        if arguments.isa:
            raise PptError("--isa needs the name of a GPU", hint="ppt-gpu gpus k40 --isa")
        return listing(as_json=arguments.json)

    gpu = load_gpu(arguments.name, arguments.set)
    return sheet(gpu, as_json=arguments.json, isa=arguments.isa, width=terminal()["width"])


def show_explain(arguments: argparse.Namespace) -> str:
    return explain(arguments.metric, as_json=arguments.json, width=terminal()["width"])
