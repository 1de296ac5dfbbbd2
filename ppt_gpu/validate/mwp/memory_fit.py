"""Mem_LD and the departure delays of a GPU from the micro-benchmarks, measured or simulated.

Measured times of the micro-benchmarks, from a CSV file: one launch a line, columns by name (docs/mwp_cwp.md).
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from ppt_gpu.common.errors import InputErrors, PptError, did_you_mean
from ppt_gpu.models.hong_kim.fit import RANGES, Measurement, MemoryFit, fit_memory
from ppt_gpu.models.hong_kim.hong_kim import hong_kim_cycles
from ppt_gpu.models.hong_kim.tables import memory_parameters
from ppt_gpu.pipeline import predict
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.validate.mwp.micro_benchmarks import ITERATIONS, MicroLaunch, micro_inputs, micro_launches, micro_workload
from ppt_gpu.validate.tables.rows import positive_number

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


TITLES = {"mem_ld": "Mem_LD", "dep_uncoal": "Departure_del_uncoal", "dep_coal": "Departure_del_coal"}


def simulated_measurements(gpu: Gpu, iterations: int = ITERATIONS) -> list[Measurement]:
    """Every launch of the micro-benchmarks, with the cycles that the simulation predicts."""
    found = []
    for launch in micro_launches(gpu, iterations):
        result = predict(micro_workload(launch, gpu), gpu)
        cycles = float(result.launches[0].value("kernel.cycles"))
        found.append(Measurement(launch.kernel, micro_inputs(launch, gpu), cycles))
    return found


def report(gpu: Gpu, measurements: Sequence[Measurement], machine: str, *, as_json: bool = False) -> str:
    """The fit and the micro-benchmarks' CPI, measured and estimated with it, as text or JSON."""
    fit = fit_memory(measurements)
    rows = _rows(measurements, fit)
    return _json(gpu, machine, fit, rows) if as_json else _text(gpu, machine, fit, rows)


def _rows(measurements: Sequence[Measurement], fit: MemoryFit) -> list[tuple[str, float, float, float]]:
    """(kernel, CPI measured, CPI estimated, geometric mean of the absolute error) of every kernel, as Figure 14."""
    fitted = {name: getattr(fit, name) for name in RANGES}
    found = []
    for kernel in dict.fromkeys(each.name for each in measurements):
        own = [each for each in measurements if each.name == kernel]
        cycles = [hong_kim_cycles(replace(each.inputs, **fitted)) for each in own]
        pairs = list(zip(own, cycles, strict=True))
        measured = fmean(each.cycles / _instructions(each) for each in own)
        estimated = fmean(value / _instructions(each) for each, value in pairs)
        found.append((kernel, measured, estimated, _geometric(abs(value / each.cycles - 1) for each, value in pairs)))
    return found


def _instructions(each: Measurement) -> float:
    """Warp instructions of an SM: the denominator of Eq 25."""
    given = each.inputs
    return given.total_insts * given.warps_per_block * given.blocks / given.active_sms


def _geometric(errors: Iterable[float]) -> float:
    """Geometric mean, as the paper has it; an error below 0.0001 % counts as that."""
    return math.exp(fmean(math.log(max(error, 1e-6)) for error in errors))


def _text(gpu: Gpu, machine: str, fit: MemoryFit, rows: Sequence[tuple[str, float, float, float]]) -> str:
    known = memory_parameters(gpu)
    lines = [f"{gpu.title or gpu.name}: memory parameters of the MWP-CWP model, fitted to {machine}"]
    lines.append(f"{'':22}{'fitted':>10}{'from':>10}{'to':>10}{'in use':>10}")
    for name, title in TITLES.items():
        low, high = fit.ranges[name]
        lines.append(f"{title:22}{getattr(fit, name):10.2f}{low:10.2f}{high:10.2f}{getattr(known, name):10.2f} cycles")
    for name, title in TITLES.items():
        if not fit.determined(name):
            lines.append(f"{title} is not determined by these launches: anywhere in its range they fit as well.")
    lines += [f"in use: {known.source}", "", "CPI             measured  estimated     error"]
    lines += [f"{kernel:14}{a:10.2f}{b:11.2f}{error:10.1%}" for kernel, a, b, error in rows]
    lines.append(f"geometric mean of the absolute errors: {_geometric(row[3] for row in rows):.1%}")
    return "\n".join(lines) + "\n"


def _json(gpu: Gpu, machine: str, fit: MemoryFit, rows: Sequence[tuple[str, float, float, float]]) -> str:
    document = {
        "schema": 1,
        "gpu": gpu.name,
        "machine": machine,
        "parameters": {
            name: {"value": getattr(fit, name), "range": fit.ranges[name], "determined": fit.determined(name)}
            for name in TITLES
        },
        "error": fit.error,
        "kernels": [dict(zip(("kernel", "measured_cpi", "estimated_cpi", "error"), row, strict=True)) for row in rows],
    }
    return json.dumps(document, indent=2) + "\n"
