"""Kernels and functions: their heads, and around their bodies (`ppt_gpu.ptx.parsing.body`) what the module knows."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ppt_gpu.common.errors import did_you_mean
from ppt_gpu.ptx.module import Kernel, Param, Variable
from ppt_gpu.ptx.parsing.body import Body
from ppt_gpu.ptx.parsing.declarations import parameters
from ppt_gpu.ptx.parsing.lexer import NAME, Source
from ppt_gpu.ptx.parsing.names import Names
from ppt_gpu.ptx.parsing.operands import OperandReader
from ppt_gpu.ptx.parsing.scope import Scope

_NAME = re.compile(rf"\s*({NAME})\s*", re.ASCII)
_PARENTHESES = re.compile(r"\s*\(([^()]*)\)")
_PERFORMANCE = re.compile(r"\s*\.([a-z_]\w*)\s*((?:\"[^\"\n]*\"\s*;?|\([^()]*\)|[\d,\s]+)?)")
_PERFORMANCE_NAMES = (
    "maxntid reqntid minnctapersm maxnctapersm maxnreg maxclusterrank reqnctapercluster explicitcluster "
    "blocksareclusters noreturn pragma abi_preserve abi_preserve_control unified attribute"
)
_THREE_NUMBERS = ("maxntid", "reqntid", "reqnctapercluster")


@dataclass
class Symbols:
    """What the module has declared so far."""

    kernels: dict[str, Kernel] = field(default_factory=dict)
    functions: dict[str, Kernel] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    #: not declared where they were used: name, position to search from, names known there
    unknown: list[tuple[str, int, list[str]]] = field(default_factory=list)

    def __contains__(self, name: str) -> bool:
        return name in self.variables or name in self.functions or name in self.kernels


@dataclass
class _Head:
    """What stands before a body."""

    name: str
    start: int  # position of the name
    params: tuple[Param, ...]
    returns: tuple[Param, ...]
    directives: dict[str, tuple[int, ...]]
    end: int  # position of "{" or ";"


def read_function(source: Source, symbols: Symbols, is_entry: bool, position: int, creatable: list[int]) -> int:
    """Read a .entry or .func from after that word; returns the position after it. Raises PptError.

    `creatable[0]` registers may be created before they are used, in the whole module.
    """
    names = Names(creatable=creatable)
    unknown: dict[str, None] = {}
    reader = OperandReader(symbols.__contains__, unknown)
    scope = Scope(names, None, position, reader.read)
    head = _read_head(source, is_entry, position, scope)
    has_body = source.text[head.end : head.end + 1] == "{"
    if not has_body and source.text[head.end : head.end + 1] != ";":
        raise source.error("expected '{' or ';' after the function's head", head.end)
    table = symbols.kernels if is_entry else symbols.functions
    before = table.get(head.name)
    if before is not None and before.has_body and has_body:
        raise source.error(f"'{head.name}' is already defined on line {before.line}", head.start)
    if before is None:  # known from here on, so that a function can call itself
        table[head.name] = Kernel(
            head.name, head.params, (), (), (), {}, is_entry=is_entry, returns=head.returns,
            line=source.line_of(head.start), has_body=False,
        )  # fmt: skip
    body = Body(source, names, scope, reader)
    end = body.read(head.end + 1) if has_body else head.end + 1
    scope.close()
    if unknown:
        local = [*scope.symbols, *scope.registers]
        symbols.unknown += [(symbol, head.end, local) for symbol in unknown]
    if has_body:
        table[head.name] = _kernel(source, head, body, is_entry, end)
    return end


def _kernel(source: Source, head: _Head, body: Body, is_entry: bool, end: int) -> Kernel:
    return Kernel(
        name=head.name,
        params=head.params,
        registers=body.registers,
        variables=tuple(body.variables),
        instructions=tuple(body.instructions.all),
        labels=body.labels,
        directives=head.directives,
        is_entry=is_entry,
        returns=head.returns,
        line=source.line_of(head.start),
        end_line=source.line_of(end - 1),
        branch_tables=body.branch_tables,
        call_tables=body.call_tables,
        prototypes=body.prototypes,
        rolled=frozenset(body.rolled),
    )


def _read_head(source: Source, is_entry: bool, position: int, scope: Scope) -> _Head:
    text = source.text
    directives: dict[str, tuple[int, ...]] = {}
    position = _performance(source, position, directives)
    returns: tuple[Param, ...] = ()
    match = _PARENTHESES.match(text, position)
    if match is not None and not is_entry:
        returns = parameters(source, match[1], match.start(1), scope)
        position = match.end()
    named = _NAME.match(text, position)
    if named is None:
        raise source.error("expected a function name", source.skip(position))
    params: tuple[Param, ...] = ()
    position = source.skip(named.end())
    match = _PARENTHESES.match(text, position)
    if match is not None:
        params = parameters(source, match[1], match.start(1), scope)
        position = match.end()
    elif text[position : position + 1] == "(":
        raise source.error("this parameter list never ends: expected ')'", position)
    for param in (*params, *returns):
        scope.symbols[param.name] = param.name
        scope.symbol_lines[param.name] = param.line
        scope.names.symbol_names.add(param.name)
    end = source.skip(_performance(source, position, directives))
    return _Head(named[1], named.start(1), params, returns, directives, end)


def _performance(source: Source, position: int, directives: dict[str, tuple[int, ...]]) -> int:
    """Directives such as `.maxntid 256, 1, 1` from `position` on."""
    while (match := _PERFORMANCE.match(source.text, position)) is not None:
        word, value = match.groups()
        if word not in _PERFORMANCE_NAMES.split():
            hint = did_you_mean(word, _PERFORMANCE_NAMES.split())
            raise source.error(f"unknown directive '.{word}' on a function", match.start(1) - 1, hint)
        if value[:1] not in ('"', "("):
            numbers = tuple(int(digits[:10]) for digits in re.findall(r"\d+", value))
            three = numbers and word in _THREE_NUMBERS
            directives[word] = (*numbers, 1, 1)[:3] if three else numbers
        position = match.end()
    return position
