"""Jacobi's method in 2D: every rank sweeps an n x n field and exchanges its four edges with its neighbours.

With `overlap` the edges are swept first, and their exchange hides behind the sweep of the rest.
"""

from ppt_gpu.cluster.model.kernel import Kernel


def sweep(n: int, rows: int, times: int = 1) -> Kernel:
    field = f"f32[{n * n}]"
    return Kernel("jacobi", (n // 64, rows // 4), (64, 4), (field, field, f"i32={n}"), registers=14, times=times)


def app(rank, n=4096, iterations=10, overlap=True):
    grid = rank.grid(2)
    peers = [grid.neighbour(axis, step) for axis in range(2) for step in (-1, 1)]
    whole, edges, inside = sweep(n, n), sweep(n, 4, times=4), sweep(n, n - 4)

    def exchange():
        receives = [rank.irecv(peer, 4 * n, side ^ 1) for side, peer in enumerate(peers)]
        return receives + [rank.isend(peer, 4 * n, side) for side, peer in enumerate(peers)]

    for _ in range(iterations):
        if overlap:
            outer = rank.launch(edges, label="edges")
            inner = rank.launch(inside, label="inside")
            yield outer
            yield [*exchange(), inner]
        else:
            yield rank.launch(whole, label="sweep")
            yield exchange()
        rank.mark(of=iterations)
