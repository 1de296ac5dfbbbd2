"""The order in which small numbers rise, where mostly long runs of equal ones follow one another."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

#: values in a run from which on moving runs takes less than sorting the values
RUN = 256

V = TypeVar("V", bound=np.generic)
Order = list[slice] | NDArray[np.int64]


def rising_order(values: NDArray[np.int32], below: int) -> Order:
    """The stable order in which `values` [T], from 0 to `below` - 1, rise.

    The transactions of a block are those of one SM, so that mostly whole runs of equal values are moved.
    """
    edges = (np.flatnonzero(values[1:] != values[:-1]) + 1).tolist()
    if len(edges) * RUN > len(values):
        short = np.uint16 if below <= 1 << 16 else np.uint32  # short numbers are sorted by counting
        return np.argsort(values.astype(short), kind="stable")
    runs = [slice(first, end) for first, end in zip([0, *edges], [*edges, len(values)], strict=True)]
    return sorted(runs, key=lambda run: int(values[run.start])) if edges else runs


def taken(values: NDArray[V], order: Order) -> NDArray[V]:
    """[T] the values in this order."""
    if not isinstance(order, list):
        return values[order]
    return values[order[0]] if len(order) == 1 else np.concatenate([values[run] for run in order])
