"""PPT's pattern of an accelerated application: data to the GPU, a kernel, results back to the host, which exchanges
them with the neighbours and goes on, again and again. What remains of a fast kernel is copies.
"""

from ppt_gpu.cluster.model.kernel import Kernel


def app(rank, n=256, iterations=10, host_time=20e-6):
    before, behind = rank.grid(1).neighbours(0)
    box, face = f"f32[{n**3}]", 4 * n * n
    args = (box, box, f"i32={n}", f"i32={n}", f"i32={n}", "f32=-6.0", "f32=1.0")
    kernel = Kernel("stencil7", (n // 32, n // 8), (32, 8), args, registers=44)

    yield rank.copy("host", "gpu", 4 * n**3)
    for _ in range(iterations):
        rank.copy("host", "gpu", 2 * face)
        rank.launch(kernel)
        yield rank.copy("gpu", "host", 2 * face)
        rank.compute(host_time)
        receives = [rank.irecv(before, face, 0, memory="host"), rank.irecv(behind, face, 1, memory="host")]
        yield [*receives, rank.isend(behind, face, 0, memory="host"), rank.isend(before, face, 1, memory="host")]
        rank.mark(of=iterations)
    yield rank.copy("gpu", "host", 4 * n**3)
