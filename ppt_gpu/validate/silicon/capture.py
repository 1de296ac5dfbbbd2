"""Captures: times of a GPU from the capture kit (validation/capture), read strictly from its CSV file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ppt_gpu.common.errors import InputErrors, PptError, did_you_mean
from ppt_gpu.validate.silicon.capture_runs import HOST, HOST_KERNELS, Run, csv_rows, ptx_of, run_of, workload_of
from ppt_gpu.validate.tables.rows import positive_number

VERSION = "1"
COLUMNS = (
    *("group", "module", "kernel", "grid", "block", "l2", "args", "registers", "static_shared", "repeats", "batch"),
    *("median_us", "low_us", "high_us", "clock_mhz"),
)
_HEAD = re.compile(r"#\s*(?P<name>\w+)\s*:\s*(?P<value>.*)")


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
    line: int = 0  # of the file


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


@contextmanager
def at_row(capture: Capture, time: Time) -> Iterator[None]:
    """Errors of predicting a row, with its place in the file."""
    try:
        yield
    except PptError as error:
        message = f"{time.run.name}: {_messages(error)}"
        raise PptError(message, path=capture.path, line=time.line, hint=error.hint) from None


def _messages(error: PptError) -> str:
    """What is wrong, in a line: where an error stands in another text than the capture does not matter."""
    return (
        "; ".join(dict.fromkeys(one.message for one in error.errors))
        if isinstance(error, InputErrors)
        else error.message
    )


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
    for number, row in csv_rows(lines, str(path), COLUMNS):
        try:
            times.append(_time(row, number))
        except PptError as error:
            errors.append(PptError(_messages(error), path=str(path), line=number, hint=error.hint))
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


def _time(row: Mapping[str, str], line: int) -> Time:
    host = row["group"] == HOST
    if host and row["kernel"] not in HOST_KERNELS:
        raise PptError(f"unknown host row '{row['kernel']}'", hint=did_you_mean(row["kernel"], HOST_KERNELS))
    if not host:
        ptx_of(row["module"])
    if row["l2"] not in ("cold", "warm") and not host:
        raise PptError(f"l2 is '{row['l2']}'", hint="cold or warm")
    median, low, high, clock = (positive_number(row, name) for name in ("median_us", "low_us", "high_us", "clock_mhz"))
    if not low <= median <= high:
        raise PptError(f"median_us {median:g} is not between low_us {low:g} and high_us {high:g}")
    registers, batch = row["registers"], row["batch"]
    if not registers.isdecimal() or not batch.isdecimal() or not int(batch):
        raise PptError(f"registers '{registers}' and batch '{batch}' must be whole numbers")
    run = run_of(row)
    if not host:
        workload_of(run, int(registers))
    elif len(run.args) != 1 or not re.fullmatch(r"(launches|bytes)=\d+", run.args[0]):
        raise PptError(f"args is '{row['args']}'", hint="launches=2000 or bytes=4096")
    return Time(run, int(registers), median, low, high, int(batch), clock, line)
