"""Collectives by trees and by recursive doubling and halving: steps whose number grows with log2 of the members.

Where the size is no power of two, the first 2 r members fold to r before and unfold after (r = size - largest power).
"""

from __future__ import annotations

from collections.abc import Iterator

from ppt_gpu.cluster.model.machine import Exchange, Step


def powers(size: int) -> list[int]:
    """1, 2, 4, ... below `size`."""
    return [1 << bit for bit in range(max(0, size - 1).bit_length())]


def _both(peer: int, sent: int, received: int, reduced: int = 0) -> Step:
    return Step((Exchange(peer, sent),), (Exchange(peer, received),), reduced)


def broadcast(size: int, index: int, nbytes: int) -> Iterator[Step]:
    """Binomial tree from member 0: the holders double in each step, the furthest served first."""
    bits = powers(size)
    lowest = index & -index if index else bits[-1] * 2 if bits else 1
    if index:
        yield Step((), (Exchange(index - lowest, nbytes),))
    for bit in reversed(bits):
        if bit < lowest and index + bit < size:
            yield Step((Exchange(index + bit, nbytes),), ())


def reduce(size: int, index: int, nbytes: int) -> Iterator[Step]:
    """The same tree upwards, to member 0: the nearest first."""
    for bit in powers(size):
        if index & bit:
            yield Step((Exchange(index - bit, nbytes),), ())
            return
        if index + bit < size:
            yield Step((), (Exchange(index + bit, nbytes),), nbytes)


def all_reduce(size: int, index: int, nbytes: int) -> Iterator[Step]:
    yield from reduce(size, index, nbytes)
    yield from broadcast(size, index, nbytes)


def barrier(size: int, index: int, nbytes: int) -> Iterator[Step]:
    yield from all_reduce(size, index, 0)


def scatter(size: int, index: int, nbytes: int) -> Iterator[Step]:
    """Binomial tree from member 0; with each part goes what the members behind it will need."""

    def parts(first: int, count: int) -> int:
        last = min(size, first + count)
        return nbytes * last // size - nbytes * first // size

    bits = powers(size)
    lowest = index & -index if index else bits[-1] * 2 if bits else 1
    if index:
        yield Step((), (Exchange(index - lowest, parts(index, lowest)),))
    for bit in reversed(bits):
        if bit < lowest and index + bit < size:
            yield Step((Exchange(index + bit, parts(index + bit, bit)),), ())


def _folded(size: int) -> tuple[int, int]:
    """The largest power of two within `size`, and how many members are beyond it."""
    power = 1 << (size.bit_length() - 1)
    return power, size - power


def _member(number: int, beyond: int) -> int:
    """The member that plays `number` among the folded ones: of the first pairs the odd one."""
    return 2 * number + 1 if number < beyond else number + beyond


def _fold(size: int, index: int, nbytes: int, after: int) -> tuple[list[Step], int | None, list[Step]]:
    """Steps before, the member's number in between (None: it waits), steps after, in which `after` bytes come back."""
    _, beyond = _folded(size)
    if index >= 2 * beyond:
        return [], index - beyond, []
    if index % 2 == 0:
        return [Step((Exchange(index + 1, nbytes),), ())], None, [Step((), (Exchange(index + 1, after),))]
    before = [Step((), (Exchange(index - 1, nbytes),), nbytes)]
    return before, index // 2, [Step((Exchange(index - 1, after),), ())]


def doubling_all_reduce(size: int, index: int, nbytes: int) -> Iterator[Step]:
    """The whole vector with the partner at distance 1, 2, 4, ...: for short vectors."""
    power, beyond = _folded(size)
    before, number, after = _fold(size, index, nbytes, nbytes)
    yield from before
    if number is not None:
        for distance in powers(power):
            yield _both(_member(number ^ distance, beyond), nbytes, nbytes, nbytes)
    yield from after


def _range(number: int, distance: int, power: int, nbytes: int) -> int:
    """Bytes of the parts that member `number` of `power` still holds when ranges are `distance` parts long."""
    first = number // distance * distance
    return nbytes * (first + distance) // power - nbytes * first // power


def _halving(number: int, power: int, beyond: int, nbytes: int) -> Iterator[Step]:
    """Half of what is left is given away in each step, the other half reduced: part `number` remains."""
    for distance in reversed(powers(power)):
        peer = number ^ distance
        sent, kept = _range(peer, distance, power, nbytes), _range(number, distance, power, nbytes)
        yield _both(_member(peer, beyond), sent, kept, kept)


def _doubling(number: int, power: int, beyond: int, nbytes: int) -> Iterator[Step]:
    """The way back: ranges join in each step until every member has the whole."""
    for distance in powers(power):
        peer = number ^ distance
        sent, received = _range(number, distance, power, nbytes), _range(peer, distance, power, nbytes)
        yield _both(_member(peer, beyond), sent, received)


def halving_doubling_all_reduce(size: int, index: int, nbytes: int) -> Iterator[Step]:
    """Reduce-scatter by halving, all-gather by doubling (Rabenseifner): for long vectors."""
    power, beyond = _folded(size)
    before, number, after = _fold(size, index, nbytes, nbytes)
    yield from before
    if number is not None:
        yield from _halving(number, power, beyond, nbytes)
        yield from _doubling(number, power, beyond, nbytes)
    yield from after


def halving_reduce_scatter(size: int, index: int, nbytes: int) -> Iterator[Step]:
    """By halving; members that were folded away get their part from their partner."""
    power, beyond = _folded(size)
    before, number, after = _fold(size, index, nbytes, nbytes // size)
    yield from before
    if number is not None:
        yield from _halving(number, power, beyond, nbytes)
    yield from after
