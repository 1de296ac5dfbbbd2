"""The body of a kernel or function: statements between its braces."""

from __future__ import annotations

import re
from dataclasses import replace

from ppt_gpu.common.errors import InputErrors, PptError, did_you_mean
from ppt_gpu.ptx.module import Prototype, Register, Target, Variable
from ppt_gpu.ptx.parsing.declarations import SPACES, declare_registers, parameters, variables
from ppt_gpu.ptx.parsing.lexer import NAME, Source
from ppt_gpu.ptx.parsing.names import Duplicate, Names
from ppt_gpu.ptx.parsing.operands import OperandReader
from ppt_gpu.ptx.parsing.scope import Scope
from ppt_gpu.ptx.parsing.statement import Instructions

#: scopes may nest this deep
DEEPEST_SCOPE = 200

# What is no instruction. Every alternative begins differently, so none is tried twice; possessive quantifiers keep bad
# input linear.
_STATEMENT = re.compile(
    r"\s*+(?:([A-Za-z_$%][\w$]*+)\s*+:"  # 1 label
    r"|(\{)|(\})"  # 2, 3
    r"|\.loc\b\s*+\d++\s++(\d++)[^\n]*+"  # 4 source line
    r"|\.(?:file|loc)\b[^\n]*+()"  # 5
    r"|\.([a-z]\w*+)"  # 6 directive
    r")",
    re.ASCII,
)
_LABEL, _OPEN, _CLOSE, _LOC, _FILE, _DIRECTIVE = 1, 2, 3, 4, 5, 6
_TO_SEMICOLON = re.compile(r'((?:[^;"{}]++|"[^"\n]*"|\{[^;{}]*\})*+);')
_LABELLED = re.compile(r"\s*+\.(callprototype|branchtargets|calltargets)\b([^;]*+);")
_PROTOTYPE = re.compile(
    rf"\s*(?:\(([^()]*)\)\s*)?(?:_|{NAME})\s*(?:\(([^()]*)\))?\s*(?:\.noreturn\s*|\.abi_\w+\s+[\d,\s]*)*",
    re.ASCII,
)
_NUMBERED = re.compile(rf"({NAME})\s*<\s*(\d{{1,5}})\s*>", re.ASCII)
_DIRECTIVES = ("reg", "pragma", "local", "shared", "param", "global", "const")
_RUN_ON = re.compile(r"\n\s*+(?:\.(?:reg|local|shared|param)\b|@|[a-z]++\.)")


def _numbered(name: str) -> list[str]:
    """The names of `N<5>`: N0 to N4; of others, their own."""
    match = _NUMBERED.fullmatch(name)
    return [name] if match is None else [f"{match[1]}{number}" for number in range(int(match[2]))]


