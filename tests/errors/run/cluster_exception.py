"""Rank 3 fails."""


def app(rank):
    yield rank.launch(1e-6)
    if rank.index == 3:
        raise MemoryError("no room for the matrix")
