"""Affine expressions: integers plus multiples of named indices, with what arithmetic keeps them affine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + the sum of coefficient x symbol. `terms` are sorted by symbol and have no coefficient of 0."""

    constant: int
    terms: tuple[tuple[str, int], ...] = ()

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def coefficient(self, symbol: str) -> int:
        return next((factor for name, factor in self.terms if name == symbol), 0)

    def plus(self, other: Affine) -> Affine:
        merged = dict(self.terms)
        for name, factor in other.terms:
            merged[name] = merged.get(name, 0) + factor
        terms = tuple(sorted((name, factor) for name, factor in merged.items() if factor))
        return Affine(self.constant + other.constant, terms)

    def times(self, factor: int) -> Affine:
        if factor == 0:
            return Affine(0)
        return Affine(self.constant * factor, tuple((name, own * factor) for name, own in self.terms))

    def minus(self, other: Affine) -> Affine:
        return self.plus(other.times(-1))


def index(symbol: str) -> Affine:
    """The symbol alone."""
    return Affine(0, ((symbol, 1),))


def product(a: Affine, b: Affine) -> Affine | None:
    """a x b, where one of them is a constant."""
    if b.is_constant:
        return a.times(b.constant)
    return b.times(a.constant) if a.is_constant else None


def span(value: Affine, extents: Mapping[str, int]) -> tuple[int, int] | None:
    """Least and largest value when each symbol runs from 0 to its extent - 1; None with a symbol of no known extent."""
    low = high = value.constant
    for name, factor in value.terms:
        if name not in extents:
            return None
        reach = factor * (extents[name] - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high


def disjoint_sum(a: Affine, b: Affine, extents: Mapping[str, int]) -> Affine | None:
    """a | b (and a ^ b) where no bit is in both: all of one is a multiple of a power of two that the other is below."""
    for high, low in ((a, b), (b, a)):
        reach = span(low, extents)
        if reach is None or reach[0] < 0:
            continue
        unit = 1 << reach[1].bit_length()
        if high.constant % unit == 0 and all(factor % unit == 0 for _, factor in high.terms):
            return high.plus(low)
    return None
