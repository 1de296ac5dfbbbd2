"""The launches on which the models are held against the simulation: samples, reference programs, own kernels.

The own kernels (validation/models/kernels.cu) spread over memory divergence (lanes 1 to 32 elements apart, random
places in tables that fit the L1, the L2 or neither), branch divergence, and arithmetic for each load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.exec.workload import Workload
from ppt_gpu.paths import data_dir
from ppt_gpu.validate.gpgpusim import PROGRAMS, Program

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
    found = [Case(name, name) for name in SAMPLES]
    for name, size in REFERENCE.items():
        made = PROGRAMS[name](*size)
        assert isinstance(made, Program)
        found.append(_case(name, made, "gpgpusim/ptx70"))
    found += _strides()
    found += [_case(name, program, "models") for name, program in _own().items()]
    return [case for case in found if not texts or any(text in case.name for text in texts)]


def _case(name: str, program: Program, folder: str) -> Case:
    path = str(data_dir("validation") / folder / f"{program.module}.ptx")
    workload = Workload(name, path, path, tuple(program.launches), tuple(program.buffers))
    return Case(name, workload, program.contents)


def _strides() -> list[Case]:
    """Strided copies: scattered loads of 2, 8 and 32, and stores of 2 and 32 elements apart."""
    program = PROGRAMS["strided"](THREADS)
    assert isinstance(program, Program)
    picked = {"copy_2": 1, "copy_8": 3, "copy_32": 5, "scatter_2": 6, "scatter_32": 8}
    found = []
    for name, number in picked.items():
        one = Program(program.module, program.buffers, program.contents, [program.launches[number]])
        found.append(_case(name, one, "gpgpusim/ptx70"))
    return found


def _own() -> dict[str, Program]:
    found = {}
    for stride, loads, flops in MIXED:
        scalars = ((1 << 22) - 1, stride, loads, flops)
        found[f"mixed_{stride}_{flops}"] = _program("mixed", 1 << 22, THREADS, scalars)
    for size, flops in GATHER:
        found[f"gather_{size * 4 >> 10}K_{flops}"] = _program("gather", size, THREADS, (size - 1, 8, flops))
    for ways in (2, 8, 32):
        found[f"branches_{ways}"] = _program("branches", THREADS, THREADS, (ways, 32))
    for shift, by in ((0, "thread"), (5, "warp")):
        found[f"trips_by_{by}"] = _program("trips", 1 << 20, THREADS, ((1 << 20) - 1, shift, 16))
    for kernel in ("invert_mapping", "scatter_rows"):
        found[kernel] = _program(kernel, THREADS * 16, THREADS * 16, (THREADS, 16))
    found["special"] = _program("special", THREADS, THREADS, (32,))
    for stride in (1, 8):
        found[f"banks_{stride}"] = _program("banks", 1 << 17, THREADS, (stride, 64))
    found["chase_64K"] = _program("chase", 1 << 14, THREADS, ((1 << 14) - 1, 16))
    found["phases"] = _program("phases", 1 << 20, THREADS, ((1 << 20) - 1, 8, 16))
    return found


def _program(kernel: str, inputs: int, outputs: int, scalars: tuple[int, ...]) -> Program:
    """512 blocks of 256 threads: a table, the results, and integers."""
    program = Program("kernels")
    if kernel == "chase":
        program.copied("in", ((np.arange(inputs) * 1103 + 12345) % inputs).astype(np.int32), "s32")
        program.allocated("out", outputs, "s32")
    else:
        program.copied("in", (np.arange(inputs) % 251).astype(np.float32), "f32")
        program.allocated("out", outputs)
    numbers = tuple(("u32", float(number)) for number in scalars)
    program.launch(kernel, (BLOCKS, 1, 1), (BLOCK, 1, 1), "in", "out", *numbers)
    return program
