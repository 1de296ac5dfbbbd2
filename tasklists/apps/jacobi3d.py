"""Jacobi's method in 3D: every rank sweeps an n x n x n box and exchanges its six faces with its neighbours.

With `overlap` the outer layer is swept first, and its exchange hides behind the sweep of the inside.
"""

from ppt_gpu.cluster.model.kernel import Kernel


def sweep(n: int, planes: int, times: int = 1) -> Kernel:
    box = f"f32[{n * n * planes}]"
    args = (box, box, f"i32={n}", f"i32={n}", f"i32={planes}", "f32=-6.0", "f32=1.0")
    return Kernel("stencil7", (n // 32, n // 8), (32, 8), args, registers=44, times=times)


def app(rank, n=256, iterations=10, overlap=True, norm_every=1):
    grid = rank.grid(3)
    peers = [grid.neighbour(axis, step) for axis in range(3) for step in (-1, 1)]
    face = 4 * n * n
    whole, faces, inside = sweep(n, n), sweep(n, 3, times=6), sweep(n, n - 2)

    def exchange():
        receives = [rank.irecv(peer, face, side ^ 1) for side, peer in enumerate(peers)]
        return receives + [rank.isend(peer, face, side) for side, peer in enumerate(peers)]

    for iteration in range(iterations):
        if overlap:
            outer = rank.launch(faces, label="faces")
            inner = rank.launch(inside, label="inside")
            yield outer
            yield [*exchange(), inner]
        else:
            yield rank.launch(whole, label="sweep")
            yield exchange()
        if norm_every and (iteration + 1) % norm_every == 0:
            yield rank.all_reduce(8)
        rank.mark(of=iterations)
