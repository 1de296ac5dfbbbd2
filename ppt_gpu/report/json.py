"""The result as one JSON document with a schema number. Keys are the field names of `ppt_gpu.report.result`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from ppt_gpu.report.result import LaunchResult, Result


def launch_document(launch: LaunchResult) -> dict[str, Any]:
    """A launch as plain data. Times in s, shares as ratios."""
    document = asdict(launch)
    document["stalls"] = [{"reason": reason, "share": share} for reason, share in launch.stalls]
    return document


def document(result: Result) -> dict[str, Any]:
    """The whole result as plain data. `kernel`, `metrics` at the top are those of the longest launch."""
    main = result.main
    return {
        "schema": result.schema,
        "workload": result.workload,
        "kernel": main.kernel,
        "gpu": result.gpu,
        "level": result.level,
        "time_s": result.time,
        "metrics": [asdict(item) for item in main.metrics],
        "launches": [launch_document(launch) for launch in result.launches],
        "copies": [{"name": name, "time_s": time} for name, time in result.copies],
    }


def to_json(result: Result) -> str:
    """`document` as text; same result, same bytes (but for the metric sim.wall, which is a measurement)."""
    return json.dumps(document(result), indent=2, ensure_ascii=False, allow_nan=False)
