"""The set `published`: its kernels compute what they should."""

import numpy as np
import pytest

import ppt_gpu
from ppt_gpu.validate import published

TUNED = {case.kernel: case for case in published.cases(["gemmtuned "])}


@pytest.mark.parametrize("kernel", sorted(TUNED))
def test_tiled_products(kernel):
    """C = alpha A^T B + beta C with A and B by rows of k: two blocks each way, two tiles of k."""
    m_tile, n_tile, k_tile = (int(side) for side in kernel.split("_")[1:4])
    m, n, k = 2 * m_tile, 2 * n_tile, 2 * k_tile
    rng = np.random.default_rng(5)
    a, b, c = (rng.standard_normal(shape).astype("f4") for shape in ((k, m), (k, n), (n, m)))
    expected = 1.5 * (b.T @ a) + 0.5 * c
    case = TUNED[kernel]
    assert case.grid == (4096 // m_tile, 4096 // n_tile, 1)
    ppt_gpu.launch(
        case.path,
        kernel=kernel,
        grid=(2, 2),
        block=case.block,
        args=[np.int32(m), np.int32(n), np.int32(k), np.float32(1.5), np.float32(0.5), a, b, c],
    )
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)
