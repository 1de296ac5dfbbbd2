"""Numbers given as arguments without a type, `--arg 256`: they take the types of the kernel's parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ppt_gpu.ptx.module import Param
from ppt_gpu.workload.scalars import is_float
from ppt_gpu.workload.workload import Argument

_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|[0-9][0-9_]*)")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def literal(text: str) -> int | float | None:
    """The number that `text` is: an integer (decimal, 0x, 0b) or a decimal fraction. None for anything else."""
    text = text.strip()
    if _INTEGER.fullmatch(text):
        try:
            return int(text, 0) if text.lstrip("+-")[:2].lower() in ("0x", "0b") else int(text)
        except ValueError:  # "1__0"
            return None
    return float(text) if _NUMBER.fullmatch(text) else None


def typed(arguments: Sequence[Argument], params: Sequence[Param]) -> tuple[Argument, ...]:
    """`arguments` with a type for each number that has none ("").

    A surplus number keeps none, nor does one that stands for a struct: `argument_errors` tells of both.
    """
    missing = len(arguments) - len(params)
    return tuple(
        _as(argument, param) if param is not None and not argument.type else argument
        for argument, param in zip(arguments, (*params, *[None] * missing), strict=False)
    )


def _as(argument: Argument, param: Param) -> Argument:
    if param.is_struct:
        return argument
    if is_float(param.type):
        return replace(argument, type=param.type, value=float(argument.value))
    bits = 8 * param.bytes
    if isinstance(argument.value, float):
        untyped = param.type[0] == "b" and bits > 8
        return replace(argument, type=f"f{bits}" if untyped else param.type)
    return replace(argument, type=f"s{bits}" if argument.value < 0 else param.type)
