"""Tensor maps as arguments: `tensormap(data, dims=1024x512, box=64x64, type=f16, swizzle=128B, fill=zero)`.

The map goes to the kernel by value, as a __grid_constant__ parameter of 128 bytes (`ppt_gpu.workload.tensormap`), or as
a member of a struct. Extents stand innermost first. Options: `strides=` bytes between rows, planes, ... (dense unless
given), `steps=` between the elements taken (1), `swizzle=` none, 32B, 64B, 128B, `fill=` zero, nan.
"""

from __future__ import annotations

import re

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.workload.scalars import scalar_type
from ppt_gpu.workload.tensormap import ELEMENT_BYTES, ELEMENTS, FILLS, SWIZZLES
from ppt_gpu.workload.workload import Argument

_TEXT = re.compile(r"\s*tensormap\s*\((?P<inside>.*)\)\s*", re.S)
_NAME = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*(?:\+\s*(?P<offset>\d+))?")
OPTIONS = ("dims", "box", "type", "strides", "steps", "swizzle", "fill")
_EXAMPLE = "such as tensormap(data, dims=1024x512, box=64x64, type=f16, swizzle=128B)"


def is_tensormap(text: str) -> bool:
    return _TEXT.fullmatch(text) is not None


def parse_tensormap(text: str) -> Argument:
    """The argument, a struct of 128 bytes. PptError for what is wrong with it."""
    match = _TEXT.fullmatch(text)
    assert match is not None
    first, *rest = [part.strip() for part in match["inside"].split(",")]
    name = _NAME.fullmatch(first)
    if name is None:
        raise PptError(f"'{first}' is no buffer's name", hint=_EXAMPLE)
    options = _options(rest)
    element = scalar_type("f32" if options["type"] == "tf32" else options["type"])  # moved as they are
    if element not in ELEMENT_BYTES:
        raise PptError(f"a tensor has no elements of type {element}", hint=f"types are {', '.join(ELEMENT_BYTES)}")
    size = ELEMENT_BYTES[element]
    extents, box = _numbers(options, "dims"), _numbers(options, "box")
    steps = _numbers(options, "steps") if "steps" in options else (1,) * len(extents)
    strides = _numbers(options, "strides") if "strides" in options else _dense(extents, size)
    _check(extents, box, steps, strides, size)
    swizzle, fill = _choice(options, "swizzle", SWIZZLES), _choice(options, "fill", FILLS)
    row = -(-box[0] // steps[0]) * size
    if swizzle and row > 16 << swizzle:
        raise PptError(f"a row of the box has {row} bytes, more than the {16 << swizzle} of its swizzle", hint=_EXAMPLE)
    codes = (len(extents) - 1, ELEMENTS.index(element), 0, swizzle, fill)
    fields = [Argument("u64", buffer=name["name"], offset=int(name["offset"] or 0))]
    fields += [Argument("u8", code) for code in codes]
    fields += [Argument("u32", value) for group in (extents, box, steps) for value in (*group, *[0] * 5)[:5]]
    fields += [Argument("u64", value) for value in (*strides, *[0] * 6)[:6]]
    return Argument("struct", fields=tuple(fields))


def _options(parts: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in parts:
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals or key not in OPTIONS:
            raise PptError(f"'{part}' is no option of a tensor map", hint=did_you_mean(key, OPTIONS) or _EXAMPLE)
        found[key] = value
    for key in ("dims", "box", "type"):
        if key not in found:
            raise PptError(f"the tensor map has no {key}=", hint=_EXAMPLE)
    return found


def _numbers(options: dict[str, str], key: str) -> tuple[int, ...]:
    words = options[key].split("x")
    least = 0 if key == "strides" else 1  # every index along an axis may be the same place
    if not all(word.strip().isascii() and word.strip().isdigit() and int(word) >= least for word in words):
        kind = "positive numbers" if least else "numbers from 0 on"
        raise PptError(f"{key}={options[key]}: {kind} are expected, with x between them", hint=_EXAMPLE)
    return tuple(int(word) for word in words)


def _dense(extents: tuple[int, ...], size: int) -> tuple[int, ...]:
    strides, step = [], size
    for extent in extents[:-1]:
        step *= extent
        strides.append(step)
    return tuple(strides)


def _check(
    extents: tuple[int, ...], box: tuple[int, ...], steps: tuple[int, ...], strides: tuple[int, ...], size: int
) -> None:
    """The limits of cuTensorMapEncodeTiled (CUDA driver API)."""
    rank = len(extents)
    if not 1 <= rank <= 5 or len(box) != rank or len(steps) != rank or len(strides) != rank - 1:
        raise PptError("dims, box and steps need one to five axes, as many each, and strides one less", hint=_EXAMPLE)
    if max(box) > 256 or max(steps) > 8 or max(extents) >= 1 << 32:
        raise PptError("a box has at most 256 elements along an axis, taken at most 8 apart", hint=_EXAMPLE)
    if any(stride % 16 or stride >= 1 << 40 for stride in strides):
        raise PptError("the strides of a tensor are multiples of 16 bytes, below 2^40", hint=_EXAMPLE)
    if -(-box[0] // steps[0]) * size % 16:
        raise PptError("a row of the box is no multiple of 16 bytes", hint=_EXAMPLE)


def _choice(options: dict[str, str], key: str, codes: dict[str, int]) -> int:
    word = options.get(key, next(iter(codes)))
    if word not in codes:
        raise PptError(f"{key}={word}", hint=did_you_mean(word, codes) or f"expected one of: {', '.join(codes)}")
    return codes[word]
