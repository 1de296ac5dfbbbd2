"""Sets of an L2 of which it is known how slices and sets follow from addresses: all its lines compete within them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.sm.l2_sharing.camping import slice_of_lines
from ppt_gpu.sm.l2_sharing.slice_hash import polynomial_slice
from ppt_gpu.spec.gpu import Gpu


@dataclass(frozen=True)
class L2Sets:
    """Those of `gpu`, for lines of `line` bytes; `each` in a slice."""

    gpu: Gpu
    line: int
    each: int

    @property
    def ways(self) -> int:
        """Lines of a set."""
        return self.gpu.l2.ways

    def in_slice(self, address: NDArray[np.uint64]) -> NDArray[np.int32]:
        """[L] the set of each line in its slice."""
        l2, size = self.gpu.l2, max(self.gpu.l2.interleave, self.line)
        line, lines = address // np.uint64(self.line), np.uint64(size // self.line)
        number = line // (lines * np.uint64(l2.slices)) * lines + line % lines  # of a line in its slice
        found = number % np.uint64(self.each)
        if l2.index == "hash" and self.each > 1:
            found = polynomial_slice(number, self.each, self.each)
        return found.astype(np.int32)

    def of(self, address: NDArray[np.uint64]) -> NDArray[np.int64]:
        """[L] the set of each line among all."""
        slice_of = slice_of_lines(address, self.gpu, self.line)
        return slice_of.astype(np.int64) * self.each + self.in_slice(address)

    def rank(self, address: NDArray[np.uint64]) -> NDArray[np.int64]:
        """[L] how many of the lines before each, all different, are in its set."""
        own = self.of(address)
        order = np.argsort(own, kind="stable")
        _, first, length = np.unique(own[order], return_index=True, return_counts=True)
        rank = np.empty(len(own), np.int64)
        rank[order] = np.arange(len(own)) - np.repeat(first, length)
        return rank


def known_sets(gpu: Gpu, line: int, each: int) -> L2Sets | None:
    """The sets of the L2 of `gpu`, `each` in a slice; None: nobody knows which lines share one."""
    l2, size = gpu.l2, max(gpu.l2.interleave, line)
    known = (l2.slice_index, l2.index) in (("linear", "linear"), ("polynomial", "hash"))
    if l2.slices == 1 or not known or size % line or (l2.index == "hash" and each.bit_count() != 1):
        return None
    return L2Sets(gpu, line, each)
