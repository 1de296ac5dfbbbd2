"""The set `gpgpusim`: every launch of validation/gpgpusim/launches.csv, predicted and held against its cycles.

The launches of a program run in order, as they did in the reference.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from numpy.typing import NDArray

from ppt_gpu.common.paths import data_dir
from ppt_gpu.common.progress import parts
from ppt_gpu.validate.gpgpusim.programs import programs
from ppt_gpu.validate.tables.rows import Row, is_asked
from ppt_gpu.workload.workload import Workload

if TYPE_CHECKING:
    from ppt_gpu.report.result.result import LaunchResult

GPUS = {"SM7_QV100": "gpgpusim_qv100", "SM2_GTX480": "gpgpusim_gtx480"}
PTX = {"SM7_QV100": "ptx70", "SM2_GTX480": "ptx35"}
MODES: dict[str, tuple[str, ...]] = {
    "default": (),
    "default+coldL2": (),
    "perfect": ("perfect_memory=true",),
    "default+lat5000": (f"host.launch_overhead={5000 / 1132e6} s",),  # 5000 cycles of SM7_QV100, its only GPU
}


def rows(cases: Sequence[str] = (), level: str = "steady") -> list[Row]:
    """Predict, at `level`, every launch of the two configurations (all modes) whose case name has one of `cases`."""
    found = [row for members in parts(chosen(cases), "programs") for row in predict_program(members, level=level)]
    return in_order(found, cases)


def chosen(cases: Sequence[str]) -> list[list[dict[str, str]]]:
    """The reference's launches of each program one of whose case names has one of `cases` (all when empty)."""
    groups: dict[tuple[str, str, str, str], list[dict[str, str]]] = {}
    for row in reference_rows():
        if row["config"] in GPUS:
            groups.setdefault((row["config"], row["mem"], row["bench"], row["args"]), []).append(row)
    named = [(members, [case_name(member) for member in members]) for members in groups.values()]
    return [members for members, names in named if any(is_asked(name, cases) for name in names)]


def in_order(found: Sequence[Row], cases: Sequence[str]) -> list[Row]:
    """Those of the rows that are asked for, by configuration and mode."""
    wanted = [row for row in found if is_asked(row.case, cases)]
    return sorted(wanted, key=lambda row: (row.gpu, row.mode))


def case_name(row: dict[str, str]) -> str:
    """A launch's name: "pchase(256)#3"."""
    size = row["args"].replace(" ", ",")
    return f"{row['bench']}({size})#{row['launch']}"


def reference_path() -> Path:
    """The file of the reference's launches."""
    return _folder() / "launches.csv"


def reference_rows() -> Iterator[dict[str, str]]:
    """The reference's launches."""
    with reference_path().open(newline="") as file:
        yield from csv.DictReader(file)


def _folder() -> Path:
    return data_dir("validation") / "gpgpusim"


@dataclass(frozen=True)
class Part:
    """Launches of a program that share data: the workload, what its buffers hold, and the reference's rows."""

    workload: Workload
    contents: Mapping[str, NDArray]
    rows: tuple[dict[str, str] | None, ...]  # [launches], None where the reference has none


def parts_of(members: Sequence[dict[str, str]]) -> Iterator[Part]:
    """The program with the launches `members`, part by part."""
    config, mode, bench, arguments = (members[0][name] for name in ("config", "mem", "bench", "args"))
    by_launch = {int(member["launch"]): member for member in members}
    cold = mode == "default+coldL2"
    first = 1
    for part in programs(bench, arguments):
        held = tuple(by_launch.get(first + index) for index in range(len(part.launches)))
        first += len(held)
        launches = tuple(
            launch if row is None else replace(launch, registers=int(row["regs"]))
            for row, launch in zip(held, part.launches, strict=True)
        )
        buffers = tuple(replace(b, copied=b.copied and not cold) for b in part.buffers)
        path = str(_folder() / PTX[config] / f"{part.module}.ptx")
        yield Part(Workload(bench, path, path, launches, buffers), part.contents, held)


def row_of(member: dict[str, str], launch: LaunchResult) -> Row:
    """A launch of the reference beside its prediction."""
    cycles = float(launch.value("kernel.cycles"))
    overhead = float(launch.value("kernel.launch_overhead")) * float(launch.value("gpu.clock"))
    gpu, reference = GPUS[member["config"]], float(member["gpu_sim_cycle"])
    return Row(case_name(member), gpu, member["mem"], launch.level, reference, cycles + overhead, "cycles")


def predict_program(
    members: Sequence[dict[str, str]], overrides: Sequence[str] = (), level: str = "steady"
) -> list[Row]:
    """One run of the program with the launches `members`; one row a launch. `overrides`: "l1.latency=25" and so on."""
    from ppt_gpu.pipeline import predict

    changed = [*MODES[members[0]["mem"]], *overrides]
    found = []
    for part in parts_of(members):
        gpu = GPUS[members[0]["config"]]
        result = predict(part.workload, gpu, overrides=changed, contents=part.contents, level=level)
        found += [row_of(row, launch) for row, launch in zip(part.rows, result.launches, strict=True) if row]
    return found
