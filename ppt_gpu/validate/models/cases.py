"""The launches on which the models are held against the simulation: samples, reference programs, own kernels.

The own kernels (validation/models/kernels.cu) spread over memory divergence (lanes 1 to 32 elements apart, random
places in tables that fit the L1, the L2 or neither), branch divergence, and arithmetic for each load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.paths import data_dir
from ppt_gpu.validate.gpgpusim.programs import PROGRAMS, Program
from ppt_gpu.validate.tables.rows import is_asked
from ppt_gpu.workload.workload import Workload

BLOCKS, BLOCK = 512, 256  # of the own kernels: eight times what 16 SMs of 32 warps hold
THREADS = BLOCKS * BLOCK
SAMPLES = (
    "vecadd", "saxpy", "transpose_naive", "transpose_tiled", "reduction", "sgemm", "histogram", "jacobi", "mandelbrot",
    "spmv", "stencil7", "stencil7_shared",
)  # fmt: skip
#: launches of the reference programs, at sizes that fill the machine several times
REFERENCE = {
    "sgemm16": (512, 16),
    "stencil_naive": (128, 128, 32, 0),
    "stencil_25d": (256, 128, 32, 1),
    "transcend": (THREADS, 8),
    "divergent": (THREADS // 2,),
    "ilp_fma": (512, 64),
}
#: strided copies: loads of 2, 8 and 32 elements apart, and stores of 2 and 32; by launch of the program
STRIDED = {"copy_2": 1, "copy_8": 3, "copy_32": 5, "scatter_2": 6, "scatter_32": 8}
#: elements apart, loads, multiply-adds for each load
MIXED = ((1, 4, 0), (1, 4, 8), (1, 4, 64), (2, 4, 8), (4, 4, 8), (8, 4, 8), (16, 4, 8), (32, 4, 0), (32, 4, 64))
#: elements of the table: 16 KiB, 512 KiB, 16 MiB; multiply-adds for each load
GATHER = ((1 << 12, 4), (1 << 17, 4), (1 << 22, 0), (1 << 22, 64))


@dataclass(frozen=True)
class Case:
    """One launch. Of a sample with several, the longest."""

    name: str
    workload: str | Workload
    contents: dict[str, NDArray] = field(default_factory=dict)


def model_cases(texts: Sequence[str] = ()) -> list[Case]:
    """All cases whose name contains one of `texts`, all when empty."""
    return [make() for name, make in _cases().items() if is_asked(name, texts)]


def case_names() -> list[str]:
    """Of all cases, in order."""
    return list(_cases())


def _cases() -> dict[str, Callable[[], Case]]:
    """How each case is made, by name."""
    found: dict[str, Callable[[], Case]] = {name: partial(Case, name, name) for name in SAMPLES}
    found |= {name: partial(_reference, name, name, size) for name, size in REFERENCE.items()}
    found |= {name: partial(_reference, name, "strided", (THREADS,), number) for name, number in STRIDED.items()}
    own = {name: (kernel, size, numbers) for name, kernel, size, numbers in _own()}
    return found | {name: partial(_program, name, *parts) for name, parts in own.items()}


def _reference(name: str, bench: str, size: tuple[int, ...], launch: int = 0) -> Case:
    """One launch of a reference program."""
    made = PROGRAMS[bench](*size)
    assert isinstance(made, Program)
    return _case(name, replace(made, launches=[made.launches[launch]]), "gpgpusim/ptx70")


def _case(name: str, program: Program, folder: str) -> Case:
    path = str(data_dir("validation") / folder / f"{program.module}.ptx")
    workload = Workload(name, path, path, tuple(program.launches), tuple(program.buffers))
    return Case(name, workload, program.contents)


def _own() -> Iterator[tuple[str, str, int, tuple[int, ...]]]:
    """Name, kernel, elements of the table and integer arguments of the cases of validation/models/kernels.cu."""
    for stride, loads, flops in MIXED:
        yield f"mixed_{stride}_{flops}", "mixed", 1 << 22, ((1 << 22) - 1, stride, loads, flops)
    for size, flops in GATHER:
        yield f"gather_{size * 4 >> 10}K_{flops}", "gather", size, (size - 1, 8, flops)
    for ways in (2, 8, 32):
        yield f"branches_{ways}", "branches", THREADS, (ways, 32)
    for shift, by in ((0, "thread"), (5, "warp")):
        yield f"trips_by_{by}", "trips", 1 << 20, ((1 << 20) - 1, shift, 16)
    for kernel in ("invert_mapping", "scatter_rows"):
        yield kernel, kernel, THREADS * 16, (THREADS, 16)
    yield "special", "special", THREADS, (32,)
    for stride in (1, 8):
        yield f"banks_{stride}", "banks", 1 << 17, (stride, 64)
    yield "chase_64K", "chase", 1 << 14, ((1 << 14) - 1, 16)
    yield "phases", "phases", 1 << 20, ((1 << 20) - 1, 8, 16)


def _program(name: str, kernel: str, inputs: int, scalars: tuple[int, ...]) -> Case:
    """512 blocks of 256 threads: a table, the results, and integers."""
    outputs = max(inputs, THREADS) if kernel in ("invert_mapping", "scatter_rows") else THREADS
    program = Program("kernels")
    if kernel == "chase":
        program.copied("in", ((np.arange(inputs) * 1103 + 12345) % inputs).astype(np.int32), "s32")
        program.allocated("out", outputs, "s32")
    else:
        program.copied("in", (np.arange(inputs) % 251).astype(np.float32), "f32")
        program.allocated("out", outputs)
    numbers = tuple(("u32", float(number)) for number in scalars)
    program.launch(kernel, (BLOCKS, 1, 1), (BLOCK, 1, 1), "in", "out", *numbers)
    return _case(name, program, "models")
