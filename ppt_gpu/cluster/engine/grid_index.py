"""Numbers of the elements of a grid in row-major order, and how a number of ranks is laid out as one."""

from __future__ import annotations

from functools import lru_cache
from math import prod

Index = tuple[int, ...]


def index_at(number: int, shape: Index) -> Index:
    """The index of element `number` in row-major order."""
    found = []
    for size in reversed(shape):
        number, at = divmod(number, size)
        found.append(at)
    return tuple(reversed(found))


@lru_cache(maxsize=256)
def strides(shape: Index) -> Index:
    """How much further the number is for a step along each axis, in row-major order."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def number_at(index: Index, shape: Index) -> int:
    """The number of the element at `index` in row-major order."""
    number = 0
    for at, size in zip(index, shape, strict=True):
        number = number * size + at
    return number


@lru_cache(maxsize=256)
def split(count: int, axes: int) -> Index:
    """`count` as a product of `axes` factors as equal as they can be, the largest first."""
    best: Index = (count,) + (1,) * (axes - 1)
    if axes == 1:
        return best
    for first in range(1, count + 1):
        if count % first:
            continue
        if first**axes > count and max(best) <= first:
            break
        found = tuple(sorted((first, *split(count // first, axes - 1)), reverse=True))
        if (max(found), -min(found)) < (max(best), -min(best)):
            best = found
    assert prod(best) == count
    return best
