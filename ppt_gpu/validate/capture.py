"""Captures: times of a GPU from the capture kit (validation/capture), its plan, and the prediction of each launch."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ppt_gpu.errors import InputErrors, PptError, did_you_mean
from ppt_gpu.exec.workload import Dim3, Workload
from ppt_gpu.paths import data_dir
from ppt_gpu.pipeline import predict
from ppt_gpu.spec.gpu import Gpu

VERSION = "1"
PLAN_COLUMNS = ("group", "module", "kernel", "needs", "grid", "block", "l2", "args")
COLUMNS = (
    *("group", "module", "kernel", "grid", "block", "l2", "args", "registers", "static_shared", "repeats", "batch"),
    *("median_us", "low_us", "high_us", "clock_mhz"),
)
HOST = "host"
HOST_KERNELS = (
    "launch",
    *(f"copy_{direction}_{memory}" for direction in ("in", "out") for memory in ("pinned", "pageable")),
)
_HEAD = re.compile(r"#\s*(?P<name>\w+)\s*:\s*(?P<value>.*)")


@dataclass(frozen=True)
class Run:
    """A launch of the plan, on one GPU; or what the host does, where `group` is "host"."""

    group: str
    module: str  # of validation/capture or tasklists
    kernel: str
    grid: Dim3
    block: Dim3
    cold: bool  # the L2 was flushed before the launch; else the launch before was the same
    args: tuple[str, ...]  # in the command line's form; "launches=2000" and "bytes=4096" of the host

    @property
    def name(self) -> str:
        """What tells it from others: kernel, blocks and scalars."""
        scalars = [text.partition("=")[2] for text in self.args if "[" not in text]
        return " ".join([self.kernel, *(["x".join(map(str, self.grid))] if self.module else []), *scalars])


@dataclass(frozen=True)
class Time:
    """A measured run. Times in us: the median of the repeats, and those that one in ten is below and above."""

    run: Run
    registers: int  # a thread, 0: not known
    median: float
    low: float
    high: float
    batch: int  # launches in a row, of which the time is the mean
    clock: float  # MHz of the SMs around the run


@dataclass(frozen=True)
class Capture:
    """A file of the capture kit. `facts`: its header, such as "gpu" and "compute_capability"."""

    path: str
    facts: Mapping[str, str]
    times: tuple[Time, ...]

    @property
    def capability(self) -> tuple[int, int]:
        major, _, minor = self.facts["compute_capability"].partition(".")
        return int(major), int(minor)

    def of(self, group: str) -> list[Time]:
        return [time for time in self.times if time.run.group == group]


# --- the plan --------------------------------------------------------------------------------------------------------


def plan(gpu: Gpu) -> list[Run]:
    """What the kit runs on a GPU, in order."""
    words = _plan_words(gpu)
    major, minor = gpu.compute_capability
    path = _folder() / "plan.csv"
    found = []
    for _, row in _rows(path.read_text(encoding="utf-8").splitlines(), str(path), PLAN_COLUMNS):
        if int(row["needs"] or 0) <= 10 * major + minor:
            cells = {name: re.sub(r"[a-z]\w*(?=[*\]x;]|$)", lambda m: str(words.get(m[0], m[0])), row[name])
                     for name in ("grid", "block", "args")}  # fmt: skip
            found.append(_run(row | cells))
    return found


def _plan_words(gpu: Gpu) -> dict[str, int]:
    return {"sms": gpu.sm.count, "l2words": 1 << max((gpu.l2.size // 16).bit_length() - 1, 0)}


def _run(row: Mapping[str, str]) -> Run:
    host = row["group"] == HOST
    grid, block = ((1, 1, 1), (1, 1, 1)) if host else (_extents(row["grid"]), _extents(row["block"]))
    arguments = tuple(text for text in row["args"].split(";") if text)
    return Run(row["group"], row["module"], row["kernel"], grid, block, row["l2"] == "cold", arguments)


def _extents(text: str) -> Dim3:
    """"2*132x8" -> (264, 8, 1). PptError for anything else."""
    sides = [math.prod(int(factor) if factor.isdecimal() else 0 for factor in part.split("*")) for part in text.split("x")]
    if not 1 <= len(sides) <= 3 or min(sides) < 1:
        raise PptError(f"'{text}' is no grid or block", hint="such as 64x64x1")
    x, y, z = (*sides, 1, 1)[:3]
    return x, y, z


def _folder() -> Path:
    return data_dir("validation") / "capture"


# --- reading ---------------------------------------------------------------------------------------------------------


def read_capture(path: str | Path) -> Capture:
    """A file of the kit. Raises InputErrors with everything that is wrong with its rows, PptError for its head."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise PptError(f"cannot read the capture: {error.strerror}", path=path) from None
    except UnicodeDecodeError:
        raise PptError("the capture is not text", path=path, hint="expected the CSV file of run.sh") from None
    facts = {match["name"]: match["value"].strip() for line in lines if (match := _HEAD.fullmatch(line))}
    _check_facts(facts, str(path))
    errors: list[PptError] = []
    times: list[Time] = []
    for number, row in _rows(lines, str(path), COLUMNS):
        try:
            times.append(_time(row))
        except PptError as error:
            errors.append(PptError(error.message, path=str(path), line=number, hint=error.hint))
    if errors:
        raise InputErrors(errors)
    if not times:
        raise PptError("the capture has no rows", path=path, hint="run validation/capture/run.sh to its end")
    return Capture(str(path), facts, tuple(times))


