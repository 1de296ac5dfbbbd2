"""Files and functions of the package that one prediction enters: how much code a reader of `predict` has to know.

A prediction runs once before, so that all loops are compiled; what is counted is a second one, which keeps nothing.
Modules were imported by then, so code that runs at import does not count. Compiled loops are not seen from Python.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import ppt_gpu
from ppt_gpu.common.threads import at_most
from ppt_gpu.pipeline import predict

PACKAGE = str(Path(ppt_gpu.__file__).parent)


def entered(workload: str, gpu: str) -> set[CodeType]:
    """Code of the package that predicting `workload` on `gpu` runs, in one thread. A comprehension is no function."""
    found: set[CodeType] = set()

    def see(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
            found.add(code)

    with at_most(1):
        predict(workload, gpu, cache=False)
        sys.setprofile(see)
        try:
            predict(workload, gpu, cache=False)
        finally:
            sys.setprofile(None)
    return found


def bench_entered(workload: str = "vecadd", gpu: str = "k40") -> list[dict[str, Any]]:
    found = entered(workload, gpu)
    name = f"a prediction of {workload} on {gpu}"
    return [
        {"name": f"{name}, files entered", "value": len({code.co_filename for code in found}), "unit": "files"},
        {"name": f"{name}, functions entered", "value": len(found), "unit": "functions"},
    ]
