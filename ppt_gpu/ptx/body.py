"""The body of a kernel or function: statements between its braces."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from ppt_gpu.errors import PptError, did_you_mean
from ppt_gpu.ptx.declarations import SPACES, declare_registers, parameters, variables
from ppt_gpu.ptx.instructions import Form, form
from ppt_gpu.ptx.lexer import NAME, Source
from ppt_gpu.ptx.module import (
    Guard,
    Instruction,
    Mem,
    Operand,
    Prototype,
    Register,
    Sym,
    Target,
    Variable,
    Vec,
)
from ppt_gpu.ptx.operands import BadOperand, OperandReader, located, split
from ppt_gpu.ptx.scope import Duplicate, Entry, Names, Scope
from ppt_gpu.ptx.table import NONE, UPDATE

#: scopes may nest this deep
DEEPEST_SCOPE = 200

# Every alternative begins differently, so none is tried twice; possessive quantifiers keep bad input linear.
_STATEMENT = re.compile(
    r"\s*+(?:"
    r"(?:@\s*+(!?)\s*+([%\w$]++)\s++)?+([a-z]\w*+(?:\.\w++(?:::\w++)*+)*+)(?!\s*+:(?!:))([^;]*+);"  # 1-4 instruction
    r"|([A-Za-z_$%][\w$]*+)\s*+:"  # 5 label
    r"|(\{)|(\})"  # 6, 7
    r"|\.loc\b\s*+\d++\s++(\d++)[^\n]*+"  # 8 source line
    r"|\.(?:file|loc)\b[^\n]*+()"  # 9
    r"|\.([a-z]\w*+)"  # 10 directive
    r")",
    re.ASCII,
)
_INSTRUCTION, _LABEL, _OPEN, _CLOSE, _LOC, _FILE, _DIRECTIVE = 4, 5, 6, 7, 8, 9, 10
_TO_SEMICOLON = re.compile(r'((?:[^;"{}]|"[^"\n]*"|\{[^;]*?\})*+);')
_LABELLED = re.compile(r"\s*+\.(callprototype|branchtargets|calltargets)\b([^;]*+);")
_PROTOTYPE = re.compile(
    rf"\s*(?:\(([^()]*)\)\s*)?(?:_|{NAME})\s*(?:\(([^()]*)\))?\s*(?:\.noreturn\s*|\.abi_\w+\s+[\d,\s]*)*",
    re.ASCII,
)
_CALL = re.compile(rf"\s*(?:(\([^()]*\))\s*,\s*)?({NAME})\s*(?:,\s*(\([^()]*\))\s*)?(?:,\s*({NAME})\s*)?", re.ASCII)
_OPCODE_LIKE = re.compile(r"@?[!%\w.$]+")


class Body:
    """Reads one body. After `read`, holds what `ppt_gpu.ptx.module.Kernel` wants."""

    def __init__(self, source: Source, names: Names, scope: Scope, is_global: Callable[[str], bool]) -> None:
        self.source = source
        self.names = names
        self.scope = scope
        self.unknown: dict[str, None] = {}  # symbols not declared so far
        self.reader = OperandReader(is_global, self._note)
        self.instructions: list[Instruction] = []
        self.variables: list[Variable] = []
        self.labels: dict[str, int] = {}
        self.label_lines: dict[str, int] = {}
        self.branch_lists: dict[str, tuple[list[str], Scope, int]] = {}
        self.call_tables: dict[str, tuple[str, ...]] = {}
        self.prototypes: dict[str, Prototype] = {}
        self.directives: dict[str, tuple[int, ...]] = {}
        self.branch_tables: dict[str, tuple[int, ...]] = {}
        self._waiting: list[tuple[int, int, str, Scope, int]] = []  # labels to resolve: instruction, operand, ...
        self._carry = -1
        self._guards: dict[tuple[int, bool], Guard] = {}
        self._depth = 0

    def _note(self, name: str) -> None:
        self.unknown[name] = None

    @property
    def registers(self) -> tuple[Register, ...]:
        return tuple(self.names.registers)

    def read(self, position: int) -> int:
        """Read from after the opening brace to after the closing one; returns that position. Raises PptError."""
        text = self.source.text
        match_at = _STATEMENT.match
        source_line = 0
        opening = position - 1
        while True:
            match = match_at(text, position)
            if match is None:
                raise self._unreadable(position, opening)
            kind = match.lastindex
            position = match.end()
            if kind == _INSTRUCTION:
                self._instruction(match, source_line)
            elif kind == _LABEL:
                position = self._label(match)
            elif kind == _LOC:
                source_line = int(match[_LOC][:9])
            elif kind == _OPEN:
                self._open(match.start(_OPEN))
            elif kind == _CLOSE:
                if self.scope.parent is None:
                    self._finish()
                    return position
                self.scope = self.scope.parent
                self._depth -= 1
            elif kind == _DIRECTIVE:
                position = self._directive(match[_DIRECTIVE], match.start(_DIRECTIVE), position)

    def _open(self, position: int) -> None:
        self._depth += 1
        if self._depth > DEEPEST_SCOPE:
            raise self.source.error(f"scopes are nested more than {DEEPEST_SCOPE} deep", position)
        self.scope = Scope(self.names, self.scope, position)

    # instructions

    def _instruction(self, match: re.Match[str], source_line: int) -> None:
        negated, guard_name, opcode, text = match.group(1, 2, 3, 4)
        source = self.source
        start = match.start(3)
        try:
            known = form(opcode)
        except PptError as error:
            raise source.error(error.message, start, error.hint) from None
        try:
            entries = self._operands(known, text)
        except BadOperand as bad:
            raise self._bad_operand(bad, text, match.start(4)) from None
        count = len(entries)
        if not known.least <= count <= known.most:
            raise self._wrong_count(known, count, text, match)
        reads: tuple[int, ...] = ()
        writes: tuple[int, ...] = ()
        if known.destination is NONE or not entries:
            for entry in entries:
                reads += entry[1]
        else:
            first, registers = entries[0]
            if type(first) is Mem:
                reads = registers
            else:
                writes = registers
                if known.destination is UPDATE:
                    reads = registers
            for entry in entries[1:]:
                reads += entry[1]
        guard = None
        if guard_name is not None:
            guard = self._guard(guard_name, negated == "!", match.start(2))
            reads += (guard.reg,)
        if known.carry_in or known.carry_out:
            reads, writes = self._with_carry(known, reads, writes)
        index = len(self.instructions)
        if known.label >= 0:
            self._wait_for_label(index, known, entries, match)
        line, column = source.place(start if guard is None else match.start(2) - 1 - len(negated))
        self.instructions.append(
            Instruction(index, opcode, tuple([e[0] for e in entries]), guard, reads, writes, line, column, source_line)
        )

    def _operands(self, known: Form, text: str) -> list[Entry]:
        if known.base == "call":
            return self._call(text)
        scope = self.scope
        cached = scope.entries
        read = self.reader.read
        parts = split(text)
        if known.label >= 0:
            at = known.label
            return [
                (Target(part.strip()), ()) if position == at else read(part, scope)
                for position, part in enumerate(parts)
            ]
        return [cached.get(part) or read(part, scope) for part in parts]

    def _call(self, text: str) -> list[Entry]:
        """(results), callee, (arguments)[, prototype]: always three or four operands."""
        match = _CALL.fullmatch(text)
        if match is None:
            raise BadOperand("expected call (result), function, (arguments)", text)
        results, callee, arguments, table = match.groups()
        scope = self.scope
        empty: Entry = (Vec(()), ())
        entries = [
            self.reader.read(results, scope) if results else empty,
            self.reader.read(callee, scope),
            self.reader.read(arguments, scope) if arguments else empty,
        ]
        if table is not None:
            entries.append((Target(table), ()))
        elif not isinstance(entries[1][0], Sym):
            raise BadOperand("an indirect call needs a prototype after its arguments", callee)
        return entries

    def _guard(self, name: str, negated: bool, position: int) -> Guard:
        register = self.scope.register(name)
        if register is None:
            hint = self.scope.nearest_register(name)
            raise self.source.error(f"register '{name}' is not declared", position, hint)
        kind = self.names.registers[register].type
        if kind != "pred":
            raise self.source.error(f"the guard '{name}' is a .{kind}: expected a .pred register", position)
        guard = self._guards.get((register, negated))
        if guard is None:
            guard = self._guards[register, negated] = Guard(register, negated)
        return guard

    def _with_carry(
        self, known: Form, reads: tuple[int, ...], writes: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if self._carry < 0:
            self._carry = len(self.names.registers)
            self.names.registers.append(Register("%cc", "pred", 0))
        flag = (self._carry,)
        return (reads + flag if known.carry_in else reads), (writes + flag if known.carry_out else writes)

    def _wait_for_label(self, index: int, known: Form, entries: list[Entry], match: re.Match[str]) -> None:
        target = entries[known.label][0]
        assert isinstance(target, Target)
        position = self.source.skip(match.start(4)) if known.label == 0 else match.start(3)
        self._waiting.append((index, known.label, target.name, self.scope, position))

    # labels

    def _label(self, match: re.Match[str]) -> int:
        name, start = match[_LABEL], match.start(_LABEL)
        if name in self.scope.labels:
            line = self.label_lines[self.scope.labels[name]]
            raise self.source.error(f"label '{name}' is already defined on line {line}", start)
        unique = self.scope.declare_label(name)
        self.label_lines[unique] = self.source.line_of(start)
        labelled = _LABELLED.match(self.source.text, match.end())
        if labelled is None:
            self.labels[unique] = len(self.instructions)
            return match.end()
        kind, text, position = labelled[1], labelled[2], labelled.start(2)
        if kind == "callprototype":
            self.prototypes[unique] = self._prototype(text, position)
        else:
            listed = [name.strip() for name in text.split(",")]
            if kind == "branchtargets":
                self.branch_lists[unique] = (listed, self.scope, position)
            else:
                self.call_tables[unique] = tuple(listed)
                self.unknown.update(dict.fromkeys(listed))
        return labelled.end()

    def _prototype(self, text: str, position: int) -> Prototype:
        match = _PROTOTYPE.fullmatch(text)
        if match is None:
            raise self.source.error("expected .callprototype (results) _ (parameters)", self.source.skip(position))
        results = parameters(self.source, match[1] or "", position + max(match.start(1), 0))
        return Prototype(results, parameters(self.source, match[2] or "", position + max(match.start(2), 0)))

    # directives

    def _directive(self, word: str, start: int, position: int) -> int:
        match = _TO_SEMICOLON.match(self.source.text, position)
        known = ("reg", "pragma", "local", "shared", "param", "global", "const")
        if word not in known:
            hint = did_you_mean(word, [*known, "loc", "file"])
            raise self.source.error(f"unknown directive '.{word}' in a body", start - 1, hint)
        if match is None:
            raise self.source.error(f"expected ';' after '.{word}'", self._end_of_line(start))
        text = match[1]
        if word == "reg":
            self._check_one_line(text, position)
            declare_registers(self.source, text, position, self.scope)
        elif word != "pragma":
            self._check_one_line(text, position)
            for variable, place in variables(self.source, text, position, SPACES[word], extern=False):
                self._declare_variable(variable, place)
        return match.end()

    def _check_one_line(self, text: str, position: int) -> None:
        """A declaration that runs into the next one has lost its semicolon."""
        for line in re.finditer(r"\n\s*(\.(?:reg|local|shared|param)\b|@|[a-z]+\.)", text):
            raise self.source.error("expected ';' at the end of the declaration", position + line.start() - 1)

    def _declare_variable(self, variable: Variable, place: int) -> None:
        try:
            unique = self.scope.declare_symbol(variable.name, variable.line)
        except Duplicate as taken:
            message = f"'{variable.name}' is already declared on line {taken.line}"
            raise self.source.error(message, place) from None
        self.variables.append(variable if unique == variable.name else replace(variable, name=unique))

    # the end

    def _finish(self) -> None:
        for index, at, name, scope, position in self._waiting:
            instruction = self.instructions[index]
            operands: list[Operand] = list(instruction.operands)
            if at == 1:
                operands[at] = self._table_target(name, scope, position)
            else:
                operands[at] = self._branch_target(name, scope, position)
            self.instructions[index] = replace(instruction, operands=tuple(operands))
        for name, (listed, scope, position) in self.branch_lists.items():
            targets = [self._branch_target(label, scope, position) for label in listed]
            self.branch_tables[name] = tuple(target.index for target in targets)

    def _branch_target(self, name: str, scope: Scope, position: int) -> Target:
        unique = scope.label(name)
        if unique is None or unique not in self.labels:
            visible = [n for s in scope.chain() for n, u in s.labels.items() if u in self.labels]
            raise self.source.error(f"label '{name}' is not defined", position, did_you_mean(name, visible))
        return Target(unique, self.labels[unique])

    def _table_target(self, name: str, scope: Scope, position: int) -> Target:
        unique = scope.label(name)
        if unique is None or unique not in self.branch_lists:
            hint = did_you_mean(name, self.branch_lists)
            raise self.source.error(f"'{name}' is no .branchtargets list", position, hint)
        return Target(unique)

    # errors

    def _end_of_line(self, position: int) -> int:
        end = self.source.text.find("\n", position)
        line = self.source.text[position : end if end >= 0 else None].rstrip()
        return position + max(len(line) - 1, 0)

    def _bad_operand(self, bad: BadOperand, text: str, start: int) -> PptError:
        where = located(bad, text, start)
        first, _, following = text.strip().partition("\n")
        runs_on = "\n" in bad.text or _OPCODE_LIKE.match(following.lstrip())
        if runs_on and first.count("{") == first.count("}") and not first.rstrip().endswith(","):
            return self.source.error("expected ';' at the end of the instruction", self._end_of_line(start))
        return self.source.error(bad.message, where, bad.hint)

    def _wrong_count(self, known: Form, count: int, text: str, match: re.Match[str]) -> PptError:
        if "\n" in text.strip():
            message = "expected ';' at the end of the instruction"
            return self.source.error(message, self._end_of_line(match.start(4)))
        wanted = str(known.least) if known.least == known.most else f"{known.least} to {known.most}"
        plural = "operand" if wanted == "1" else "operands"
        return self.source.error(f"'{known.opcode}' takes {wanted} {plural}, found {count}", match.start(3))

    def _unreadable(self, position: int, opening: int) -> PptError:
        source = self.source
        where = source.skip(position)
        if where >= len(source.text):
            brace = opening if self.scope.parent is None else self.scope.position
            line = source.line_of(brace)
            return source.error(f"the file ends inside the body opened on line {line}: expected '}}'", where)
        if ";" not in source.text[where:]:
            return source.error("the file ends inside a statement: expected ';'", len(source.text))
        found = source.text[where : where + 20].split("\n")[0].rstrip()
        hint = "PTX is case sensitive: write opcodes in lower case" if found[:1].isupper() else None
        return source.error(f"expected an instruction, a label or a directive, found '{found}'", where, hint)
