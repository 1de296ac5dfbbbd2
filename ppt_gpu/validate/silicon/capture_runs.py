"""The runs of the capture kit (validation/capture): its plan, and what the simulation predicts for each."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.common.paths import data_dir
from ppt_gpu.inputs import open_workload
from ppt_gpu.pipeline import predict
from ppt_gpu.scale.host import copy_seconds
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.workload.workload import Copy, Dim3, Workload

PLAN_COLUMNS = ("group", "module", "kernel", "needs", "grid", "block", "l2", "args")
HOST = "host"
HOST_KERNELS = (
    "launch",
    *(f"copy_{direction}_{memory}" for direction in ("in", "out") for memory in ("pinned", "pageable")),
)


@dataclass(frozen=True)
class Run:
    """A launch of the plan, on one GPU; or what the host does, where `group` is "host"."""

    group: str
    module: str  # of validation/capture or tasklists
    kernel: str
    grid: Dim3
    block: Dim3
    cold: bool  # the L2 was overwritten before the launch; else the launch before was the same
    args: tuple[str, ...]  # in the command line's form; "launches=2000" and "bytes=4096" of the host

    @property
    def name(self) -> str:
        """What tells it from others: kernel, blocks and scalars."""
        scalars = [text.partition("=")[2] for text in self.args if "[" not in text]
        return " ".join([self.kernel, *(["x".join(map(str, self.grid))] if self.module else []), *scalars])


# --- the plan --------------------------------------------------------------------------------------------------------


def plan(gpu: Gpu) -> list[Run]:
    """What the kit runs on a GPU, in order."""
    words = _plan_words(gpu)
    major, minor = gpu.compute_capability
    path = _folder() / "plan.csv"
    found = []
    for _, row in csv_rows(path.read_text(encoding="utf-8").splitlines(), str(path), PLAN_COLUMNS):
        if int(row["needs"] or 0) <= 10 * major + minor:
            cells = {name: re.sub(r"[a-z]\w*(?=[*\]x;]|$)", lambda m: str(words.get(m[0], m[0])), row[name])
                     for name in ("grid", "block", "args")}  # fmt: skip
            found.append(run_of(row | cells))
    return found


def _plan_words(gpu: Gpu) -> dict[str, int]:
    return {"sms": gpu.sm.count, "l2words": 1 << max((gpu.l2.size // 16).bit_length() - 1, 0)}


def run_of(row: Mapping[str, str]) -> Run:
    host = row["group"] == HOST
    grid, block = ((1, 1, 1), (1, 1, 1)) if host else (_extents(row["grid"]), _extents(row["block"]))
    arguments = tuple(text for text in row["args"].split(";") if text)
    return Run(row["group"], row["module"], row["kernel"], grid, block, row["l2"] == "cold", arguments)


def _extents(text: str) -> Dim3:
    """ "2*132x8" -> (264, 8, 1). PptError for anything else."""
    sides = [
        math.prod(int(factor) if factor.isdecimal() else 0 for factor in part.split("*")) for part in text.split("x")
    ]
    if not 1 <= len(sides) <= 3 or min(sides) < 1:
        raise PptError(f"'{text}' is no grid or block", hint="such as 64x64x1")
    x, y, z = (*sides, 1, 1)[:3]
    return x, y, z


def _folder() -> Path:
    return data_dir("validation") / "capture"


def csv_rows(lines: Iterable[str], path: str, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """(line, cells by column) of a CSV file; lines that begin with # are left out."""
    names: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = next(csv.reader([line]))
        if not names:
            names = cells
            missing = [name for name in columns if name not in names]
            if missing:
                hint = did_you_mean(missing[0], names) or f"columns: {', '.join(columns)}"
                raise PptError(f"missing column: {', '.join(missing)}", path=path, line=number, hint=hint)
        elif len(cells) != len(names):
            message = f"{len(cells)} cells, the file has {len(names)} columns: is it whole?"
            raise PptError(message, path=path, line=number)
        else:
            yield number, dict(zip(names, cells, strict=True))


# --- prediction ------------------------------------------------------------------------------------------------------


def ptx_of(module: str) -> Path:
    """The PTX of a module of the kit. PptError for an unknown one."""
    known = {path.stem: path for folder in (data_dir("tasklists"), _folder()) for path in folder.glob("*.ptx")}
    if module not in known:
        raise PptError(f"unknown module '{module}'", hint=did_you_mean(module, known))
    return known[module]


@cache
def workload_of(run: Run, registers: int) -> Workload:
    """The launch as a workload. A warm L2 has of the buffers what fits, as after a copy. PptError for bad arguments."""

    workload = open_workload(
        ptx_of(run.module),
        kernel=run.kernel,
        grid=run.grid,
        block=run.block,
        args=run.args,
        registers=registers or None,
    )
    if run.cold:
        return workload
    return replace(workload, buffers=tuple(replace(buffer, copied=True) for buffer in workload.buffers))


def kernel_time(run: Run, gpu: Gpu, registers: int = 0) -> float:
    """Predicted us of the kernel of a run, without launch overhead. PptError for what the GPU cannot run."""
    launch = predict(workload_of(run, registers), gpu).launches[0]
    return 1e6 * float(launch.value("kernel.cycles")) / gpu.sm.clock


def run_time(run: Run, gpu: Gpu, registers: int = 0, batch: int = 1) -> float:
    """Predicted us of a run as the kit measures it: kernels in a row hide the launches between them."""

    overhead = 1e6 * gpu.host.launch_overhead
    if run.group == HOST:
        amount = int(run.args[0].partition("=")[2])
        if run.kernel == "launch":
            return overhead
        direction = "in" if "_in_" in run.kernel else "out"
        return 1e6 * copy_seconds(Copy(amount, direction, pinned=run.kernel.endswith("_pinned")), gpu.host)
    kernel = kernel_time(run, gpu, registers)
    return max(kernel, overhead) if batch > 1 else kernel + overhead
