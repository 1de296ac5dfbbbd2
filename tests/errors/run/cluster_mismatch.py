"""Rank 0 sends more than rank 1 receives."""


def app(rank):
    if rank.index == 0:
        yield rank.isend(1, 8000)
    elif rank.index == 1:
        yield rank.irecv(0, 800)
