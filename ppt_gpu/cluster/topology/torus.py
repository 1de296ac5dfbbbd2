"""Tori: a router a node, joined to both neighbours in each dimension; routes go one dimension after another."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ppt_gpu.cluster.topology.topology import Regular, Route
from ppt_gpu.common.errors import PptError
from ppt_gpu.spec.cluster import Torus


class TorusOf(Regular):
    """Node n has the router nodes + n. The first dimension runs fastest. Half way round, routes go upwards."""

    def __init__(self, shape: Torus, nodes: int, name: str) -> None:
        self.dims = shape.dims or near_cube(nodes, shape.dimensions)
        if math.prod(self.dims) != nodes:
            text = " x ".join(map(str, self.dims))
            hint = "leave torus.dims out for a torus that follows the number of nodes"
            raise PptError(
                f"network '{name}' is a torus of {text} = {math.prod(self.dims):,} nodes, not {nodes:,}", hint=hint
            )
        self.nodes = self.switches = nodes
        self.strides = [math.prod(self.dims[:axis]) for axis in range(len(self.dims))]
        self.uniform = sum(size > 1 for size in self.dims) == 1 and nodes <= 3

    def _steps(self, source: int, target: int) -> Iterator[tuple[int, int]]:
        """(dimension, signed steps) of each dimension in which the nodes differ."""
        for axis, (stride, size) in enumerate(zip(self.strides, self.dims, strict=True)):
            ahead = (target // stride - source // stride) % size
            if ahead:
                yield axis, ahead if ahead <= size - ahead else ahead - size

    def between(self, source: int, target: int) -> int:
        return sum(abs(steps) for _, steps in self._steps(source, target)) + (source != target)

    def route(self, source: int, target: int) -> Route:
        if source == target:
            return (source,)
        at, path = source, [source, self.nodes + source]
        for axis, steps in self._steps(source, target):
            stride, size = self.strides[axis], self.dims[axis]
            for _ in range(abs(steps)):
                place = at // stride % size
                at += ((place + (1 if steps > 0 else -1)) % size - place) * stride
                path.append(self.nodes + at)
        return (*path, target)

    def nearest(self) -> int:
        return 2

    def edges(self) -> Iterator[tuple[int, int]]:
        for node in range(self.nodes):
            yield node, self.nodes + node
            for stride, size in zip(self.strides, self.dims, strict=True):
                place = node // stride % size
                if size > 1 and not (size == 2 and place == 1):
                    yield self.nodes + node, self.nodes + node + ((place + 1) % size - place) * stride


def near_cube(nodes: int, dimensions: int) -> tuple[int, ...]:
    """`nodes` as a product of so many factors, as equal as can be: the largest factor first."""
    if dimensions == 1:
        return (nodes,)
    target = nodes ** (1 / dimensions)
    divisors = [d for d in range(1, math.isqrt(nodes) + 1) if nodes % d == 0]
    divisors += [nodes // d for d in divisors]
    smallest = max(d for d in divisors if d <= target + 1e-9)
    return tuple(sorted((*near_cube(nodes // smallest, dimensions - 1), smallest), reverse=True))
