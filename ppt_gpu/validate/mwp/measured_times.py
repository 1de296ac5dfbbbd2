"""Measured times of the micro-benchmarks, from a CSV file: one launch a line, columns by name (docs/mwp_cwp.md)."""

from __future__ import annotations

import csv
from pathlib import Path

from ppt_gpu.common.errors import InputErrors, PptError, did_you_mean
from ppt_gpu.models.hong_kim.fit import Measurement
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.validate.mwp.micro_benchmarks import ITERATIONS, MicroLaunch, micro_inputs
from ppt_gpu.validate.tables.cells import positive_number

NEEDED = ("kernel", "threads_per_block", "blocks")
TIMES = ("time_us", "cycles")
COLUMNS = (*NEEDED, "iterations", *TIMES)


def read_measurements(path: str | Path, gpu: Gpu) -> list[Measurement]:
    """The launches in a file. Times are those of kernels, in microseconds or in cycles of the SM clock of `gpu`.

    Raises InputErrors with everything that is wrong, each with its line.
    """
    try:
        lines = Path(path).read_text().splitlines()
    except OSError as error:
        raise PptError(f"cannot read the measured times: {error.strerror}", path=path) from None
    except UnicodeDecodeError:
        raise PptError("the measured times are not text", path=path, hint="expected a CSV file in UTF-8") from None
    rows = [(n, row) for n, row in enumerate(csv.reader(lines), 1) if row and not row[0].lstrip().startswith("#")]
    if len(rows) < 2:
        raise PptError(
            "no measured times", path=path, hint=f"a line of column names, {', '.join(COLUMNS)}, and lines below"
        )
    names = _columns([cell.strip() for cell in rows[0][1]], str(path), rows[0][0])
    errors: list[PptError] = []
    found: list[Measurement] = []
    for number, row in rows[1:]:
        try:
            found.append(_measurement(dict(zip(names, (cell.strip() for cell in row), strict=False)), gpu))
        except PptError as error:
            errors.append(PptError(error.message, path=str(path), line=number, hint=error.hint))
    if errors:
        raise InputErrors(errors)
    return found


def _columns(names: list[str], path: str, line: int) -> list[str]:
    for name in names:
        if name not in COLUMNS:
            raise PptError(f"unknown column '{name}'", path=path, line=line, hint=did_you_mean(name, COLUMNS))
    missing = [name for name in NEEDED if name not in names]
    if missing or not set(TIMES) & set(names):
        what = ", ".join(missing) or " or ".join(TIMES)
        raise PptError(f"missing column: {what}", path=path, line=line, hint=f"columns: {', '.join(COLUMNS)}")
    return names


def _measurement(cells: dict[str, str], gpu: Gpu) -> Measurement:
    threads, blocks = _count(cells, "threads_per_block"), _count(cells, "blocks")
    iterations = _count(cells, "iterations") if cells.get("iterations") else ITERATIONS
    launch = MicroLaunch(cells.get("kernel", ""), threads, blocks, iterations)
    inputs = micro_inputs(launch, gpu)
    name = next((name for name in TIMES if cells.get(name)), "")
    if not name:
        raise PptError("no time", hint=f"fill {' or '.join(TIMES)}")
    time = positive_number(cells, name)
    return Measurement(launch.kernel, inputs, time * gpu.sm.clock / 1e6 if name == "time_us" else time)


def _count(cells: dict[str, str], name: str) -> int:
    text = cells.get(name, "")
    if not text.isdecimal() or int(text) < 1:
        raise PptError(f"{name} is '{text}', expected a positive number")
    return int(text)
