"""A data-parallel training step: layers of matrix products forward and backward; each layer's gradients are combined by
all ranks as soon as they are there, behind the backward pass of the layers before it.
"""

from ppt_gpu.cluster.model.kernel import Kernel


def app(rank, layers=16, n=2048, steps=3, overlap=True):
    half, single = f"f16[{n * n}]", f"f32[{n * n}]"
    product = Kernel("hgemm", (n // 64, n // 64), (128,), (half, half, single, f"s32={n}"), registers=94)
    update = Kernel("saxpy", (320,), (256,), (f"i32={n * n}", "f32=2.0", single, single), registers=12)
    gradient = 2 * n * n  # bytes of a layer, f16

    for _ in range(steps):
        for _ in range(layers):
            rank.launch(product, label="forward")
        combined = []
        for _ in range(layers):
            rank.launch(product, label="backward")  # for its input
            weights = rank.launch(product, label="backward")
            if overlap:
                combined.append(rank.all_reduce(gradient, stream="nccl", after=[weights]))
        if not overlap:
            combined = [rank.all_reduce(layers * gradient)]
        for _ in range(layers):
            rank.launch(update, after=combined, label="update")
        yield rank.synchronize()
        rank.mark(of=steps)
