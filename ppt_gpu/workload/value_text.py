"""What one kernel parameter holds: a scalar, an address in a buffer, or a struct of such values.

Members of a struct stand at their natural alignment. A struct within it is aligned as its widest member, and ends at a
multiple of that, as in C++, an empty one takes a byte; a tensor map is aligned to 64 B (structs compiled with CUDA 13
or later align it to 128 B: write the bytes between as members, `u64=0`).
"""

from __future__ import annotations

import re

from ppt_gpu.common.errors import PptError
from ppt_gpu.ptx.module import TYPE_BYTES
from ppt_gpu.workload.literals import literal
from ppt_gpu.workload.scalars import check_scalar, is_float, parse_scalar, scalar_type
from ppt_gpu.workload.tensormap_text import is_tensormap, parse_tensormap
from ppt_gpu.workload.workload import Argument

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
