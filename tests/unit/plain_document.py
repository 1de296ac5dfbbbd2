"""A result to compare with others."""

import json

from ppt_gpu.report.json import document
from ppt_gpu.report.result.result import Result


def plain(result: Result) -> str:
    """Its JSON document without the time that the prediction took."""
    found = document(result)
    for holder in (found, *found["launches"]):
        holder["metrics"] = [item for item in holder["metrics"] if item["tag"] != "sim.wall"]
    return json.dumps(found)
