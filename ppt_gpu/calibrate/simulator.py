"""The calibrated numbers of the GPGPU-Sim configurations, found again from the launches of its micro-kernels."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ppt_gpu.calibrate.report import Calibrated, value_of
from ppt_gpu.calibrate.solve import Number, calibrated
from ppt_gpu.common.errors import InputErrors, PptError, did_you_mean
from ppt_gpu.spec import load_gpu
from ppt_gpu.validate.gpgpusim.launches import GPUS, MODES, case_name, predict_program, reference_path
from ppt_gpu.validate.gpgpusim.programs import PROGRAMS

COLUMNS = ("config", "mem", "bench", "args", "launch", "gpu_sim_cycle", "regs")


@dataclass(frozen=True)
class Rests:
    """A number and the launches that it rests on, by mode and name."""

    number: Number
    mode: str
    cases: tuple[str, ...]


def _op(name: str, *cases: str) -> Rests:
    return Rests(Number(f'op."{name}".latency', 1, 400), "perfect", cases)


#: chains of dependent operations, and of dependent loads, on both configurations; what is further away takes longer
CHAINS = (
    _op("fp32.fma", "alulat()#1"),
    _op("fp32.add", "alulat()#2"),
    _op("int32.mad", "alulat()#3"),
    _op("int32.add", "alulat()#4"),
    _op("sfu", "alulat()#5", "alulat()#6"),
    _op("fp64.fma", "alulat()#7"),
    Rests(Number("shared.latency", 1, 200), "perfect", ("pchase(256)#6",)),
    Rests(Number("l1.latency", 1, 180), "perfect", ("pchase(256)#1",)),
    Rests(Number("memory.miss_latency", 0, 100), "perfect", ("pchase(256)#3", "pchase(256)#4")),
    Rests(Number("l2.latency", 45, 300), "default", ("pchase(256)#3",)),
    Rests(Number("dram.latency", 200, 2000), "default+coldL2", ("pchase(64)#3", "pchase(64)#4")),
)
_DRAM = Number("dram.efficiency", 0.1, 1, step=0.01)
#: what limits streams stands in the configuration of QV100, one request a cycle, queues and banks; GTX480 has rates
RESTS: dict[str, tuple[Rests, ...]] = {
    "gpgpusim_qv100": CHAINS,
    "gpgpusim_gtx480": (
        *CHAINS,
        Rests(Number("pipes.fp32.collectors", 2, 16), "perfect", ("ilp_fma(120,8)#1", "ilp_fma_300b(300,6)#1")),
        Rests(_DRAM, "default", ("vecadd_big(524288)#1", "strided(16384)#6")),
    ),
}


def configuration_of(name: str) -> str | None:
    """The hardware file of a simulated GPU, which may also be named by its configuration; None for another GPU."""
    by_configuration = {f"gpgpusim_{config.lower()}": gpu for config, gpu in GPUS.items()}
    return name if name in RESTS else by_configuration.get(name)


def calibrate(name: str, launches: str | Path | None = None) -> list[Calibrated]:
    """Every number of `RESTS` from the launches in a file, the shipped one by default.

    Each number is found with all others as in the hardware file. Raises PptError or InputErrors for a bad file, and for
    one in which none of the launches that the numbers rest on are.
    """
    path = launch_file(launches)
    own = [row for row in read_launches(path) if GPUS.get(row["config"]) == name]
    found = [one for rests in RESTS[name] for one in _found(name, rests, own)]
    if not found:
        hint = f"launches such as {', '.join(RESTS[name][0].cases)} in mode {RESTS[name][0].mode}"
        raise PptError(f"no launch of '{name}' that a calibrated number rests on", path=path, hint=hint)
    return found


def launch_file(launches: str | Path | None) -> Path:
    """The file of launches; the shipped one also by its bare name, where there is no such file."""
    shipped = reference_path()
    if launches is None or (str(launches) == shipped.name and not Path(launches).exists()):
        return shipped
    return Path(launches)


def _found(name: str, rests: Rests, launches: Sequence[dict[str, str]]) -> Iterator[Calibrated]:
    """Nothing when the file has none of the launches."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    chosen: list[dict[str, str]] = []
    for row in launches:
        if row["mem"] == rests.mode:
            groups.setdefault((row["bench"], row["args"]), []).append(row)
            if case_name(row) in rests.cases:
                chosen.append(row)
    if not chosen:
        return
    programs = [members for members in groups.values() if any(row in chosen for row in members)]
    wanted = [case_name(row) for row in chosen]

    @cache
    def predicted(value: float) -> tuple[float, ...]:
        rows = [row for members in programs for row in predict_program(members, (f"{rests.number.path}={value:.10g}",))]
        cycles = {row.case: row.predicted for row in rows}
        return tuple(cycles[case] for case in wanted)

    file_value = value_of(load_gpu(name), rests.number.path)
    measured = [float(row["gpu_sim_cycle"]) for row in chosen]
    yield calibrated(rests.number, "", file_value, measured, predicted, [f"{rests.mode} {case}" for case in wanted])


def read_launches(path: Path) -> list[dict[str, str]]:
    """The rows of a file in the form of validation/gpgpusim/launches.csv. Raises as `calibrate`."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise PptError(f"cannot read the launches: {error.strerror}", path=path) from None
    except UnicodeDecodeError:
        raise PptError("the launches are not text", path=path, hint="expected a CSV file in UTF-8") from None
    lines = list(csv.reader(text.splitlines()))
    missing = [name for name in COLUMNS if not lines or name not in lines[0]]
    if missing:
        message = f"missing column: {', '.join(missing)}"
        raise PptError(message, path=path, line=1, hint="the columns of validation/gpgpusim/launches.csv")
    errors, rows = [], []
    for number, cells in enumerate(lines[1:], 2):
        row = dict(zip(lines[0], cells, strict=False))
        wrong = _wrong(row, len(cells), len(lines[0]))
        if wrong is None:
            rows.append(row)
        else:
            errors.append(PptError(wrong[0], path=path, line=number, hint=wrong[1]))
    if errors:
        raise InputErrors(errors)
    return rows


def _wrong(row: dict[str, str], cells: int, columns: int) -> tuple[str, str | None] | None:
    """What is wrong with a row, and what would be right."""
    if cells != columns:
        return f"{cells} cells, the file has {columns} columns", None
    if row["mem"] not in MODES:
        return f"unknown mem '{row['mem']}'", did_you_mean(row["mem"], MODES)
    if not any(row["bench"].startswith(name) for name in PROGRAMS):
        return f"unknown bench '{row['bench']}'", did_you_mean(row["bench"], PROGRAMS)
    for name in ("launch", "gpu_sim_cycle", "regs"):
        if not row[name].isdecimal() or int(row[name]) < 1:
            return f"{name} is '{row[name]}', expected a positive number", None
    if not all(word.isdecimal() for word in row["args"].split()):
        return f"args is '{row['args']}', expected whole numbers", None
    return None
