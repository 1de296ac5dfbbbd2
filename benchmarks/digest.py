"""A digest of all numbers that the project prints: what a change of structure must leave as it was.

    python benchmarks/digest.py [PART ...] [--gpus NAME,...] [--levels NAME,...] [--against FILE] > FILE

Each line is the start of a SHA-256 and the command whose output it is of. Times that a command takes are left out.
With --against, lines that differ from those of FILE are printed instead, and the exit code is 1 where there are any.
A command that ends with an error counts with its message.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

#: one of each generation, the two simulators' machines, and chips with few and with many SMs
GPUS = [
    "k40",
    "gtx1080",
    "p100",
    "v100",
    "t4",
    "a100",
    "rtx3090",
    "rtx4090",
    "h100",
    "b200",
    "gpgpusim_gtx480",
    "gpgpusim_qv100",
]
LEVELS = ("steady", "workload", "grid")
#: of `validate`: those that are there in minutes
SETS = ["gpgpusim", "curves", "models", "mwp", "caches", "darksilicon", "port", "cluster", "ppt", "isa", "levels"]
#: metrics, and keys of JSON documents, whose values are times that the command itself took
MEASURED_METRICS = frozenset({"sim.wall"})
MEASURED_KEYS = frozenset({"wall_s", "shared_wall_s", "cpu_s"})


def samples() -> list[str]:
    return sorted(path.stem for path in (ROOT / "tasklists").glob("*.toml"))


def commands(parts: list[str], gpus: list[str], levels: list[str]) -> Iterator[list[str]]:
    """The commands of each part, without --json."""
    if "predict" in parts:
        for level in levels:
            for gpu in gpus:
                for name in samples():
                    yield ["predict", name, "--gpu", gpu, "--level", level, "--no-cache"]
                yield ["predict", "tasklists/triad.tl", "--gpu", gpu, "--level", level, "--no-cache"]
    if "compare" in parts:
        for gpu in gpus[::4]:
            for name in samples():
                yield ["compare", name, "--gpu", gpu]
    if "cluster" in parts:
        for path in sorted((ROOT / "tasklists" / "apps").glob("*.py")):
            yield ["cluster", path.stem, "--machine", "dgx_h100", "--nodes", "2", "--digest"]
    if "validate" in parts:
        for name in SETS:
            yield ["validate", name]


def digest(command: list[str]) -> str:
    """The line of a command."""
    from ppt_gpu.cli import main

    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            code = main([*command, "--json"])
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else 1
    text = (out.getvalue() if code == 0 else errors.getvalue()).replace(f"{ROOT}{os.sep}", "")
    with contextlib.suppress(ValueError):
        text = json.dumps(_without_times(json.loads(text)), sort_keys=True)
    return f"{hashlib.sha256(f'{code} {text}'.encode()).hexdigest()[:20]}  {' '.join(command)}"


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        gone = MEASURED_KEYS | ({"value"} if value.get("tag") in MEASURED_METRICS else set())
        return {key: _without_times(part) for key, part in value.items() if key not in gone}
    return [_without_times(part) for part in value] if isinstance(value, list) else value


PARTS = ("predict", "compare", "cluster", "validate")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--gpus", type=lambda text: text.split(","), default=GPUS)
    parser.add_argument("--levels", type=lambda text: text.split(","), default=list(LEVELS))
    parser.add_argument("--against", type=Path, metavar="FILE", help="print what differs from these lines")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes")
    options = parser.parse_args()
    wrong = sorted(set(options.parts) - set(PARTS))
    if wrong:
        parser.error(f"no part {wrong[0]!r}: expected one of {', '.join(PARTS)}")
    os.chdir(ROOT)
    todo = list(commands(options.parts or list(PARTS), options.gpus, options.levels))
    before = options.against.read_text().splitlines() if options.against else []
    known = {line.split("  ", 1)[1]: line for line in before}
    changed = 0
    with ProcessPoolExecutor(options.jobs) as pool:
        for line in pool.map(digest, todo):
            name = line.split("  ", 1)[1]
            if options.against and known.get(name) == line:
                continue
            changed += 1
            print(line, flush=True)
    return 1 if options.against and changed else 0


if __name__ == "__main__":
    sys.exit(main())
