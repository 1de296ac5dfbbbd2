"""Kernels of CUB as nvcc finds them, launched as CUB's host code launches them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ppt_gpu import launch
from ppt_gpu.frontends.cuda_source import compile_cuda
from ppt_gpu.frontends.tools import find

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not find("nvcc"), reason="needs nvcc, which has CUB")]

SOURCE = """
#include <cub/cub.cuh>
struct Even { __host__ __device__ bool operator()(int v) const { return v % 2 == 0; } };
cudaError_t all(void *t, size_t &n, const int *in, int *out, int *num, int count, unsigned *k, unsigned *l) {
  cub::DeviceSelect::If(t, n, in, out, num, count, Even{});
  cub::DeviceScan::ExclusiveSum(t, n, in, out, count);
  return cub::DeviceRadixSort::SortKeys(t, n, k, l, count);
}
"""
COUNT = 20_000
NONE = np.uint64(0)  # a null pointer
EMPTY = bytes(1)  # an empty class
#: items of a tile, as these kernels have them on sm_80
SELECT, SCAN, SORT = 4608, 3840, 8064


@pytest.fixture(scope="module")
def cub(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("cub") / "all.cu"
    path.write_text(SOURCE)
    return compile_cuda(path, (8, 0), ["-std=c++17"]).text


def tiles(size: int) -> int:
    return -(-COUNT // size)


def state(size: int) -> tuple[np.ndarray]:
    """A ScanTileState: a pointer to the words of all tiles, behind 32 of padding."""
    return (np.zeros(tiles(size) + 32, np.uint64),)


def test_select(cub: str) -> None:
    x = np.random.default_rng(2).integers(0, 1000, COUNT, dtype=np.int32)
    out, count, tile = np.zeros_like(x), np.zeros(1, np.int32), state(SELECT)
    launch(cub, kernel="DeviceCompactInitKernel", grid=1, block=128, args=[tile, tiles(SELECT), count])
    context = np.zeros((), np.dtype([("first", "?"), ("last", "?"), ("n", "i8", 2), ("none", "u8", 2)], align=True))
    context["first"], context["last"], context["n"][0] = True, True, COUNT
    args = [x, NONE, out, count, tile, EMPTY, EMPTY, COUNT, tiles(SELECT), context[()], bytes(8)]
    launch(cub, kernel="DeviceSelectSweepKernel", grid=tiles(SELECT), block=256, args=args)
    even = x[x % 2 == 0]
    assert count[0] == len(even) and np.array_equal(out[: len(even)], even)


def test_scan(cub: str) -> None:
    x = np.random.default_rng(3).integers(0, 1000, COUNT, dtype=np.int32)
    out, tile = np.zeros_like(x), state(SCAN)
    launch(cub, kernel="DeviceScanInitKernel", grid=1, block=128, args=[tile, tiles(SCAN)])
    args = [x, out, tile, 0, EMPTY, bytes(16), COUNT]
    launch(cub, kernel="DeviceScanKernel", grid=tiles(SCAN), block=320, args=args)
    assert np.array_equal(out, np.cumsum(x) - x)


def test_radix_sort(cub: str) -> None:
    keys = np.random.default_rng(4).integers(0, 2**32, COUNT, dtype=np.uint32)
    bins = np.zeros((4, 256), np.uint32)
    args = [bins, keys, COUNT, 0, 32, EMPTY]
    launch(cub, kernel="DeviceRadixSortHistogramKernel", grid=2, block=128, args=args)
    launch(cub, kernel="DeviceRadixSortExclusiveSumKernel", grid=4, block=256, args=[bins])
    found = keys.copy()
    for digit in range(4):
        back, ticket, counts = np.zeros(tiles(SORT) * 256, np.int32), np.zeros(1, np.int32), np.zeros(256, np.uint32)
        given, found = found, np.zeros_like(keys)
        args = [back, ticket, counts, bins[digit].copy(), found, given, NONE, NONE, COUNT, 8 * digit, 8, EMPTY]
        launch(cub, kernel="DeviceRadixSortOnesweepKernel", grid=tiles(SORT), block=384, args=args)
    assert np.array_equal(found, np.sort(keys))
