"""cache: what is kept between predictions, and where; and its removal."""

from __future__ import annotations

import argparse
import json

from ppt_gpu.common.paths import cache_dir
from ppt_gpu.common.units import format_bytes
from ppt_gpu.emulator.cache.store import SUFFIX, TIME, Store

#: kind -> endings of its entries
KINDS = {
    "traces": (SUFFIX,), "timings": (".timing",), "times": (TIME,), "machine_codes": (".code",),
    "programs": (".program",), "l2_lines": (".lines",), "compiled": (".ptx", ".json", ".sass"),
}  # fmt: skip


def cache_report(clear: bool = False, as_json: bool = False) -> str:
    """What is there, or with `clear` what was removed. PptError when it cannot be removed."""
    folder, store = cache_dir(), Store()
    entries = store.entries()
    kinds = {kind: [size for path, size, _ in entries if path.suffix in endings] for kind, endings in KINDS.items()}
    if clear:
        store.clear()
    if as_json:
        found = {kind: {"files": len(sizes), "bytes": sum(sizes)} for kind, sizes in kinds.items()}
        where = None if folder is None else str(folder)
        document = {"schema": 1, "folder": where, "limit_bytes": store.limit, "cleared": clear, **found}
        return json.dumps(document, indent=2) + "\n"
    verb = "removed" if clear else "kept"

    def number(kind: str) -> int:
        return len(kinds[kind])

    texts = [
        f"folder: {folder or 'none, nothing is kept'}  (PPT_GPU_CACHE)",
        f"traces of kernels {verb}: {number('traces')}, block timings: {number('timings')}, times: {number('times')}",
        f"machine codes {verb}: {number('machine_codes')}, lowered blocks: {number('programs')}, "
        f"contents of the L2: {number('l2_lines')}",
        f"outputs of compilers {verb}: {number('compiled')}",
        f"together {format_bytes(sum(size for _, size, _ in entries))} of at most {format_bytes(store.limit)}  "
        "(PPT_GPU_CACHE_LIMIT)",
    ]
    return "\n".join(texts) + "\n"


def run(arguments: argparse.Namespace) -> str:
    return cache_report(clear=arguments.clear or arguments.action == "clear", as_json=arguments.json)
