"""Distributed sgemm, SUMMA: ranks in a grid hold n x n blocks; each step broadcasts blocks of A along rows and of B
along columns, while the blocks of the step before are multiplied (van de Geijn, Watts, 1997).
"""

from ppt_gpu.cluster.model.kernel import Kernel


def app(rank, n=2048):
    grid = rank.grid(2, periodic=False)
    rows, columns = grid.shape
    row, column = grid.position
    block = f"f32[{n * n}]"
    multiply = Kernel("sgemm", (n // 16, n // 16), (16, 16), (block, block, block, f"i32={n}"), registers=60)

    def blocks(step):
        """Step `step`'s block of A from its column, and of B from its row: the sender comes first in a group."""
        across = [grid.at(row, (step + k) % columns) for k in range(columns)]
        down = [grid.at((step + k) % rows, column) for k in range(rows)]
        a = rank.broadcast(4 * n * n, group=across, stream="a")
        b = rank.broadcast(4 * n * n, group=down, stream="b")
        return [a, b]

    ready = blocks(0)
    for step in range(columns):
        current, ready = ready, blocks(step + 1) if step + 1 < columns else []
        yield rank.launch(multiply, after=current)
        rank.mark(of=columns)
