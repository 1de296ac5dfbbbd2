"""Reuse (stack) distance, exact: how many distinct lines were used since a line's last use (Mattson et al. 1970).

A cache of that many lines or fewer, fully associative and least recently used, misses. Counted with a tree of sums over
the uses (Bennett and Kruskal 1975), in which only the last use of each line stands: n log n.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry

#: the first use of a line has no distance: it misses in every cache
COLD = -1


def reuse_distances(lines: NDArray[np.int64]) -> NDArray[np.int64]:
    """[n] distance of every use of `lines` [n], numbered from 0; COLD for first uses."""
    found = np.zeros(len(lines), np.int64)
    kinds = int(lines.max(initial=-1)) + 1
    _distances(
        np.ascontiguousarray(lines, np.int64), np.full(kinds, -1, np.int64), np.zeros(len(lines) + 1, np.int64), found
    )
    return found


def reuse_distances_in_sets(lines: NDArray[np.int64], sets: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distances within sets: sets [n] is the set of each use, the same for all uses of a line."""
    order = np.argsort(sets, kind="stable")
    found = np.empty(len(lines), np.int64)
    found[order] = reuse_distances(np.asarray(lines)[order])
    return found


@entry
def _distances(lines: np.ndarray, last: np.ndarray, tree: np.ndarray, found: np.ndarray) -> None:
    """last [lines]: the last use of each, -1: none. tree [n + 1]: Fenwick sums over the uses, 1 where a last use is."""
    n, distinct = len(lines), 0
    for now in range(n):
        line = lines[now]
        before = last[line]
        if before < 0:
            found[now] = COLD
            distinct += 1
        else:
            older = 0  # lines whose last use is that one or an earlier one
            at = before + 1
            while at > 0:
                older += tree[at]
                at -= at & -at
            found[now] = distinct - older
            at = before + 1
            while at <= n:
                tree[at] -= 1
                at += at & -at
        last[line] = now
        at = now + 1
        while at <= n:
            tree[at] += 1
            at += at & -at
