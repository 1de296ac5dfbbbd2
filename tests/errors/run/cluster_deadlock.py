"""Both of a pair receive before they send."""


def app(rank):
    yield rank.irecv(rank.index ^ 1, 100)
    yield rank.isend(rank.index ^ 1, 100)
