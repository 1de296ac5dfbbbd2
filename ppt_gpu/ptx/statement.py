"""Instructions of a body, from their matched text to `ppt_gpu.ptx.module.Instruction`."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import replace

from ppt_gpu.errors import PptError
from ppt_gpu.ptx.instructions import Form, form
from ppt_gpu.ptx.lexer import NAME, Source
from ppt_gpu.ptx.module import Guard, Instruction, Mem, Operand, Register, Sym, Target, Vec
from ppt_gpu.ptx.names import Entry, Names
from ppt_gpu.ptx.operands import BadOperand, located, split
from ppt_gpu.ptx.scope import Scope
from ppt_gpu.ptx.table import FIRST, UPDATE

#: groups: "!" or "", guard, opcode, operands
INSTRUCTION = r"(?:@\s*+(!?)\s*+([%\w$]++)\s++)?+([a-z]\w*+(?:\.\w++(?:::\w++)*+)*+)(?!\s*+:(?!:))\s*+([^;]*+);"
_CALL = re.compile(rf"(?:(\([^()]*\))\s*,\s*)?({NAME})\s*(?:,\s*(\([^()]*\))\s*)?(?:,\s*({NAME})\s*)?", re.ASCII)
_OPCODE_LIKE = re.compile(r"@?[!%\w.$]+")


class Instructions:
    """The instructions of one body so far (`all`), and the labels they wait for."""

    def __init__(self, source: Source, names: Names) -> None:
        self.all: list[Instruction] = []
        self.source = source
        self.names = names
        self.waiting: list[tuple[int, int, str, Scope, int]] = []  # instruction, operand, label, scope, position
        self._line_starts = source.line_starts
        self._guards: dict[tuple[int, bool], Guard] = {}
        self._carry = -1

    def add(self, match: re.Match[str], scope: Scope, source_line: int) -> None:
        """One match of INSTRUCTION. Raises PptError."""
        negated, guard_name, opcode, text = match.group(1, 2, 3, 4)
        start = match.start(3)
        try:
            known = form(opcode)
        except PptError as error:
            raise self.source.error(error.message, start, error.hint) from None
        try:
            entries = self._entries(known, text, scope)
        except BadOperand as bad:
            raise self._bad_operand(bad, text, match.start(4)) from None
        count = len(entries)
        if not known.least <= count <= known.most:
            raise self._wrong_count(known, count, text, match)
        operands: tuple[Operand, ...] = ()
        reads: tuple[int, ...] = ()
        writes: tuple[int, ...] = ()
        if count:
            operands, registers = zip(*entries, strict=True)
            if known.destination is FIRST and type(operands[0]) is not Mem:
                writes = registers[0]
            elif known.destination is UPDATE and type(operands[0]) is not Mem:
                reads = writes = registers[0]
            else:
                reads = registers[0]
            for found in registers[1:]:
                reads += found
        guard = None
        if guard_name is not None:
            guard = self._guard(guard_name, negated == "!", match.start(2), scope)
            reads += (guard.reg,)
            start = match.start(2) - 1 - len(negated)
        if known.carry_in or known.carry_out:
            reads, writes = self._with_carry(known, reads, writes)
        index = len(self.all)
        if known.label >= 0:
            self._wait(index, known, entries, scope, match)
        line = bisect_right(self._line_starts, start)
        column = start - self._line_starts[line - 1] + 1
        self.all.append(Instruction(index, known.opcode, operands, guard, reads, writes, line, column, source_line))

    def _entries(self, known: Form, text: str, scope: Scope) -> list[Entry]:
        if known.label < 0:
            look_up = scope.entries.__getitem__
            if "{" not in text:
                try:
                    return [*map(look_up, text.split(", "))] if text else []
                except BadOperand:
                    pass  # cut in the wrong places, or really bad
            return [*map(look_up, split(text))]
        if known.base == "call":
            return self._call(text, scope)
        return [
            (Target(part.strip()), ()) if position == known.label else scope.entries[part]
            for position, part in enumerate(split(text))
        ]

    def _call(self, text: str, scope: Scope) -> list[Entry]:
        """(results), callee, (arguments)[, prototype]: always three or four operands."""
        match = _CALL.fullmatch(text)
        if match is None:
            raise BadOperand("expected call (result), function, (arguments)", text)
        results, callee, arguments, table = match.groups()
        empty: Entry = (Vec(()), ())
        entries = [
            scope.entries[results] if results else empty,
            scope.entries[callee],
            scope.entries[arguments] if arguments else empty,
        ]
        if table is not None:
            entries.append((Target(table), ()))
        elif not isinstance(entries[1][0], Sym):
            raise BadOperand("an indirect call needs a prototype after its arguments", callee)
        return entries

    def _guard(self, name: str, negated: bool, position: int, scope: Scope) -> Guard:
        register = scope.register(name)
        if register is None:
            hint = scope.nearest_register(name)
            raise self.source.error(f"register '{name}' is not declared", position, hint)
        guard = self._guards.get((register, negated))
        if guard is None:
            kind = self.names.registers[register].type
            if kind != "pred":
                message = f"the guard '{name}' is a .{kind}: expected a .pred register"
                raise self.source.error(message, position)
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

    def _wait(self, index: int, known: Form, entries: list[Entry], scope: Scope, match: re.Match[str]) -> None:
        if known.label >= len(entries):
            return  # a direct call has no prototype
        target = entries[known.label][0]
        assert isinstance(target, Target)
        position = match.start(4) + max(match[4].rfind(target.name), 0)
        self.waiting.append((index, known.label, target.name, scope, position))

    def set_target(self, index: int, operand: int, target: Target) -> None:
        instruction = self.all[index]
        operands: list[Operand] = list(instruction.operands)
        operands[operand] = target
        self.all[index] = replace(instruction, operands=tuple(operands))

    # errors

    def _bad_operand(self, bad: BadOperand, text: str, start: int) -> PptError:
        first, _, following = text.strip().partition("\n")
        runs_on = "\n" in bad.text or _OPCODE_LIKE.match(following.lstrip())
        if runs_on and first.count("{") == first.count("}") and not first.rstrip().endswith(","):
            return self._no_semicolon(start)
        return self.source.error(bad.message, located(bad, text, start), bad.hint)

    def _wrong_count(self, known: Form, count: int, text: str, match: re.Match[str]) -> PptError:
        if "\n" in text.strip():
            return self._no_semicolon(match.start(4))
        wanted = str(known.least) if known.least == known.most else f"{known.least} to {known.most}"
        plural = "operand" if wanted == "1" else "operands"
        return self.source.error(f"'{known.opcode}' takes {wanted} {plural}, found {count}", match.start(3))

    def _no_semicolon(self, start: int) -> PptError:
        message = "expected ';' at the end of the instruction"
        return self.source.error(message, self.source.end_of_line(start))
