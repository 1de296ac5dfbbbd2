"""Bit scans that numba has no spelling for, and compilation that caches on disk where it can."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic


@intrinsic
def ctz(typing_context: Any, value: Any) -> Any:
    """Index of the lowest set bit of an int64 that is not 0 (undefined for 0)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


@intrinsic
def popcount(typing_context: Any, value: Any) -> Any:
    """Number of set bits of an int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), generate


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """njit with the on-disk cache, or without where no folder for it is writable (package, user cache, NUMBA_CACHE_DIR)."""
    try:
        return njit(cache=True, _nrt=False, **options)(function)
    except (RuntimeError, OSError):
        return njit(_nrt=False, **options)(function)


def fingerprint(*files: str) -> int:
    """A number that changes with the text of `files`, beside this one.

    numba's cache looks only at the file of the function it stores; a number in its closure makes it notice the others.
    """
    from zlib import crc32

    folder = os.path.dirname(__file__)
    value = 0
    for name in files:
        with open(os.path.join(folder, name), "rb") as stream:
            value = crc32(stream.read(), value)
    return value
