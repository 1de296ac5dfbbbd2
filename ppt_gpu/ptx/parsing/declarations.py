"""Declarations: registers, variables and parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from ppt_gpu.common.errors import did_you_mean
from ppt_gpu.ptx.module import TYPE_BYTES, Param, Variable
from ppt_gpu.ptx.parsing.initialisers import BadInitialiser, InitSymbol, initial_bytes
from ppt_gpu.ptx.parsing.lexer import NAME, Source, integer
from ppt_gpu.ptx.parsing.names import Duplicate, Range
from ppt_gpu.ptx.parsing.scope import Scope

SPACES = {
    "global": "global",
    "const": "const",
    "shared": "shared",
    "local": "local",
    "tex": "tex",
    "param": "param",
}
OPAQUE_TYPES = ("texref", "samplerref", "surfref")  # handles of 8 bytes

_REGISTER = re.compile(rf"({NAME})\s*(?:<\s*(\d{{1,20}})\s*>)?", re.ASCII)
_WORD = re.compile(r"\s*\.([A-Za-z]\w*)((?:::\w+)*)", re.ASCII)
_ALIGN = re.compile(r"\s*(\d{1,9})")
_PARENTHESES = re.compile(r"\s*\([^()]*(?:\([^()]*\)[^()]*)?\)")
#: variables of one `name<count>`
MOST_NUMBERED = 4096
_NUMBERED = re.compile(r"\s*<\s*(\d{1,9})\s*>")
_DECLARATOR = re.compile(rf"\s*({NAME})\s*((?:\[\s*\w*\s*\]\s*)*)", re.ASCII)
_DIMENSION = re.compile(r"\[\s*(\w*)\s*\]")
_VALUE = re.compile(r"\s*=\s*")


@lru_cache(maxsize=1024)
def _kinds(words: tuple[str, ...], extra: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
    """The words that are data types (`extra` ones too), and the vector length."""
    vector = next((int(v[1]) for v in ("v2", "v4", "v8") if v in words), 0)
    return tuple(word for word in words if word in TYPE_BYTES or word in extra), vector


class Modifiers:
    """The dotted words before a name: `.param .align 8 .b8`. `end` is where the name begins."""

    def __init__(self, source: Source, text: str, start: int) -> None:
        self.words: dict[str, int] = {}  # word -> position
        self.align = 0
        position = 0
        while (match := _WORD.match(text, position)) is not None:
            word, position = match[1], match.end()
            self.words[word] = start + match.start(1) - 1
            if word == "align":
                number = _ALIGN.match(text, position)
                value = int(number[1]) if number else 0
                if number is None or value & (value - 1) or not value:
                    raise source.error("expected a power of two after .align", start + position)
                self.align, position = value, number.end()
            elif word in ("attribute", "unified") and (match := _PARENTHESES.match(text, position)):
                position = match.end()
        self.end = position

    def kind(self, source: Source, start: int, extra: tuple[str, ...] = ()) -> tuple[str, int]:
        """The data type and the vector length (0: scalar)."""
        kinds, vector = _kinds(tuple(self.words), extra)
        if len(kinds) == 1:
            return kinds[0], vector
        known = {"align", "ptr", "attribute", "v2", "v4", "v8", "reg", "managed", *SPACES}
        strange = [word for word in self.words if word not in known and word not in kinds]
        if strange:
            where = self.words[strange[0]]
            raise source.error(f"unknown type '.{strange[0]}'", where, did_you_mean(strange[0], TYPE_BYTES))
        raise source.error("expected one data type", start, "such as .b32, .f32 or .pred")


def declare_registers(source: Source, text: str, start: int, scope: Scope) -> None:
    """`.reg .b32 %r<6>, %a;` without the `.reg` and the `;`. `start` is the position of `text`."""
    words = Modifiers(source, text, start)
    kind, vector = words.kind(source, start)
    position = start + words.end
    for name in text[words.end :].split(","):
        match = _REGISTER.fullmatch(name.strip())
        if match is None:
            raise source.error(f"expected a register name, found '{name.strip()[:40]}'", source.skip(position))
        line = source.line_of(source.skip(position))
        try:
            if match[2] is not None:
                scope.declare_range(match[1], Range(kind, int(match[2]), line, vector))
            else:
                scope.declare(match[1], kind, line, vector)
        except Duplicate as taken:
            where = source.skip(position)
            message = f"register '{''.join(name.split())}' is already declared on line {taken.line}"
            raise source.error(message, where) from None
        position += len(name) + 1


def variables(source: Source, text: str, start: int, space: str, extern: bool) -> Iterator[tuple[Variable, int]]:
    """The variables of `.align 4 .b8 a[16], b = 1` (space and linkage already read), each with its position."""
    words = Modifiers(source, text, start)
    kind, vector = words.kind(source, start, OPAQUE_TYPES)
    size = 8 if kind in OPAQUE_TYPES else TYPE_BYTES[kind]
    position = words.end
    while True:
        match = _DECLARATOR.match(text, position)
        if match is None:
            raise source.error("expected a variable name", source.skip(start + position))
        place = start + match.start(1)
        dims = _dimensions(source, match[2], start + match.start(2))
        position = match.end()
        names = [match[1]]
        numbered = _NUMBERED.match(text, position) if not dims else None
        if numbered is not None:
            names, position = _numbered(source, match[1], numbered, start), numbered.end()
        value = _VALUE.match(text, position)
        initial = None
        if value is not None:
            position = _end_of_value(text, value.end())
            initial = text[value.end() : position]
        for name in names:
            yield (
                _variable(source, name, place, space, kind, size, vector, dims, words.align, initial, extern),
                place,
            )
        rest = text[position:].lstrip()
        if not rest:
            return
        if rest[0] != ",":
            raise source.error("expected ',' or ';' after a variable", source.skip(start + position))
        position = text.index(",", position) + 1


def _numbered(source: Source, prefix: str, count: re.Match[str], start: int) -> list[str]:
    """The names of `prefix<4>`: prefix0 to prefix3."""
    if int(count[1]) > MOST_NUMBERED:
        message = f"{count[1]} variables in one declaration: at most {MOST_NUMBERED}"
        raise source.error(message, start + count.start(1))
    return [f"{prefix}{number}" for number in range(int(count[1]))]


def _dimensions(source: Source, text: str, start: int) -> tuple[int, ...]:
    dims: list[int] = []
    for match in _DIMENSION.finditer(text):
        size = integer(match[1]) if match[1] else 0
        if size is None or (not match[1] and dims):
            raise source.error("expected an array size", start + match.start())
        dims.append(size)
    if len(dims) > 8:
        raise source.error("an array may have 8 dimensions", start)
    return tuple(dims)


def _end_of_value(text: str, position: int) -> int:
    depth = 0
    while position < len(text):
        character = text[position]
        if character in "{(":
            depth += 1
        elif character in "})":
            depth -= 1
        elif character == "," and depth == 0:
            break
        position += 1
    return position


def _variable(
    source: Source,
    name: str,
    place: int,
    space: str,
    kind: str,
    size: int,
    vector: int,
    dims: tuple[int, ...],
    align: int,
    initial: str | None,
    extern: bool,
) -> Variable:
    data: bytes | None = None
    symbols: tuple[InitSymbol, ...] = ()
    if initial is not None and kind not in OPAQUE_TYPES:
        whole = (*dims, vector) if vector else dims
        try:
            data, symbols = initial_bytes(initial, kind, whole, size)
        except BadInitialiser as bad:
            where = source.text.find(bad.text, place)
            raise source.error(f"{bad.message} ('{name}')", max(where, place)) from None
    total = size * (vector or 1)
    for dim in dims:
        total *= dim
    if dims and dims[0] == 0 and data is not None:
        total = len(data)
    elif dims and dims[0] == 0 and not extern and space != "param":
        raise source.error(f"array '{name}' has no size and no initial values", place)
    natural = size * (vector or 1)
    return Variable(
        name, space, kind, total, align or natural, data, symbols, extern=extern, line=source.line_of(place)
    )


def parameters(source: Source, text: str, start: int, scope: Scope | None = None) -> tuple[Param, ...]:
    """The parameters between the parentheses of a kernel, function or prototype; `.reg` ones go into `scope`."""
    params: list[Param] = []
    if not text.strip():
        return ()
    position = start
    offset = 0
    names: dict[str, int] = {}
    for part in text.split(","):
        where = source.skip(position)
        param = _parameter(source, part, position, offset, scope)
        if param.name in names and param.name != "_":
            raise source.error(f"parameter '{param.name}' is already declared on line {names[param.name]}", where)
        names[param.name] = param.line
        offset = param.offset + param.bytes
        params.append(param)
        position += len(part) + 1
    return tuple(params)


def _parameter(source: Source, text: str, start: int, offset: int, scope: Scope | None) -> Param:
    words = Modifiers(source, text, start)
    where = source.skip(start)
    if "param" not in words.words and "reg" not in words.words:
        raise source.error("expected '.param' and a type", where)
    kind, vector = words.kind(source, where, OPAQUE_TYPES)
    size = (8 if kind in OPAQUE_TYPES else TYPE_BYTES[kind]) * (vector or 1)
    match = _DECLARATOR.fullmatch(text.rstrip(), words.end)
    if match is None:
        raise source.error("expected a parameter name", source.skip(start + words.end))
    line = source.line_of(start + match.start(1))
    register = -1
    if "reg" in words.words and scope is not None:
        try:
            register = scope.declare(match[1], kind, line)
        except Duplicate as taken:
            raise source.error(f"'{match[1]}' is already declared on line {taken.line}", where) from None
    pointer = ""
    align = words.align or size
    if "ptr" in words.words:
        pointer = next((s for s in ("global", "shared", "local", "const") if s in words.words), "generic")
        align = size  # .align of a .ptr is what it points at
    total = size
    for dim in _dimensions(source, match[2], start + match.start(2)):
        total *= dim
    offset = -(-offset // align) * align
    return Param(match[1], kind, total, align, offset, pointer, line, register, total == 0)


__all__ = ["OPAQUE_TYPES", "SPACES", "Modifiers", "declare_registers", "parameters", "variables"]
