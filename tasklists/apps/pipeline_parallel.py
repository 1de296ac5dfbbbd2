"""A pipeline-parallel training step: every rank holds some layers; micro-batches pass forward through all, then back.
While the pipeline fills and drains, (ranks - 1) / (micro-batches + ranks - 1) of the time is idle (Huang et al.: GPipe,
2019).
"""

from ppt_gpu.cluster.model.kernel import Kernel


def app(rank, layers=4, n=1024, batches=8):
    half, single = f"f16[{n * n}]", f"f32[{n * n}]"
    product = Kernel("hgemm", (n // 64, n // 64), (128,), (half, half, single, f"s32={n}"), registers=94)
    activations = 2 * n * n
    before = rank.index - 1 if rank.index > 0 else None
    behind = rank.index + 1 if rank.index + 1 < rank.size else None

    def stage(source, target, products, tag):
        """One micro-batch through this rank's layers."""
        if source is not None:
            yield rank.irecv(source, activations, tag)
        done = [rank.launch(product) for _ in range(products)][-1]
        if target is not None:
            sent.append(rank.isend(target, activations, tag, after=[done]))

    sent = []
    for batch in range(batches):
        yield from stage(before, behind, layers, batch)
    for batch in range(batches):
        yield from stage(behind, before, 2 * layers, batches + batch)
    yield sent + rank.synchronize()
    rank.mark()
