"""What the code of a kernel alone says, found out once for each kernel, however often it runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from ppt_gpu.ptx.module import Kernel

T = TypeVar("T")


class SameKernel:
    """A kernel as a key: the same object."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def __hash__(self) -> int:
        return id(self.kernel)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameKernel) and self.kernel is other.kernel


def once_a_kernel(fact: Callable[[Kernel], T]) -> Callable[[Kernel], T]:
    """`fact`, remembered for the kernels asked about last. What it returns must not be changed."""

    @lru_cache(maxsize=256)
    def known(key: SameKernel) -> T:
        return fact(key.kernel)

    def ask(kernel: Kernel) -> T:
        return known(SameKernel(kernel))

    return ask
