"""check: every error in an input file of any kind."""

from __future__ import annotations

import argparse
import json

from ppt_gpu.checks import check
from ppt_gpu.multicore.port.check import check_file


def run(arguments: argparse.Namespace) -> str:
    lines = check_file(arguments.file) or check(arguments.file)
    if arguments.json:
        return json.dumps({"schema": 1, "file": arguments.file, "ok": True, "found": lines}, indent=2) + "\n"
    return "".join(f"{line}\n" for line in lines)
