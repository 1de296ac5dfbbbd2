"""The result as one JSON document with a schema number. Keys are the field names of `ppt_gpu.report.result.result`."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from ppt_gpu.report.result.detail import Detail
from ppt_gpu.report.result.result import LaunchResult, Result
from ppt_gpu.sm.program.result import STALL_REASONS


def launch_document(launch: LaunchResult) -> dict[str, Any]:
    """A launch as plain data. Times in s, shares as ratios."""
    document = asdict(replace(launch, detail=None, recording=None))
    del document["detail"], document["recording"]
    document["stalls"] = [{"reason": reason, "share": share} for reason, share in launch.stalls]
    return document | (detail_document(launch.detail) if launch.detail else {})


def detail_document(detail: Detail) -> dict[str, Any]:
    """`lines`: the executed ones, with warp cycles by reason and unit cycles by pipe; `pipes`, `roofs`, `traffic`.

    Counts of lines and pipes are of the `sm_cycles` that were simulated.
    """
    names = [pipe.name for pipe in detail.pipes]
    lines = [
        {
            "line": line.line,
            "text": line.text.strip(),
            "issued": line.issued,
            "stalls": {reason: n for reason, n in zip(STALL_REASONS, line.stalls, strict=True) if n},
            "pipes": {name: n for name, n in zip(names, line.pipes, strict=True) if n},
        }
        for line in detail.source
        if line.issued
    ]
    return {
        "sm_cycles": detail.sm_cycles,
        "pipes": [asdict(pipe) for pipe in detail.pipes],
        "lines": lines,
        "roofs": asdict(detail.roofs),
        "traffic": asdict(detail.traffic),
    }


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
        "spans": [asdict(span) for span in result.spans],
        "copies": [{"name": name, "time_s": time} for name, time in result.copies],
        **(
            {}
            if result.advice is None
            else {
                "advice": [
                    {"text": one.text, "time_s": one.time, "gain": one.gain, "remark": one.remark}
                    for one in result.advice
                ]
            }
        ),
    }


def to_json(result: Result) -> str:
    """`document` as text; same result, same bytes (but for the metric sim.wall, which is a measurement)."""
    return json.dumps(document(result), indent=2, ensure_ascii=False, allow_nan=False)
