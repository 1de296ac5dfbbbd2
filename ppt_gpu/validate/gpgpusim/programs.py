"""The programs of validation/gpgpusim/kernels: launches, arguments and buffer contents as in the `main` of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.workload.workload import Argument, Buffer, Dim3, Launch


@dataclass
class Program:
    """One program: its module, buffers with their content, and launches."""

    module: str
    buffers: list[Buffer] = field(default_factory=list)
    contents: dict[str, NDArray] = field(default_factory=dict)
    launches: list[Launch] = field(default_factory=list)

    def copied(self, name: str, values: NDArray, type_: str) -> str:
        """A buffer that the host filled."""
        self.buffers.append(Buffer(name, type_, len(values), copied=True))
        self.contents[name] = values
        return name

    def allocated(self, name: str, count: int, type_: str = "f32") -> str:
        self.buffers.append(Buffer(name, type_, count))
        return name

    def launch(self, kernel: str, grid: Dim3, block: Dim3, *arguments: str | tuple[str, float]) -> None:
        """Pointers by buffer name, scalars as (type, value)."""
        packed = tuple(
            Argument("u64", buffer=a) if isinstance(a, str) else Argument(a[0], a[1] if a[0][0] == "f" else int(a[1]))
            for a in arguments
        )
        self.launches.append(Launch(kernel, grid, block, packed))


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def _vecadd(n: int) -> Program:
    p = Program("vecadd")
    i = np.arange(n, dtype=np.float32)
    p.copied("a", i * np.float32(0.5), "f32")
    p.copied("b", np.float32(n) - i, "f32")
    p.allocated("c", n)
    p.launch("_Z6vecaddPKfS0_Pfi", (_ceil(n, 256), 1, 1), (256, 1, 1), "a", "b", "c", ("u32", n))
    return p


def _saxpy(n: int) -> Program:
    p = Program("saxpy")
    i = np.arange(n)
    p.copied("x", (i % 1000).astype(np.float32), "f32")
    p.copied("y", (i % 77).astype(np.float32), "f32")
    p.launch("_Z5saxpyifPKfPf", (120, 1, 1), (256, 1, 1), ("u32", n), ("f32", 2.0), "x", "y")
    return p


def _sgemm(n: int, tile: int) -> Program:
    p = Program("sgemm")
    i = np.arange(n * n)
    p.copied("a", ((i * 7) % 13 - 6).astype(np.float32), "f32")
    p.copied("b", ((i * 5) % 11 - 5).astype(np.float32), "f32")
    p.allocated("c", n * n)
    kernel = f"_Z11sgemm_tiledILi{tile}EEvPKfS1_Pfi"
    p.launch(kernel, (n // tile, n // tile, 1), (tile, tile, 1), "a", "b", "c", ("u32", n))
    return p


def _stencil(nx: int, ny: int, nz: int, mode: int) -> Program:
    p = Program("stencil")
    n = nx * ny * nz
    p.copied("in", ((np.arange(n) * 31) % 101).astype(np.float32), "f32")
    p.copied("out", np.zeros(n, np.float32), "f32")
    scalars = (("u32", nx), ("u32", ny), ("u32", nz), ("f32", 0.5), ("f32", 0.1))
    if mode == 0:
        p.launch("_Z14stencil7_naivePKfPfiiiff", (nx // 32, ny // 4, nz // 2), (32, 4, 2), "in", "out", *scalars)
    else:
        p.launch("_Z12stencil7_25dPKfPfiiiff", (nx // 32, ny // 8, 1), (32, 8, 1), "in", "out", *scalars)
    return p


def _transcend(n: int, steps: int) -> Program:
    p = Program("transcend")
    p.copied("in", ((np.arange(n) % 628) * 0.01).astype(np.float32), "f32")
    p.allocated("out", n)
    p.launch("_Z9transcendPKfPfii", (_ceil(n, 256), 1, 1), (256, 1, 1), "in", "out", ("u32", n), ("u32", steps))
    return p


def _transpose(n: int) -> Program:
    p = Program("transpose")
    p.copied("in", np.arange(n * n, dtype=np.float32), "f32")
    p.allocated("out", n * n)
    kernels = ("_Z15transpose_naivePKfPfi", "_Z15transpose_tiledILi0EEvPKfPfi", "_Z15transpose_tiledILi1EEvPKfPfi")
    for kernel in kernels:
        p.launch(kernel, (n // 32, n // 32, 1), (32, 8, 1), "in", "out", ("u32", n))
    return p


def _divergent(n: int) -> Program:
    p = Program("divergent")
    values = np.empty(n, np.int32)
    state = 12345
    for i in range(n):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        values[i] = (state >> 9) & 0xFFFF
    p.copied("in", values, "s32")
    p.allocated("out", n, "s32")
    p.launch("_Z9divergentPKiPii", (_ceil(n, 128), 1, 1), (128, 1, 1), "in", "out", ("u32", n))
    return p


def _strided(n: int) -> Program:
    p = Program("strided")
    p.copied("in", np.arange(n * 32, dtype=np.float32), "f32")
    p.allocated("out", n * 32)
    for kernel, strides in (("_Z12strided_copyPKfPfii", (1, 2, 4, 8, 16, 32)), ("_Z12scatter_copyPKfPfii", (2, 8, 32))):
        for stride in strides:
            p.launch(kernel, (n // 256, 1, 1), (256, 1, 1), "in", "out", ("u32", n), ("u32", stride))
    return p


def _ilp_fma(blocks: int, steps: int) -> Program:
    p = Program("ilp_fma")
    p.allocated("out", blocks * 256)
    p.launch("_Z6fma_tpPfffi", (blocks, 1, 1), (256, 1, 1), "out", ("f32", 0.5), ("f32", 1.0), ("u32", steps))
    return p


def _alulat() -> Program:
    p = Program("alulat")
    chains: tuple[tuple[str, str, float, float], ...] = (
        ("_Z7ch_ffmaPfffPi", "f32", 1.01, 0.5),
        ("_Z7ch_faddPfffPi", "f32", 1.0, 0.5),
        ("_Z7ch_imadPiiiS_", "u32", 3, 5),
        ("_Z7ch_ixorPiiiS_", "u32", 3, 5),
        ("_Z6ch_sinPfffPi", "f32", 1.0, 0.0),
        ("_Z8ch_rsqrtPfffPi", "f32", 2.0, 0.0),
        ("_Z7ch_dfmaPdddPi", "f64", 1.01, 0.5),
    )
    for number, (kernel, type_, a, b) in enumerate(chains):
        out = p.allocated(f"out{number}", 32, type_)
        cycles = p.allocated(f"cycles{number}", 1, "s32")
        p.launch(kernel, (1, 1, 1), (32, 1, 1), out, (type_, a), (type_, b), cycles)
    return p


def _pchase(iterations: int) -> list[Program]:
    """A program of its own for each chain: it is copied just before its launch, and freed after it.

    The simulator gives no memory out again: a chain stands behind all before it.
    """
    parts = []
    shapes = ((4096, 128, 1), (16384, 128, 1), (262144, 512, 1), (1 << 22, 4096, 1), (1 << 22, 4096, 0))
    for number, (size, stride, warm) in enumerate(shapes):
        count, step = size // 4, stride // 4
        p = Program("pchase")
        out = p.allocated("out", 4, "u32")
        if number:
            p.allocated("earlier", sum(size for size, _, _ in shapes[:number]), "u8")
        chain = p.copied(f"p{number}", ((np.arange(count) + step) % count).astype(np.uint32), "u32")
        laps = count // step if warm else 0
        scalars = (("u32", iterations), ("u32", laps))
        p.launch("_Z13pchase_globalPKjPjii", (1, 1, 1), (1, 1, 1), chain, out, *scalars)
        parts.append(p)
    p = Program("pchase")
    out = p.allocated("out", 4, "u32")
    p.launch("_Z13pchase_sharedPji", (1, 1, 1), (1, 1, 1), out, ("u32", iterations))
    return [*parts, p]


def _reduction(n: int) -> Program:
    p = Program("reduction")
    first = _ceil(n, 512)
    second = _ceil(first, 512)
    p.copied("in", (np.arange(n) % 8).astype(np.float32), "f32")
    p.allocated("partial", first)
    p.allocated("result", second)
    p.launch("_Z13reduce_sharedPKfPfi", (first, 1, 1), (256, 1, 1), "in", "partial", ("u32", n))
    p.launch("_Z13reduce_sharedPKfPfi", (second, 1, 1), (256, 1, 1), "partial", "result", ("u32", first))
    return p


#: bench name up to the first size suffix -> the program of its arguments
PROGRAMS: dict[str, Callable[..., Program | list[Program]]] = {
    "vecadd": _vecadd,
    "saxpy": _saxpy,
    "sgemm16": _sgemm,
    "sgemm32": _sgemm,
    "stencil_25d": _stencil,
    "stencil_naive": _stencil,
    "transcend": _transcend,
    "transpose": _transpose,
    "divergent": _divergent,
    "strided": _strided,
    "ilp_fma": _ilp_fma,
    "alulat": _alulat,
    "pchase": _pchase,
    "reduction": _reduction,
}


def programs(bench: str, arguments: str) -> list[Program]:
    """The parts of a reference row's program, which share no data. `bench` may carry a size suffix ("sgemm16_256")."""
    key = max((name for name in PROGRAMS if bench.startswith(name)), key=len)
    made = PROGRAMS[key](*(int(word) for word in arguments.split()))
    return made if isinstance(made, list) else [made]
