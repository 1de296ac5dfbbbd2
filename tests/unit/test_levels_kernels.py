"""The kernels of validation/levels: what they compute."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from ppt_gpu.ptx import load_module
from ppt_gpu.validate.silicon.levels import FOLDER
from ppt_gpu.workload.argument_text import parse_argument
from ppt_gpu.workload.workload import Buffer

sys.path.insert(0, str(Path(__file__).parent / "emulator"))
from jit_kernels import Case, check_against_interpreter, integer, pointer

SIDE, DEPTH = 64, 160


@pytest.mark.parametrize("file", ["cp_async", "bulk"])
def test_products(file: str) -> None:
    """Small integers, whose sums are exact; five rounds of a ring of four stages."""
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, (SIDE, DEPTH)).astype("f2") for _ in range(2))
    maps = [
        parse_argument(f"tensormap({name}, dims={DEPTH}x{SIDE}, box=32x64, type=f16, swizzle=64B)", 0)[0]
        for name in ("a", "b")
    ]
    given = maps if file == "bulk" else [pointer("a"), pointer("b")]
    arguments = [*given, pointer("c"), integer(SIDE), integer(DEPTH)]
    buffers = [Buffer("a", "f16", a.size), Buffer("b", "f16", b.size), Buffer("c", "f32", SIDE * SIDE)]
    grid, threads = (SIDE // 64, SIDE // 64), {"cp_async": 128, "bulk": 160}[file]
    module = load_module(FOLDER / f"{file}.ptx")
    case = Case(module, "product", grid, (threads,), arguments, buffers, fill={"a": a.ravel(), "b": b.ravel()})
    memory, _ = check_against_interpreter(case)
    assert np.array_equal(memory.view("c", "f4").reshape(SIDE, SIDE), a.astype("f4") @ b.astype("f4").T)


def test_ragged_copy() -> None:
    """65 segments of 40 elements, the 64th of them of 120."""
    count, length, longer = 65, 40, 3
    n = (count - 1 + longer) * length
    given = np.arange(n + 9, dtype="f4")
    arguments = [pointer("in"), pointer("out"), integer(length), integer(longer)]
    buffers = [Buffer("in", "f32", n + 9), Buffer("out", "f32", n + 9)]
    case = Case(
        load_module(FOLDER / "ragged.ptx"), "ragged_copy", (count,), (32,), arguments, buffers, fill={"in": given}
    )
    memory, _ = check_against_interpreter(case)
    assert np.array_equal(memory.view("out", "f4"), np.where(np.arange(n + 9) < n, given, 0))


def test_chains() -> None:
    """Blocks of 4 + 100 / (1 + draw) steps."""
    draw, mask = np.array([0, 9, 255], "u4"), 127
    following = np.random.default_rng(7).permutation(mask + 1).astype("u4")
    arguments = [pointer("draw"), pointer("next"), pointer("out"), integer(100), integer(mask)]
    buffers = [Buffer("draw", "u32", 3), Buffer("next", "u32", mask + 1), Buffer("out", "u32", 96)]
    module, fill = load_module(FOLDER / "ragged.ptx"), {"draw": draw, "next": following}
    memory, _ = check_against_interpreter(Case(module, "chains", (3,), (32,), arguments, buffers, fill=fill))
    wanted = np.arange(96, dtype="u4")
    for block, steps in enumerate((104, 14, 4)):
        for _ in range(steps):
            wanted[32 * block : 32 * block + 32] = following[wanted[32 * block : 32 * block + 32] & mask]
    assert np.array_equal(memory.view("out", "u4"), wanted)


def test_rounds() -> None:
    """Blocks of 8 + 100 / (1 + draw) rounds; rounding as the kernel's, one operation after another."""
    draw = np.array([0, 9, 255], "u4")
    buffers = [Buffer("draw", "u32", 3), Buffer("out", "f32", 96)]
    arguments = [pointer("draw"), pointer("out"), integer(100)]
    module = load_module(FOLDER / "ragged.ptx")
    memory, _ = check_against_interpreter(Case(module, "rounds", (3,), (32,), arguments, buffers, fill={"draw": draw}))
    given = np.array([np.arange(96), np.full(96, 1), np.full(96, 2), np.full(96, 3)], "f4")
    for block, number in enumerate((108, 18, 8)):
        for _ in range(number):
            own = given[:, 32 * block : 32 * block + 32]
            own[:] = own * np.float32(0.5) + np.arange(1, 5, dtype="f4")[:, None]
    assert np.allclose(memory.view("out", "f4"), given.sum(axis=0), rtol=1e-6)


@pytest.mark.parametrize(("kernel", "number"), [("stencil", 40), ("butterfly", 256)])
def test_lines(kernel: str, number: int) -> None:
    """Small integers; rows of 40, and elements 256 apart."""
    n = 2048
    given = np.random.default_rng(5).integers(-8, 9, n).astype("f4")
    arguments = [pointer("in"), pointer("out"), integer(number), integer(n)]
    buffers = [Buffer("in", "f32", n), Buffer("out", "f32", n)]
    case = Case(load_module(FOLDER / "line.ptx"), kernel, (n // 128,), (128,), arguments, buffers, fill={"in": given})
    memory, _ = check_against_interpreter(case)
    at = np.arange(n)
    if kernel == "stencil":
        wanted = np.zeros(n, "f4")
        inner = at[(at >= number) & (at < n - number) & (at % number != 0) & (at % number != number - 1)]
        around = [given[inner + step] for step in (0, -1, 1, -number, number)]
        wanted[inner] = np.float32(0.2) * sum(around)
    else:
        wanted = np.where(at & number, given[at ^ number] - given, given + given[at ^ number])
    assert np.array_equal(memory.view("out", "f4"), wanted)


@pytest.mark.parametrize("kernel", ["product_rows", "product_groups"])
def test_products_whose_blocks_number_their_tiles(kernel: str) -> None:
    """Small integers; eleven rows of tiles: the last group has three."""
    side = 704
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-4, 5, (side, side)).astype("f4") for _ in range(2))
    buffers = [Buffer(name, "f32", side * side) for name in "abc"]
    arguments = [*map(pointer, "abc"), integer(side)]
    module, fill = load_module(FOLDER / "tiles.ptx"), {"a": a.ravel(), "b": b.ravel()}
    case = Case(module, kernel, (121,), (256,), arguments, buffers, fill=fill)
    memory, _ = case.run(trace=False)
    assert np.array_equal(memory.view("c", "f4").reshape(side, side), a @ b)
