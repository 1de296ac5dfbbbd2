"""The set `published`: its kernels compute what they should."""

import numpy as np
import pytest
from some_examples import one_in

import ppt_gpu
from ppt_gpu.validate.silicon import published

TUNED = {case.kernel: case for case in published.cases(["gemmtuned "])}


@pytest.mark.parametrize("kernel", one_in(3, sorted(TUNED)))
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


@pytest.mark.parametrize(
    ("kernel", "choice"),
    [
        ("window_shared", 0),
        ("window_shared", 1),
        ("window_constant", 0),
        ("window_constant", 1),
        ("lanes_constant", 31),
    ],
)
def test_potentials_of_atoms(kernel, choice):
    """The table of atoms is in constant memory and, for `window_shared`, in global memory."""
    count, blocks, threads, size = 70, 3, 128, 4000
    atoms = np.random.default_rng(3).random((size, 4), dtype="f4") * 10 - np.array([0, 0, 0, 5], "f4")
    declared = f".const .align 16 .b8 atoms[{atoms.nbytes}]"
    text = published.cases(["constants "])[0].path.read_text()
    assert declared in text
    filled = f"{declared} = {{{', '.join(map(str, atoms.tobytes()))}}}"
    found = np.zeros(blocks * threads, "f4")
    ppt_gpu.launch(
        text.replace(declared, filled),
        kernel=kernel,
        grid=blocks,
        block=threads,
        args=[np.int32(count), np.int32(choice), atoms, found],
    )
    thread = np.arange(len(found))
    if kernel == "lanes_constant":
        first = thread % 32
    else:
        first = choice * (thread // threads * 2654435761 % 2**32 % (size - count + 1))
    read = atoms[first[:, np.newaxis] + np.arange(count)].astype("f8")
    point = np.stack([thread % 1024 * 0.01, thread // 1024 % 256 * 0.01, np.zeros(len(thread))], axis=1)
    away = point[:, np.newaxis] - read[:, :, :3]
    expected = (read[:, :, 3] / np.sqrt((away * away).sum(axis=2) + 1)).sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
