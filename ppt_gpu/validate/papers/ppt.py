"""The set `ppt`: the evaluation of the PPT paper (003): three applications on three GPUs and one that was to come.

Each application copies its input to the GPU, runs its kernel a thousand times and copies the result back. Blocks are
sampled, so the work does not grow with the grid; volumes take room on the host only where a sampled block reads them.
The paper shows its times in figures 6 to 9 only and prints none of them: what it says in words is in
`ppt_gpu.validate.papers.ppt_text`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ppt_gpu.common.paths import data_dir
from ppt_gpu.common.progress import parts
from ppt_gpu.comparison import compare
from ppt_gpu.inputs import open_workload
from ppt_gpu.report.compare import SIMULATION
from ppt_gpu.scale.host import LaunchTime, application_time
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.validate.mwp.machines import fitting
from ppt_gpu.validate.tables.rows import is_asked
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Copy, Dim3, Workload

RUNS = 1000  # of the kernel, section 4.3
#: GPU -> what differs from its file: code was compiled "to minimize the caching of global memory data"
GPUS: dict[str, tuple[str, ...]] = {
    "m2090": ("l1.caches_global=false",),
    "k40": (),
    "k6000": (),
    "pascal_ppt": (),
}
REFERENCE, PROJECTED = "k6000", "pascal_ppt"  # figure 9
MODULE = "ppt"  # the model of the paper, as `compare` has it
_SGEMM_TILE = 64  # its matrices are padded to whole tiles
#: room for the program's own variables and the gaps between buffers
_BESIDE_BUFFERS = 1 << 20


@dataclass(frozen=True)
class Application:
    """One of the paper's applications. `size`: side of the matrices or of the volume."""

    name: str
    sizes: tuple[int, ...]
    words: Callable[[int], int]  # f32 values of a matrix or volume
    inputs: int  # matrices or volumes that the host copies in; the result is one
    workload: Callable[[int], Workload]
    speedup: float  # figure 9 in words: Pascal over K6000

    def bytes(self, size: int) -> int:
        """Device memory: all matrices or volumes."""
        return 4 * self.words(size) * (self.inputs + 1)

    def copies(self, size: int) -> tuple[Copy, ...]:
        """Both transfers, from and to pageable memory: the paper does not say that it was pinned."""
        one = 4 * self.words(size)
        return Copy(self.inputs * one, "in", pinned=False), Copy(one, "out", pinned=False)


def _padded(size: int) -> int:
    return -(-size // _SGEMM_TILE) * _SGEMM_TILE


def _sgemm(size: int) -> Workload:
    n = _padded(size)
    arguments = [*[f"f32[{n * n}]"] * 3, f"i32={n}"]
    return _kernel(_own(), "sgemm", (n // 64, n // 16, 1), (16, 4, 1), arguments, registers=66)


def _stencil(size: int) -> Workload:
    arguments = [*[f"f32[{size**3}]"] * 2, f"i32={size}", "f32=-6", "f32=1"]
    grid = (-(-size // 32), -(-size // 4), size - 2)
    return _kernel(_own(), "stencil", grid, (32, 4, 1), arguments, registers=18)


def _opt_stencil(size: int) -> Workload:
    arguments = [*[f"f32[{size**3}]"] * 2, *[f"i32={size}"] * 3, "f32=-6", "f32=1"]
    path = data_dir("tasklists") / "stencil7_shared.ptx"
    return _kernel(path, "stencil7_shared", (-(-size // 32), -(-size // 8), 1), (32, 8, 1), arguments, registers=36)


def _own() -> Path:
    return data_dir("validation") / "ppt" / "kernels.ptx"


def _kernel(path: Path, kernel: str, grid: Dim3, block: Dim3, arguments: Sequence[str], registers: int) -> Workload:
    return open_workload(path, kernel=kernel, grid=grid, block=block, args=arguments, registers=registers)


def _powers(first: int, last: int) -> tuple[int, ...]:
    return tuple(1 << n for n in range(first.bit_length() - 1, last.bit_length()))


#: section 4.1 gives the ends of each range; the sizes between them are powers of two
APPLICATIONS = (
    Application("SGEMM", (412, *_powers(1024, 16384)), lambda n: _padded(n) ** 2, 2, _sgemm, 2.5),
    Application("STENCIL", _powers(16, 512), lambda n: n**3, 1, _stencil, 1.5),
    Application("OPT_STENCIL", _powers(16, 1024), lambda n: n**3, 1, _opt_stencil, 2.5),
)


@dataclass(frozen=True)
class Case:
    """One application of one size on one GPU. Times in s, of the whole application; None where it does not fit."""

    application: str
    gpu: str
    size: int
    needed: int  # B of device memory
    memory: int  # B that the GPU has
    simulation: float | None
    module: float | None  # the PPT GPU module as published
    kernel: float | None  # one run, simulated
    limiter: str = "out of memory"


def cases(texts: Sequence[str] = ()) -> list[Case]:
    """Predict all cases whose "APPLICATION gpu size" contains one of `texts` (all when empty)."""
    chosen = list(_chosen(texts))
    return [_case(application, size, gpu) for application, size, gpu in parts(chosen, "cases")]


def _chosen(texts: Sequence[str]) -> Iterator[tuple[Application, int, str]]:
    """By application and size, so that the GPUs after the first find the traces of the first."""
    for application in APPLICATIONS:
        for size in application.sizes:
            for gpu in GPUS:
                title = f"{application.name} {gpu} {size}"
                if is_asked(title, texts):
                    yield application, size, gpu


def _case(application: Application, size: int, name: str) -> Case:
    gpu, needed = load_gpu(name, GPUS[name]), application.bytes(size)
    known = application.name, name, size, needed, int(gpu.dram.size)
    if needed > gpu.dram.size:
        return Case(*known, None, None, None)
    budget = Budget(memory=needed + _BESIDE_BUFFERS)
    (launch,) = compare(fitting(application.workload(size), gpu), gpu, only=[MODULE], budget=budget).launches
    simulation, module = launch.row(SIMULATION), launch.row(MODULE)
    assert simulation.time_s is not None and module.time_s is not None  # both apply to every kernel
    whole = _whole(application, size, gpu, simulation.time_s)
    by_module = _whole(application, size, gpu, module.time_s)
    return Case(*known, whole, by_module, simulation.time_s, simulation.limiter)


def _whole(application: Application, size: int, gpu: Gpu, kernel: float) -> float:
    """Seconds of both copies and all runs of a kernel."""
    launches = [LaunchTime(application.name, kernel, RUNS)]
    return application_time(launches, application.copies(size), gpu.host).total


@dataclass(frozen=True)
class Speedup:
    """Figure 9: how much faster the projected GPU is, by size."""

    application: str
    printed: float
    simulation: dict[int, float]  # size -> ratio
    module: dict[int, float]


def speedups(found: Sequence[Case]) -> list[Speedup]:
    """Of every application of which both GPUs of figure 9 are there."""
    made = []
    for application in APPLICATIONS:
        own = {(case.gpu, case.size): case for case in found if case.application == application.name}
        ratios: tuple[dict[int, float], dict[int, float]] = ({}, {})
        for size in application.sizes:
            before, after = own.get((REFERENCE, size)), own.get((PROJECTED, size))
            if before and after and before.simulation and after.simulation and before.module and after.module:
                ratios[0][size] = before.simulation / after.simulation
                ratios[1][size] = before.module / after.module
        if ratios[0]:
            made.append(Speedup(application.name, application.speedup, *ratios))
    return made
