"""Instructions of a body, from their matched text to `ppt_gpu.ptx.module.Instruction`."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import partial
from itertools import chain

from ppt_gpu.common.errors import PptError
from ppt_gpu.ptx.assume import assumed_form
from ppt_gpu.ptx.instructions import Form, form
from ppt_gpu.ptx.module import Guard, Instruction, Mem, Operand, Register, Sym, Target, Vec
from ppt_gpu.ptx.parsing.drafts import InstructionDraft
from ppt_gpu.ptx.parsing.lexer import NAME, Source
from ppt_gpu.ptx.parsing.names import Entry, Names
from ppt_gpu.ptx.parsing.operands import BadOperand, alone, located, split
from ppt_gpu.ptx.parsing.scope import Scope
from ppt_gpu.ptx.table import FIRST, NONE

#: groups: "!" or "", guard, opcode, operands
# Possessive quantifiers keep bad input linear.
INSTRUCTION = re.compile(
    r"\s*+(?:@\s*+(!?)\s*+([%\w$]++)\s++)?+([a-z]\w*+(?:\.\w++(?:::\w++)*+)*+)(?!\s*+:(?!:))\s*+([^;]*+);",
    re.ASCII,
)
Ids = tuple[int, ...]  # of registers
#: bad instructions reported at once
MOST_ERRORS = 20
_CALL = re.compile(
    rf"(?:(\([^()]*\))\s*,\s*)?({NAME})\s*(?:,\s*(\((?:[^()]|\([^()]*\))*+\))\s*)?(?:,\s*({NAME})\s*)?", re.ASCII
)
_OPCODE_LIKE = re.compile(r"@?[!%\w.$]+")


class Instructions:
    """The instructions of one body so far (`all`), and the labels they wait for."""

    def __init__(self, source: Source, names: Names) -> None:
        self.all: list[Instruction] = []
        self.errors: list[PptError] = []
        self.source = source
        self.names = names
        self.waiting: list[tuple[int, int, str, Scope, int]] = []  # instruction, operand, label, scope, position
        self._line_starts = source.line_starts
        self._guards: dict[tuple[int, bool], Guard] = {}
        self._carry = -1

    def read(self, position: int, scope: Scope, source_line: int) -> int:
        """Read instructions from `position` on up to a statement that is none, and return its position.

        `source_line` is that of the last .loc. Bad instructions go into `errors`; raises PptError when reading cannot
        go on.
        """
        text, line_starts, found = self.source.text, self._line_starts, self.all
        match_at = INSTRUCTION.match
        look_up = scope.entries.__getitem__
        known_form = partial(assumed_form, assumptions=assume) if (assume := self.source.assumptions) else form
        line = bisect_right(line_starts, position)
        while (match := match_at(text, position)) is not None:
            negated, guard_name, opcode, operand_text = match.groups()
            position = match.end()
            start = match.start(3)
            try:
                known = known_form(opcode)
                if known.plain and "{" not in operand_text and "(" not in operand_text:
                    try:
                        entries = [*map(look_up, operand_text.split(", "))]
                    except BadOperand:  # cut in the wrong places, or really bad
                        entries = [*map(look_up, split(operand_text))]
                else:
                    entries = self._entries(known, operand_text, scope)
                operands, reads, writes = _operands(known, entries)
                guard = None
                if guard_name is not None:
                    guard = self._guard(guard_name, negated == "!", match.start(2), scope)
                    reads += (guard.reg,)
                    start = match.start(2) - 1 - len(negated)
            except (PptError, BadOperand) as error:
                self._note(error, match)
                continue
            if not known.plain:
                if known.carry_in or known.carry_out:
                    reads, writes = self._with_carry(known, reads, writes)
                if known.label >= 0:
                    self._wait(len(found), known, entries, scope, match)
            while line_starts[line] <= start:
                line += 1
            column = start - line_starts[line - 1] + 1
            made = InstructionDraft(len(found), known.opcode, operands, guard, reads, writes, line, column, source_line)
            made.__class__ = Instruction
            found.append(made)
        return position

    def _entries(self, known: Form, text: str, scope: Scope) -> list[Entry]:
        """The operands in `text`, whatever they are. Raises BadOperand."""
        if known.label < 0:
            parts = split(text)
            entries = [*map(scope.entries.__getitem__, parts)]
            return (
                [(alone(e[0], part), e[1]) for e, part in zip(entries, parts, strict=True)] if "(" in text else entries
            )
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
            self._arguments(scope.entries[arguments]) if arguments else empty,
        ]
        if table is not None:
            entries.append((Target(table), ()))
        elif not isinstance(entries[1][0], Sym):
            raise BadOperand("an indirect call needs a prototype after its arguments", callee)
        return entries

    def _arguments(self, entry: Entry) -> Entry:
        """`((5))` reads as a number."""
        return entry if isinstance(entry[0], Vec) else (Vec((entry[0],)), entry[1])

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
        old = self.all[index]
        operands = (*old.operands[:operand], target, *old.operands[operand + 1 :])
        made = InstructionDraft(
            index, old.opcode, operands, old.guard, old.reads, old.writes, old.line, old.column, old.source_line
        )
        made.__class__ = Instruction
        self.all[index] = made

    # errors

    def _note(self, error: PptError | BadOperand, match: re.Match[str]) -> None:
        """Note the error of one instruction. Raises it where the statements after it may be cut wrongly."""
        placed = self._located(error, match)
        self.errors.append(placed)
        if "\n" in match[4] or len(self.errors) == MOST_ERRORS:
            raise placed from None

    def _located(self, error: PptError | BadOperand, match: re.Match[str]) -> PptError:
        """The error with its place in the statement that `match` found."""
        if isinstance(error, PptError) and error.line is not None:
            return error
        if isinstance(error, BadOperand):
            return self._bad_operand(error, match[4], match.start(4))
        if isinstance(error, _WrongCount) and "\n" in match[4].strip():
            return self._no_semicolon(match.start(4))
        return self.source.error(error.message, match.start(3), error.hint)

    def _bad_operand(self, bad: BadOperand, text: str, start: int) -> PptError:
        first, _, following = text.strip().partition("\n")
        runs_on = "\n" in bad.text or _OPCODE_LIKE.match(following.lstrip())
        if runs_on and first.count("{") == first.count("}") and not first.rstrip().endswith(","):
            return self._no_semicolon(start)
        return self.source.error(bad.message, located(bad, text, start), bad.hint)

    def _no_semicolon(self, start: int) -> PptError:
        message = "expected ';' at the end of the instruction"
        return self.source.error(message, self.source.end_of_line(start))


class _WrongCount(PptError):
    """More or fewer operands than the instruction takes."""

    def __init__(self, known: Form, count: int) -> None:
        wanted = str(known.least) if known.least == known.most else f"{known.least} to {known.most}"
        plural = "operand" if wanted == "1" else "operands"
        super().__init__(f"'{known.opcode}' takes {wanted} {plural}, found {count}")


def _operands(known: Form, entries: list[Entry]) -> tuple[tuple[Operand, ...], Ids, Ids]:
    """The operands, the registers read and the registers written. Raises PptError for a wrong number of them."""
    count = len(entries)
    if not known.least <= count <= known.most:
        raise _WrongCount(known, count)
    operands: tuple[Operand, ...]
    if count == 3:  # the two usual counts first, without loops
        (a, first), (b, second), (c, third) = entries
        operands, others = (a, b, c), second + third
    elif count == 2:
        (a, first), (b, others) = entries
        operands = (a, b)
    elif count:
        operands, ids = zip(*entries, strict=True)
        first, others = ids[0], tuple(chain.from_iterable(ids[1:]))
    else:
        return (), (), ()
    if known.destination is NONE or type(operands[0]) is Mem:
        return operands, first + others, ()
    if known.destination is FIRST:
        return operands, others, first
    return operands, first + others, first
