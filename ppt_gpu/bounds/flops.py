"""Floating-point operations of an instruction, by the class of arithmetic that executes them."""

from __future__ import annotations

import re

#: of one thread, by the variant of an operation
PER_VALUE = {"add": 1, "mul": 1, "fma": 2, "div": 1}
CLASSES = ("fp32", "fp64", "fp16", "tensor")
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_WHOLE = re.compile(r"[su](?:4|8|32)|b1")  # products of whole numbers are no floating-point operations
WARP = 32
GROUP = 4  # warps that share a wgmma


def flops(operation: str, modifiers: tuple[str, ...] = ()) -> tuple[str, float]:
    """(class, operations of one thread) of a machine operation, such as "fp32.fma"; ("", 0.0) for others.

    Packed halves are two values. A product of matrices is 2 m n k operations of its warps (sparse: of what is there);
    its shape is read from the modifiers of its instruction or, without them, from the operation.
    """
    kind, _, variant = operation.partition(".")
    if kind == "tensor":
        return _product(variant, modifiers or tuple(variant.split(".")))
    if kind not in CLASSES:
        return "", 0.0
    values = 2 if kind == "fp16" and any(word.endswith("x2") for word in modifiers) else 1
    return kind, float(PER_VALUE.get(variant, 0) * values)


def _product(variant: str, words: tuple[str, ...]) -> tuple[str, float]:
    shape = next((found for found in map(_SHAPE.fullmatch, words) if found), None)
    if shape is None or any(_WHOLE.fullmatch(word) for word in words):
        return "", 0.0
    m, n, k = (int(size) for size in shape.groups())
    warps = GROUP if variant.startswith("wgmma") else 1
    # Each of the four groups of 8 threads multiplies halves of its own in the first generation's shape.
    at_once = 4 if (m, n, k) == (8, 8, 4) and "f64" not in words else 1
    sparse = any(word == "sp" or word.startswith("sp::") for word in words)
    return "tensor", 2.0 * m * n * k * at_once / (2 if sparse else 1) / (WARP * warps)
