"""The Triton kernels of the corpus, and the arguments that they are compiled for."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@triton.jit
def softmax(out, x, stride, columns, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + column, mask=column < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + column, powers / tl.sum(powers, axis=0), mask=column < columns)


@triton.jit
def layer_norm(out, x, weight, bias, columns, eps, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    inside = column < columns
    values = tl.load(x + row * columns + column, mask=inside, other=0.0)
    mean = tl.sum(values, axis=0) / columns
    centred = tl.where(inside, values - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    result = centred * scale * tl.load(weight + column, mask=inside) + tl.load(bias + column, mask=inside)
    tl.store(out + row * columns + column, result, mask=inside)


@triton.jit
def scan_and_count(x, sums, most, bins, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    values = tl.load(x + i, mask=i < n, other=0)
    tl.store(sums + i, tl.cumsum(values, axis=0), mask=i < n)
    tl.store(most, tl.argmax(values, axis=0))
    tl.atomic_add(bins + values % 8, 1, mask=i < n)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    pa = a + rows[:, None] * K + k[None, :]
    pb = b + k[:, None] * N + columns[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        total = tl.dot(tl.load(pa), tl.load(pb), total)
        pa += BK
        pb += BK * N
    tl.store(c + rows[:, None] * N + columns[None, :], total)


@triton.jit
def attention(q, k, v, out, n, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """Softmax of q k^T times v for one head, tile by tile with a running maximum and sum."""
    rows, depth = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + depth[None, :])
    highest = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    gathered = tl.zeros((BM, D), tl.float32)
    for start in range(0, n, BN):
        columns = start + tl.arange(0, BN)
        scores = tl.dot(query, tl.load(k + columns[None, :] * D + depth[:, None])) * scale
        higher = tl.maximum(highest, tl.max(scores, axis=1))
        powers = tl.exp2(scores - higher[:, None])
        fade = tl.exp2(highest - higher)
        total = total * fade + tl.sum(powers, axis=1)
        tile = tl.load(v + columns[:, None] * D + depth[None, :])
        gathered = tl.dot(powers.to(tl.float16), tile, gathered * fade[:, None])
        highest = higher
    tl.store(out + rows[:, None] * D + depth[None, :], gathered / total[:, None])


def arrays(*types):
    """Arrays that stand for their types."""
    return [np.zeros(16, kind) for kind in types]


DOT = ("f2", "f2", "f4")
PIPELINED = {"num_warps": 4, "num_stages": 3}
#: file -> kernel, arguments, compute capability, options
KERNELS = {
    "triton_vector_add": (vector_add, [*arrays("f4", "f4", "f4"), 1000, 256], (8, 0), {"num_warps": 4}),
    "triton_softmax": (softmax, [*arrays("f4", "f4"), 200, 200, 256], (8, 0), {"num_warps": 4}),
    "triton_layer_norm": (layer_norm, [*arrays("f4", "f4", "f4", "f4"), 300, 1e-5, 512], (8, 0), {"num_warps": 4}),
    "triton_scan_and_count": (scan_and_count, [*arrays("i4", "i4", "i4", "i4"), 500, 512], (8, 0), {"num_warps": 4}),
    "triton_matmul": (matmul, [*arrays(*DOT), 64, 64, 96, 32, 32, 32], (8, 0), PIPELINED),
    "triton_matmul_hopper": (
        matmul,
        [*arrays(*DOT), 64, 64, 96, 64, 32, 32],
        (9, 0),
        {"num_warps": 4, "num_stages": 3},
    ),
    "triton_attention": (
        attention,
        [*arrays("f2", "f2", "f2", "f4"), 96, 0.25, 32, 32, 32],
        (8, 0),
        {"num_warps": 4, "num_stages": 2},
    ),
}