def _check_facts(facts: Mapping[str, str], path: str) -> None:
    hint = "the file begins with lines such as '# gpu: NVIDIA H100', as run.sh writes them"
    missing = [name for name in ("capture", "gpu", "compute_capability", "sms") if not facts.get(name)]
    if missing:
        raise PptError(f"the capture does not say: {', '.join(missing)}", path=path, line=1, hint=hint)
    if facts["capture"] != VERSION:
        raise PptError(f"a capture of version {facts['capture']}, expected {VERSION}", path=path, line=1)
    if not re.fullmatch(r"\d+\.\d", facts["compute_capability"]):
        raise PptError(f"compute_capability is '{facts['compute_capability']}'", path=path, hint="such as 9.0")


def _rows(lines: Iterable[str], path: str, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
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


def _time(row: Mapping[str, str]) -> Time:
    host = row["group"] == HOST
    if host and row["kernel"] not in HOST_KERNELS:
        raise PptError(f"unknown host row '{row['kernel']}'", hint=did_you_mean(row["kernel"], HOST_KERNELS))
    if not host:
        _ptx(row["module"])
    if row["l2"] not in ("cold", "warm") and not host:
        raise PptError(f"l2 is '{row['l2']}'", hint="cold or warm")
    median, low, high, clock = (_number(row, name) for name in ("median_us", "low_us", "high_us", "clock_mhz"))
    if not low <= median <= high:
        raise PptError(f"median_us {median:g} is not between low_us {low:g} and high_us {high:g}")
    registers, batch = row["registers"], row["batch"]
    if not registers.isdecimal() or not batch.isdecimal() or not int(batch):
        raise PptError(f"registers '{registers}' and batch '{batch}' must be whole numbers")
    return Time(_run(row), int(registers), median, low, high, int(batch), clock)


def _number(row: Mapping[str, str], name: str) -> float:
    try:
        value = float(row[name])
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise PptError(f"{name} is '{row[name]}', expected a positive number")
    return value


# --- prediction ------------------------------------------------------------------------------------------------------


def _ptx(module: str) -> Path:
    """The PTX of a module of the kit. PptError for an unknown one."""
    known = {path.stem: path for folder in (data_dir("tasklists"), _folder()) for path in folder.glob("*.ptx")}
    if module not in known:
        raise PptError(f"unknown module '{module}'", hint=did_you_mean(module, known))
    return known[module]


@cache
def workload_of(run: Run, registers: int) -> Workload:
    """The launch as a workload: alone where the L2 is cold, else after the same one. PptError for bad arguments."""
    from dataclasses import replace

    from ppt_gpu.inputs import open_workload

    shape = {"grid": run.grid, "block": run.block, "registers": registers or None}
    workload = open_workload(_ptx(run.module), kernel=run.kernel, args=run.args, **shape)
    return workload if run.cold else replace(workload, launches=workload.launches * 2)


def kernel_time(run: Run, gpu: Gpu, registers: int = 0) -> float:
    """Predicted us of the kernel of a run, without launch overhead. PptError for what the GPU cannot run."""
    launch = predict(workload_of(run, registers), gpu).launches[-1]
    return 1e6 * float(launch.value("kernel.cycles")) / gpu.sm.clock


def run_time(run: Run, gpu: Gpu, registers: int = 0, batch: int = 1) -> float:
    """Predicted us of a run as the kit measures it: kernels in a row hide the launches between them."""
    from ppt_gpu.exec.workload import Copy
    from ppt_gpu.scale.host import copy_seconds

    overhead = 1e6 * gpu.host.launch_overhead
    if run.group == HOST:
        amount = int(run.args[0].partition("=")[2])
        if run.kernel == "launch":
            return overhead
        direction = "in" if "_in_" in run.kernel else "out"
        return 1e6 * copy_seconds(Copy(amount, direction, pinned=run.kernel.endswith("_pinned")), gpu.host)
    kernel = kernel_time(run, gpu, registers)
    return max(kernel, overhead) if batch > 1 else kernel + overhead
