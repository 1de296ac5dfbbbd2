"""A CUDA file with NumPy arrays: its result first, then its time on two GPUs. Needs nvcc or nvidia-cuda-nvrtc."""

from pathlib import Path

import numpy as np

import ppt_gpu

n, radius, block = 100_000, 8, 256
x = np.random.default_rng(1).random(n, dtype=np.float32)
y = np.zeros_like(x)
call = {
    "kernel": "blur",
    "grid": -(-n // block),
    "block": block,
    "dynamic_shared": 4 * (block + 2 * radius),
    "args": [x, y, n],
}
source = Path(__file__).with_name("blur.cu")

ppt_gpu.launch(source, **call)
window = np.lib.stride_tricks.sliding_window_view(np.pad(x, radius, mode="edge"), 2 * radius + 1)
assert np.allclose(y, window.mean(axis=1), rtol=1e-5)

for gpu in ("a100", "h100"):
    result = ppt_gpu.predict(source, gpu, **call)
    print(f"{gpu}: {result.time * 1e6:.1f} us, limited by {result.main.value('limiter')}")
