"""A numba-cuda kernel: its result first, then its time on two GPUs. Needs the package numba-cuda[cu13]."""

import numpy as np
from numba import cuda

import ppt_gpu


@cuda.jit(fastmath=True)
def matvec(a, x, y):
    """y = a x, one block a row."""
    part = cuda.shared.array(128, np.float32)
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    total = np.float32(0)
    for column in range(lane, a.shape[1], 128):
        total += a[row, column] * x[column]
    part[lane] = total
    cuda.syncthreads()
    step = 64
    while step:
        if lane < step:
            part[lane] += part[lane + step]
        cuda.syncthreads()
        step //= 2
    if lane == 0:
        y[row] = part[0]


rng = np.random.default_rng(1)
a = rng.random((512, 1000), dtype=np.float32)
x = rng.random(1000, dtype=np.float32)
y = np.zeros(512, np.float32)

ppt_gpu.launch(matvec, grid=512, block=128, args=[a, x, y])
assert np.allclose(y, a @ x, rtol=1e-5)

for gpu in ("a100", "h100"):
    result = ppt_gpu.predict(matvec, gpu, grid=512, block=128, args=[a, x, y])
    print(f"{gpu}: {result.time * 1e6:.1f} us, limited by {result.main.value('limiter')}")
