"""How fast PTX is parsed: the shipped sample kernels, copied under new names until there is enough text to time."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

from ppt_gpu.common.paths import data_dir
from ppt_gpu.ptx.parsing.parser import load_module, parse_module

#: text to time, bytes
TEXT_BYTES = 2_000_000


def bench_text(paths: list[Path], least: int = TEXT_BYTES) -> str:
    """One PTX module of at least `least` bytes from the kernels of `paths`, each copy with its own names."""
    bodies = []
    for path in paths:
        kernels = list(load_module(path).kernels.values())
        lines = path.read_text().split("\n")
        first = min(number for number, line in enumerate(lines) if line.lstrip().startswith(".address_size"))
        bodies.append(("\n".join(lines[first + 1 :]), [kernel.name for kernel in kernels]))
    parts = [".version 7.8\n.target sm_70\n.address_size 64\n"]
    size = copy = 0
    while size < least:
        for body, names in bodies:
            for name in names:
                body = body.replace(name, f"{name}_{copy}")
            parts.append(body)
            size += len(body)
        copy += 1
    return "".join(parts)


def bench_parse(runs: int = 5) -> list[dict[str, Any]]:
    """CPU speed of `parse_module`, register reads and writes included: figures of name, value and unit."""
    paths = sorted(data_dir("tasklists").glob("*.ptx"))
    text = bench_text(paths)
    instructions = sum(len(kernel.instructions) for kernel in parse_module(text).kernels.values())
    times = []
    for _ in range(runs):
        start = time.process_time()
        module = parse_module(text)
        times.append(time.process_time() - start)
        del module  # so that every run starts with the same memory
    seconds = statistics.median(times)
    return [
        {"name": "PTX parsing", "value": len(text) / seconds / 1e6, "unit": "MB/s"},
        {"name": "PTX instructions parsed", "value": instructions / seconds, "unit": "1/s"},
    ]
