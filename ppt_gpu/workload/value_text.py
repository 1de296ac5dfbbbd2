"""What one kernel parameter holds: a scalar, an address in a buffer, or a struct of such values.

Members of a struct stand at their natural alignment. A struct within it is aligned as its widest member, and ends at a
multiple of that, as in C++, an empty one takes a byte; a tensor map is aligned to 64 B (structs compiled with CUDA 13
or later align it to 128 B: write the bytes between as members, `u64=0`).

Tensor maps as arguments: `tensormap(data, dims=1024x512, box=64x64, type=f16, swizzle=128B, fill=zero)`.

The map goes to the kernel by value, as a __grid_constant__ parameter of 128 bytes (`ppt_gpu.workload.tensormap`), or as
a member of a struct. Extents stand innermost first. Options: `strides=` bytes between rows, planes, ... (dense unless
given), `steps=` between the elements taken (1), `swizzle=` none, 32B, 64B, 128B, `fill=` zero, nan.
"""

from __future__ import annotations

import re

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.ptx.module import TYPE_BYTES
from ppt_gpu.workload.literals import literal
from ppt_gpu.workload.scalars import check_scalar, is_float, parse_scalar, scalar_type
from ppt_gpu.workload.tensormap import ELEMENT_BYTES, ELEMENTS, FILLS, SWIZZLES
from ppt_gpu.workload.workload import Argument

_TEXT = re.compile(r"\s*tensormap\s*\((?P<inside>.*)\)\s*", re.S)
_NAME_OF_MAP = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*(?:\+\s*(?P<offset>\d+))?")
OPTIONS = ("dims", "box", "type", "strides", "steps", "swizzle", "fill")
_EXAMPLE = "such as tensormap(data, dims=1024x512, box=64x64, type=f16, swizzle=128B)"


def is_tensormap(text: str) -> bool:
    return _TEXT.fullmatch(text) is not None


def parse_tensormap(text: str) -> Argument:
    """The argument, a struct of 128 bytes. PptError for what is wrong with it."""
    match = _TEXT.fullmatch(text)
    assert match is not None
    first, *rest = [part.strip() for part in match["inside"].split(",")]
    name = _NAME_OF_MAP.fullmatch(first)
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


_SCALAR = re.compile(r"\s*(?P<type>\w+)\s*=(?P<value>.*)", re.S)
_ROUND = re.compile(r"\s*(?:(?P<start>\w+)\s*(?P<sign>[-+])\s*)?(?:(?P<factor>\w+)\s*\*\s*)?round\s*")
_NAME = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*(?:\+\s*(?P<offset>\w+))?\s*")
_STRUCT = re.compile(r"\s*struct\s*\((?P<fields>.*)\)\s*", re.S)
_FORMS = "forms: 1024, i32=1024, f32=2.5, f32[1048576]=random, f32[1048576]:copied, struct(f32=1, i32=2)"
TENSORMAP_ALIGNMENT = 64


def parse_value(text: str) -> Argument:
    """A value from its text form. PptError when the text has none of the forms, or a type or value in it is wrong."""
    if is_tensormap(text):
        return parse_tensormap(text)
    if match := _STRUCT.fullmatch(text):
        return Argument("struct", fields=_members(match["fields"])[0])
    return _scalar(text)


def _members(text: str) -> tuple[tuple[Argument, ...], int]:
    """(scalars of a struct, with zeros where structs within it are padded; alignment)."""
    found: list[Argument] = []
    size, widest = 0, 1
    for part in _parts(text):
        if is_tensormap(part):
            members, align = parse_tensormap(part).fields, TENSORMAP_ALIGNMENT
        elif match := _STRUCT.fullmatch(part):
            members, align = _members(match["fields"])
            members = members or (Argument("u8", 0),)
        else:
            members, align = (_scalar(part),), 1
        found += [Argument("u8", 0)] * (-size % align)
        size += -size % align
        for member in members:
            natural = TYPE_BYTES[scalar_type(member.type)]
            size += -size % natural + natural
            align = max(align, natural)
        found += members
        if len(members) != 1:
            found += [Argument("u8", 0)] * (-size % align)
            size += -size % align
        widest = max(widest, align)
    return tuple(found), widest


def _parts(text: str) -> list[str]:
    """What stands between commas outside of parentheses."""
    if not text.strip():
        return []
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _scalar(text: str) -> Argument:
    if match := _SCALAR.fullmatch(text):
        element = scalar_type(match["type"])
        if counted := _ROUND.fullmatch(match["value"]):
            return _by_round(element, counted)
        return Argument(element, parse_scalar(element, match["value"]))
    if match := _NAME.fullmatch(text):
        offset = parse_scalar("s64", match["offset"]) if match["offset"] else 0
        return Argument("u64", buffer=match["name"], offset=int(offset))
    if literal(text) is not None:
        raise PptError(f"{text.strip()}: a member of a struct needs a type", hint=f"such as i32={text.strip()}")
    raise PptError(f"'{text}' is not an argument", hint=_FORMS)


def _by_round(element: str, match: re.Match[str]) -> Argument:
    if is_float(element):
        raise PptError(f"round is an integer, and {element} is not an integer type", hint="such as i32=round")
    start, factor = (int(parse_scalar("s64", text)) for text in (match["start"] or "0", match["factor"] or "1"))
    check_scalar(element, start)
    return Argument(element, start, step=-factor if match["sign"] == "-" else factor)
