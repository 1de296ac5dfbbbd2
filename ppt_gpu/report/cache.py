"""`cache`: what is kept on disk between predictions, and where; and its removal."""

from __future__ import annotations

import json

from ppt_gpu.exec.store import ENTRIES, Store
from ppt_gpu.files import remove_folder
from ppt_gpu.paths import cache_dir
from ppt_gpu.units import format_bytes


def cache_report(clear: bool = False, as_json: bool = False) -> str:
    """What is there, or with `clear` what was removed. PptError when it cannot be removed."""
    folder, store = cache_dir(), Store()
    entries = store.entries()
    sizes = [[size for path, size, _ in entries if path.suffix == each] for each in ENTRIES]
    traces, timings, times, codes, programs, lines, runs = sizes
    kinds = {
        "traces": traces, "timings": timings, "times": times, "machine_codes": codes, "programs": programs,
        "l2_lines": lines, "runs": runs, "compiled": _compiled_sizes(),
    }  # fmt: skip
    if clear:
        store.clear()
        remove_folder(folder / "compiled")
    if as_json:
        found = {kind: {"files": len(sizes), "bytes": sum(sizes)} for kind, sizes in kinds.items()}
        document = {"schema": 1, "folder": str(folder), "limit_bytes": store.limit, "cleared": clear, **found}
        return json.dumps(document, indent=2) + "\n"
    verb = "removed" if clear else "kept"
    texts = [
        f"folder: {folder}  (PPT_GPU_CACHE)",
        f"traces of kernels {verb}: {len(traces)}, block timings: {len(timings)}, times: {len(times)}",
        f"machine codes {verb}: {len(codes)}, lowered blocks: {len(programs)}, contents of the L2: {len(lines)}",
        f"recorded runs {verb}: {len(runs)}",
        f"together {format_bytes(sum(sum(each) for each in sizes))} of at most {format_bytes(store.limit)}  "
        "(PPT_GPU_CACHE_LIMIT)",
        f"compiled PTX {verb}: {len(kinds['compiled'])}, {format_bytes(sum(kinds['compiled']))}",
    ]
    return "\n".join(texts) + "\n"


def _compiled_sizes() -> list[int]:
    try:
        return [path.stat().st_size for path in (cache_dir() / "compiled").iterdir()]
    except OSError:
        return []
