"""Instructions that numba has no spelling for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ppt_gpu.common.compiled import intrinsic

#: int64 in compiled code. (A literal 0 has a type of its own there, and every helper that sees one is compiled twice.)
int64: Any = np.int64


def _of_word(build: Callable[[Any, list[Any]], Any]) -> Any:
    """An instruction that makes an int64 of another: `build` makes it of LLVM's builder and a list of values."""

    @intrinsic
    def instruction(typing_context: Any, value: Any) -> Any:
        from numba import types

        return types.int64(types.int64), lambda context, builder, signature, values: build(builder, values)

    return instruction


def _of_two(build: Callable[[Any, list[Any]], Any]) -> Any:
    """One that makes an int64 of two."""

    @intrinsic
    def instruction(typing_context: Any, value: Any, other: Any) -> Any:
        from numba import types

        return types.int64(types.int64, types.int64), lambda context, builder, signature, values: build(builder, values)

    return instruction


def _count_trailing_zeros(builder: Any, words: list[Any]) -> Any:
    from llvmlite import ir

    return builder.cttz(words[0], ir.Constant(ir.IntType(1), 1))


def _rotate(builder: Any, words: list[Any]) -> Any:
    from llvmlite import ir
    from numba.core import cgutils

    word = ir.IntType(64)
    turn = cgutils.get_or_insert_function(builder.module, ir.FunctionType(word, [word] * 3), "llvm.fshr.i64")
    return builder.call(turn, [words[0], words[0], words[1]])


#: index of the lowest set bit of an int64 that is not 0 (undefined for 0)
ctz = _of_word(_count_trailing_zeros)
#: value // divisor for what is not negative, and a divisor that is not 0 either (undefined): one instruction
quotient = _of_two(lambda builder, words: builder.udiv(*words))
#: the bits of an int64, so many places to the right, modulo 64: bit `places` becomes bit 0
rotated = _of_two(_rotate)


@intrinsic
def pointer(typing_context: Any, array: Any) -> Any:
    """Where a one-dimensional array begins: indexed as the array is, and a single word where that has seven, which
    makes each call that it is passed to cheaper, and compiling it too."""

    from numba import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, value=arguments[0]).data

    return types.CPointer(array.dtype)(array), generate


@intrinsic
def prefetch(typing_context: Any, begin: Any, index: Any) -> Any:
    """Ask for begin[index], which will be read and perhaps written soon. Any index does no harm."""

    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(ask, [place, *(ir.Constant(flag, value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(begin, types.int64), generate


LANES = 16
NO_KEY = (1 << 62) - 1


@intrinsic
def least_of(typing_context: Any, keys: Any, offset: Any, mask: Any) -> Any:
    """Least of keys[offset : offset + 16] at the set bits of `mask`, NO_KEY without any: as vector operations."""

    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, vector = ir.IntType(64), ir.VectorType(ir.IntType(64), LANES)
        place = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), vector.as_pointer())
        found = builder.load(place, align=8)
        chosen = builder.bitcast(builder.trunc(arguments[2], ir.IntType(LANES)), ir.VectorType(ir.IntType(1), LANES))
        nothing = ir.Constant(vector, [NO_KEY] * LANES)
        kind = ir.FunctionType(word, [vector])
        reduce = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.smin.v{LANES}i64")
        return builder.call(reduce, [builder.select(chosen, found, nothing)])

    return types.int64(keys, types.int64, types.int64), generate
