"""Launches that others measured on real GPUs.

From validation/measured, with a reader for each file. Those of validation/published are a set of their own.

One set of parameters per GPU: the shipped hardware file, with what the measurement states of its own conditions.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ppt_gpu.common.paths import data_dir
from ppt_gpu.validate.tables.rows import is_asked
from ppt_gpu.workload.workload import Dim3


@dataclass(frozen=True)
class Case:
    """One measured launch. `time` in us; `launched`: the time includes the launch overhead.

    `chosen`: values of hardware files that were chosen with this launch in view (chosen.csv).
    `then`: launches that the time covers, too. `form_of`: kernel that was measured in forms, such as tiles of all
    sizes, of which `kernel` is one. `again`: the same launch ran just before, and left in the L2 what it does.
    """

    name: str
    set: str
    gpu: str
    overrides: tuple[str, ...]
    module: str
    kernel: str
    grid: Dim3
    block: Dim3
    args: tuple[str, ...]
    registers: int | None
    time: float
    launched: bool
    chosen: str = ""
    shared: int = 0  # dynamic shared memory, bytes
    folder: str = "measured"  # of validation/
    then: tuple[Case, ...] = ()
    form_of: str = ""
    again: bool = False

    @property
    def counted(self) -> str:
        """The kernel that the launch is evidence of."""
        return f"{self.module}.{self.form_of or self.kernel}"

    @property
    def path(self) -> Path:
        """The file of the kernel."""
        return folder(self.folder) / "kernels" / f"{self.module}.ptx"

    @property
    def title(self) -> str:
        return f"{self.set} {self.gpu} {self.name}"


# --- stream_vs_occupancy.csv ----------------------------------------------------------------------------------------

#: GPU of the file -> ours, and the clock that the same boards ran at in the latency curves of the same source
STREAM_GPUS = {"v100": ("v100", "1380 MHz"), "a100_80": ("a100_80gb", "1410 MHz"), "a40": ("a40", "1740 MHz")}
#: kernel of the file -> ours, and the streams of 8 N bytes that its GB/s counts
STREAMS = {
    "init": ("init", 1),
    "read": ("read", 1),
    "scale": ("scale", 2),
    "triad": ("triad", 3),
    "3pt": ("stencil3", 2),
    "5pt": ("stencil5", 2),
}
STREAM_ELEMENTS = (1 << 27) + 2


def _streams() -> Iterator[Case]:
    n = STREAM_ELEMENTS
    for row in _table("stream_vs_occupancy"):
        gpu, clock = STREAM_GPUS[row["gpu"]]
        kernel, streams = STREAMS[row["kernel"]]
        size = int(row["block_size"])
        yield Case(
            name=f"{row['kernel']} {size} threads",
            set="stream",
            gpu=gpu,
            overrides=(f"sm.clock={clock}", "sm.max_blocks=2"),  # a shared array keeps a third one out
            module="stream",
            kernel=kernel,
            grid=(n // size + 1, 1, 1),
            block=(size, 1, 1),
            args=(*(f"f64[{n}]",) * 3, "f64=3", f"i64={n}"),
            registers=None,
            time=streams * 8 * n / float(row["GBps"]) / 1e3,
            launched=True,
        )


# --- kepler_microapps.csv -------------------------------------------------------------------------------------------

#: the K40c's clock is not stated: the base clock is assumed, as for all compute boards of that time
KEPLERS = {"Tesla K40c": "k40", "Tesla-K40": "k40", "Tesla-K20": "k20"}
LEAST_TIME = 20.0  # us: shorter ones are mostly launch


def _keplers() -> Iterator[Case]:
    for row in _table("kepler_microapps"):
        n = int(row["problem"])
        count = n if row["kernel"] == "vectorAdd" else n * n
        if float(row["time_us"]) > LEAST_TIME:
            arguments = (*(f"f32[{count}]",) * 3, f"i32={n}")
            yield _from_row(row, "kepler", KEPLERS[row["gpu"]], "kepler", row["kernel"], arguments, launched=False)


# --- sgemm_ladder.csv -----------------------------------------------------------------------------------------------

LADDER_GPUS = {"A100 80GB PCIe": "a100_pcie_80gb", "RTX A6000": "rtxa6000"}
#: kernel of the file -> ours; those that the source does not describe are left out
LADDER = {
    "naive": "column_from_x",
    "tiled16": "tiled16",
    "microtile2x2": "micro2x2",
    "microtile4x1": "micro4x1",
    "1: Naive": "row_from_x",
    "2: GMEM Coalescing": "coalesced",
    "3: SMEM Caching": "shared32",
    "4: 1D Blocktiling": "tiling1d",
    "5: 2D Blocktiling": "tiling2d",
    "6: Vectorized Mem Access": "vectorised",
}


def _ladder() -> Iterator[Case]:
    for row in _table("sgemm_ladder"):
        if row["kernel"] in LADDER:
            n = int(row["problem"].rpartition("=")[2])
            again = "average" in row["timing"] and int(row["n_runs"] or 1) > 1  # the run before left them in the L2
            matrices = (f"f32[{n * n}]" + ":copied" * again,) * 3
            gpu, kernel = LADDER_GPUS[row["gpu"]], LADDER[row["kernel"]]
            args: tuple[str, ...] = (*matrices, *(f"u64={n}",) * 3)
            if gpu == "rtxa6000":  # its kernels compute alpha A B + beta C
                args = (*(f"i32={n}",) * 3, "f32=1", *matrices[:2], "f32=0", matrices[2])
            yield _from_row(row, "sgemm", gpu, "sgemm", kernel, args, launched=True)


def _from_row(
    row: dict[str, str], kind: str, gpu: str, module: str, kernel: str, args: tuple[str, ...], *, launched: bool
) -> Case:
    x, y, z = (int(row[f"grid_{axis}"]) for axis in "xyz")
    u, v, w = (int(row[f"block_{axis}"]) for axis in "xyz")
    return Case(
        name=f"{row['kernel']} {row['problem']}",
        set=kind,
        gpu=gpu,
        overrides=(),
        module=module,
        kernel=kernel,
        grid=(x, y, z),
        block=(u, v, w),
        args=args,
        registers=int(row["regs"]) if row["regs"] else None,
        time=float(row["time_us"]),
        launched=launched,
    )


SOURCES: tuple[Callable[[], Iterator[Case]], ...] = (_streams, _keplers, _ladder)


def cases(texts: Sequence[str] = ()) -> list[Case]:
    """All cases whose "SET GPU NAME" contains one of `texts`."""
    return [case for case in with_chosen(case for make in SOURCES for case in make()) if is_asked(case.title, texts)]


def with_chosen(found: Iterable[Case]) -> Iterator[Case]:
    """The cases, with the values of hardware files that were chosen with each in view."""
    chosen = {f"{row['set']} {row['gpu']} {row['case']}": row["values"] for row in _table("chosen")}
    return (replace(case, chosen=chosen.get(case.title, "")) for case in found)


def _table(name: str) -> Iterator[dict[str, str]]:
    return lines(folder() / f"{name}.csv")


def lines(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="") as file:
        yield from csv.DictReader(file)


def folder(name: str = "measured") -> Path:
    return data_dir("validation") / name
