"""A message with a tag that nobody receives."""


def app(rank):
    if rank.index == 0:
        yield rank.isend(1, 8, tag=7)