class Body:
    """Reads one body. After `read`, holds what `ppt_gpu.ptx.module.Kernel` wants."""

    def __init__(self, source: Source, names: Names, scope: Scope, reader: OperandReader) -> None:
        self.source = source
        self.names = names
        self.scope = scope
        self.reader = reader
        self.instructions = Instructions(source, names)
        self.variables: list[Variable] = []
        self.labels: dict[str, int] = {}
        self.call_tables: dict[str, tuple[str, ...]] = {}
        self.prototypes: dict[str, Prototype] = {}
        self.branch_tables: dict[str, tuple[int, ...]] = {}
        self._branch_lists: dict[str, tuple[list[str], Scope, int]] = {}
        self.rolled: set[int] = set()  # instructions before which .pragma "nounroll" stands
        self._label_lines: dict[str, int] = {}
        self._depth = 0

    @property
    def registers(self) -> tuple[Register, ...]:
        return tuple(self.names.registers)

    def read(self, position: int) -> int:
        """Read from after the opening brace to after the closing one; returns that position.

        Raises PptError: InputErrors for several bad instructions, else the first mistake.
        """
        errors = self.instructions.errors
        try:
            position = self._statements(position)
            if not errors:
                self._finish()
                return position
        except PptError:
            if not errors:
                raise
        raise _together(errors)

    def _statements(self, position: int) -> int:
        text = self.source.text
        match_at = _STATEMENT.match
        source_line = 0
        opening = position - 1
        while True:
            position = self.instructions.read(position, self.scope, source_line)
            match = match_at(text, position)
            if match is None:
                raise self._unreadable(position, opening)
            kind = match.lastindex
            position = match.end()
            if kind == _LABEL:
                position = self._label(match)
            elif kind == _LOC:
                source_line = int(match[_LOC][:9])
            elif kind == _OPEN:
                self._open(match.start(_OPEN))
            elif kind == _CLOSE:
                self.scope.close()
                if self.scope.parent is None:
                    return position
                self.scope = self.scope.parent
                self._depth -= 1
            elif kind == _DIRECTIVE:
                position = self._directive(match[_DIRECTIVE], match.start(_DIRECTIVE), position)

    def _open(self, position: int) -> None:
        self._depth += 1
        if self._depth > DEEPEST_SCOPE:
            raise self.source.error(f"scopes are nested more than {DEEPEST_SCOPE} deep", position)
        self.scope = Scope(self.names, self.scope, position, self.reader.read)

    # labels

    def _label(self, match: re.Match[str]) -> int:
        name, start = match[_LABEL], match.start(_LABEL)
        if name in self.scope.labels:
            line = self._label_lines[self.scope.labels[name]]
            raise self.source.error(f"label '{name}' is already defined on line {line}", start)
        unique = self.scope.declare_label(name)
        self._label_lines[unique] = self.source.line_of(start)
        labelled = _LABELLED.match(self.source.text, match.end())
        if labelled is None:
            self.labels[unique] = len(self.instructions.all)
            return match.end()
        kind, text, position = labelled[1], labelled[2], labelled.start(2)
        if kind == "callprototype":
            self.prototypes[unique] = self._prototype(text, position)
        else:
            listed = [name for part in text.split(",") for name in _numbered(part.strip())]
            if kind == "branchtargets":
                self._branch_lists[unique] = (listed, self.scope, position)
            else:
                self.call_tables[unique] = tuple(listed)
                self.reader.unknown.update(dict.fromkeys(listed))
        return labelled.end()

    def _prototype(self, text: str, position: int) -> Prototype:
        match = _PROTOTYPE.fullmatch(text)
        if match is None:
            raise self.source.error("expected .callprototype (results) _ (parameters)", self.source.skip(position))
        results = parameters(self.source, match[1] or "", position + max(match.start(1), 0))
        return Prototype(results, parameters(self.source, match[2] or "", position + max(match.start(2), 0)))

    # directives

    def _directive(self, word: str, start: int, position: int) -> int:
        if word not in _DIRECTIVES:
            hint = did_you_mean(word, [*_DIRECTIVES, "loc", "file"])
            raise self.source.error(f"unknown directive '.{word}' in a body", start - 1, hint)
        match = _TO_SEMICOLON.match(self.source.text, position)
        if match is None:
            raise self.source.error(f"expected ';' after '.{word}'", self.source.end_of_line(start))
        text = match[1]
        if word == "pragma":
            if "nounroll" in text:
                self.rolled.add(len(self.instructions.all))
            return match.end()
        run_on = _RUN_ON.search(text)
        if run_on is not None:
            where = self.source.end_of_line(position + run_on.start() - 1)
            raise self.source.error("expected ';' at the end of the declaration", where)
        if word == "reg":
            declare_registers(self.source, text, position, self.scope)
        else:
            for variable, place in variables(self.source, text, position, SPACES[word], extern=False):
                self._declare_variable(variable, place)
        return match.end()

    def _declare_variable(self, variable: Variable, place: int) -> None:
        try:
            unique = self.scope.declare_symbol(variable.name, variable.line)
        except Duplicate as taken:
            message = f"'{variable.name}' is already declared on line {taken.line}"
            raise self.source.error(message, place) from None
        self.variables.append(variable if unique == variable.name else replace(variable, name=unique))

    # the end

    def _finish(self) -> None:
        for index, operand, name, scope, position in self.instructions.waiting:
            find = (self._branch_target, self._jump_list, None, self._callees)[operand]
            assert find is not None
            self.instructions.set_target(index, operand, find(name, scope, position))
        for name, (listed, scope, position) in self._branch_lists.items():
            targets = [self._branch_target(label, scope, position) for label in listed]
            self.branch_tables[name] = tuple(target.index for target in targets)

    def _branch_target(self, name: str, scope: Scope, position: int) -> Target:
        unique = scope.label(name)
        if unique is None or unique not in self.labels:
            visible = [n for s in scope.chain() for n, u in s.labels.items() if u in self.labels]
            raise self.source.error(f"label '{name}' is not defined", position, did_you_mean(name, visible))
        return Target(unique, self.labels[unique])

    def _jump_list(self, name: str, scope: Scope, position: int) -> Target:
        unique = scope.label(name)
        if unique is None or unique not in self._branch_lists:
            hint = did_you_mean(name, self._branch_lists)
            raise self.source.error(f"'{name}' is no .branchtargets list", position, hint)
        return Target(unique)

    def _callees(self, name: str, scope: Scope, position: int) -> Target:
        unique = scope.label(name)
        if unique is None or (unique not in self.prototypes and unique not in self.call_tables):
            if unique is None and self.reader.is_global(name):
                return Target(name)  # a variable, initialised with the addresses of functions
            hint = did_you_mean(name, [*self.prototypes, *self.call_tables])
            raise self.source.error(f"'{name}' is no .callprototype or .calltargets", position, hint)
        return Target(unique)

    # errors

    def _unreadable(self, position: int, opening: int) -> PptError:
        source = self.source
        where = source.skip(position)
        if where >= len(source.text):
            line = source.line_of(opening if self.scope.parent is None else self.scope.position)
            return source.error(f"the file ends inside the body opened on line {line}: expected '}}'", where)
        if ";" not in source.text[where:]:
            return source.error("the file ends inside a statement: expected ';'", len(source.text))
        found = source.text[where : where + 20].split("\n")[0].rstrip()
        hint = "PTX is case sensitive: write opcodes in lower case" if found[:1].isupper() else None
        return source.error(f"expected an instruction, a label or a directive, found '{found}'", where, hint)


def _together(errors: list[PptError]) -> PptError:
    """One error for all; its place is that of the first."""
    first = errors[0]
    if len(errors) == 1:
        return first
    found = InputErrors(errors)
    found.path, found.line, found.column = first.path, first.line, first.column
    return found
