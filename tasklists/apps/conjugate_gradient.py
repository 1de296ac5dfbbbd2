"""Conjugate gradients for a Poisson problem, matrix-free: a stencil with its halo exchange, two dot products that all
ranks combine, and three vector updates an iteration. With many ranks the latency of the all-reduces is what remains.
"""

from ppt_gpu.cluster.model.kernel import Kernel


def app(rank, n=128, iterations=20):
    grid = rank.grid(3)
    peers = [grid.neighbour(axis, step) for axis in range(3) for step in (-1, 1)]
    points, face = n**3, 4 * n * n
    vector = f"f32[{points}]"
    box = (vector, vector, f"i32={n}", f"i32={n}", f"i32={n}", "f32=-6.0", "f32=1.0")
    stencil = Kernel("stencil7", (n // 32, n // 8), (32, 8), box, registers=44)
    dot = Kernel("reduction", (512,), (256,), (vector, "f32[512]", f"i32={points}"), registers=10)
    update = Kernel("saxpy", (320,), (256,), (f"i32={points}", "f32=2.0", vector, vector), registers=12)

    for _ in range(iterations):
        receives = [rank.irecv(peer, face, side ^ 1) for side, peer in enumerate(peers)]
        yield receives + [rank.isend(peer, face, side) for side, peer in enumerate(peers)]
        rank.launch(stencil)
        rank.launch(dot)
        yield rank.all_reduce(8)
        rank.launch(update)
        rank.launch(update)
        rank.launch(dot)
        yield rank.all_reduce(8)
        yield rank.launch(update)
        rank.mark(of=iterations)
