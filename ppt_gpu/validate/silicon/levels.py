"""The set `levels`: typical kernels at level steady, held against level grid, which simulates every SM.

No hardware: level grid is ours, too. It shows what one SM does not see of the others. Launches are small, so that level
grid takes seconds; the shipped samples, kernels of the capture kit, and others (validation/levels): products whose
warps wait for copies, grids along one axis whose blocks share with others far off or number their tiles themselves, and
blocks that differ, in launches too large to be simulated whole at level steady. The table below has the arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ppt_gpu.common.paths import data_dir
from ppt_gpu.common.progress import parts
from ppt_gpu.validate.silicon.capture_runs import ptx_of
from ppt_gpu.validate.tables.rows import Row, is_asked
from ppt_gpu.workload.workload import Dim3

GPUS = ("v100", "a100", "k40")
#: kernels that only this set has
FOLDER = data_dir("validation") / "levels"


@dataclass(frozen=True)
class Case:
    """One launch; `what` says more than the kernel's name."""

    module: str
    kernel: str
    what: str
    grid: Dim3
    block: Dim3
    args: tuple[str, ...]
    gpus: tuple[str, ...] = GPUS

    @property
    def name(self) -> str:
        return f"{self.kernel} {self.what}"

    def cycles(self, gpu: str, level: str) -> float:
        """Predicted ones."""
        call = {"kernel": self.kernel, "grid": self.grid, "block": self.block, "args": self.args}
        return _cycles(ptx_of(self.module), gpu, level, **call)


@dataclass(frozen=True)
class Filed:
    """A workload file of FOLDER."""

    name: str
    file: str
    gpus: tuple[str, ...]

    def cycles(self, gpu: str, level: str) -> float:
        """Predicted ones."""
        return _cycles(FOLDER / self.file, gpu, level)


def _buffers(*counts: int) -> tuple[str, ...]:
    """Floats: random ones, and as the last buffer one that the kernel fills."""
    return (*(f"f32[{count}]=random:{number}" for number, count in enumerate(counts[:-1], 1)), f"f32[{counts[-1]}]")


def _square(
    module: str,
    kernel: str,
    side: int,
    per_block: Dim3,
    covered: tuple[int, int],
    inputs: int,
    gpus: tuple[str, ...] = GPUS,
) -> Case:
    """Of square matrices, `inputs` of them: blocks that cover so many elements along x and y."""
    grid = (side // covered[0], side // covered[1], 1)
    args = (*_buffers(*[side * side] * (inputs + 1)), f"i32={side}")
    return Case(module, kernel, f"{side}", grid, per_block, args, gpus)


CASES: tuple[Case | Filed, ...] = (
    _square("sgemm", "sgemm", 256, (16, 16, 1), (16, 16), 2),
    _square("sgemm", "sgemm", 512, (16, 16, 1), (16, 16), 2),
    _square("jacobi", "jacobi", 1024, (64, 4, 1), (64, 4), 1, (*GPUS, "gtx980")),  # as many SMs as blocks in a row
    _square("transpose_naive", "transpose_naive", 512, (32, 8, 1), (32, 32), 1),
    _square("transpose_tiled", "transpose_tiled", 512, (32, 8, 1), (32, 32), 1),
    Case("vecadd", "vecadd", "512K", (2048, 1, 1), (256, 1, 1), (*_buffers(*[1 << 19] * 3), "i32=524288")),
    *(
        Case(kernel, kernel, "128x128x32", (4, 16, 1), (32, 8, 1),
             (*_buffers(1 << 19, 1 << 19), "i32=128", "i32=128", "i32=32", "f32=-6.0", "f32=1.0"))
        for kernel in ("stencil7", "stencil7_shared")
    ),
    Case("histogram", "histogram", "512K", (160, 1, 1), (256, 1, 1),
         ("u32[524288]=random(0,4294967295):1", "u32[256]", "i32=524288")),
    Case("apps", "nbody", "4096", (16, 1, 1), (256, 1, 1), (*_buffers(4 * 4096, 4 * 4096), "i32=4096")),
    Case("apps", "convolution", "512", (16, 64, 1), (32, 8, 1), (*_buffers(1 << 18, 49, 1 << 18), "i32=512")),
    Case("apps", "gemv", "1024", (128, 1, 1), (256, 1, 1), (*_buffers(1 << 20, 1024, 1024), "i32=1024", "i32=1024")),
    Case("apps", "softmax", "512 rows of 1024", (512, 1, 1), (256, 1, 1), (*_buffers(1 << 19, 1 << 19), "i32=1024")),
    Filed("stencil on a line 1024", "stencil_line.toml", ("v100", "a100", "h100")),
    Filed("butterfly on a line 1M", "butterfly.toml", ("v100", "a100", "h100")),
    Filed("product rows on a line 1024", "product_rows.toml", ("v100", "a100", "h100")),
    Filed("product groups on a line 1024", "product_groups.toml", ("v100", "a100", "h100")),
    Filed("ragged copy 4096", "ragged_copy.toml", ("v100", "a100", "rtx4090")),
    Filed("chains skewed 4000", "chains.toml", ("v100", "a100", "rtx4090")),
    Filed("product cp.async 1024x1024x512", "cp_async.toml", ("a100", "h100")),
    Filed("product bulk 1024x1024x512", "bulk.toml", ("h100",)),
)  # fmt: skip


def rows(cases: Sequence[str] = ()) -> list[Row]:
    """Cycles at level grid, as the reference, and at level steady, of the cases whose name has one of `cases`."""
    found = [case for case in CASES if is_asked(case.name, cases)]
    gpus = dict.fromkeys(gpu for case in found for gpu in case.gpus)
    pairs = [(gpu, case) for gpu in gpus for case in found if gpu in case.gpus]
    return [_row(gpu, case) for gpu, case in parts(pairs, "cases")]


def _row(gpu: str, case: Case | Filed) -> Row:
    return Row(case.name, gpu, "grid", "steady", case.cycles(gpu, "grid"), case.cycles(gpu, "steady"), "cycles")


def _cycles(source: Path, gpu: str, level: str, **call: Any) -> float:
    from ppt_gpu.pipeline import predict

    return float(predict(source, gpu, level=level, **call).launches[0].value("kernel.cycles"))
