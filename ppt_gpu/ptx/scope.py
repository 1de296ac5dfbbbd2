"""Names of a function body: registers, variables and labels, by nested scope, each made unique in the function."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from ppt_gpu.errors import nearest
from ppt_gpu.ptx.module import Operand, Reg, Register

#: an operand and the ids of the registers in it
Entry = tuple[Operand, tuple[int, ...]]

IDENTIFIER = re.compile(r"[A-Za-z_$%][\w$]*", re.ASCII)
_DIGITS = re.compile(r"[0-9]+\Z")
_PREFIX_AND_INDEX = re.compile(r"(.*?)(0|[1-9][0-9]{0,9})", re.ASCII | re.DOTALL)

#: the entry of each register id, shared by all functions; grows on demand
_REGISTER_ENTRIES: list[Entry] = []


def register_entry(register: int) -> Entry:
    while register >= len(_REGISTER_ENTRIES):
        index = len(_REGISTER_ENTRIES)
        _REGISTER_ENTRIES.append((Reg(index), (index,)))
    return _REGISTER_ENTRIES[register]


class Entries(dict[str, Entry]):
    """Operands of a scope by their text, parsed when they are first asked for."""

    def __init__(self, parse: Callable[[str], Entry]) -> None:
        super().__init__()
        self._parse = parse

    def __missing__(self, text: str) -> Entry:
        entry = self[text] = self._parse(text)
        return entry


class Duplicate(Exception):
    """The name is taken; `line` says where."""

    def __init__(self, line: int) -> None:
        self.line = line
        super().__init__(line)


@dataclass(slots=True)
class Range:
    """`.reg .b32 %r<6>;` declares %r0 to %r5. Registers come into being when they are first used."""

    type: str
    count: int
    line: int
    vector: int = 0


@dataclass(slots=True)
class Names:
    """What all scopes of one function share."""

    registers: list[Register] = field(default_factory=list)
    register_names: set[str] = field(default_factory=set)
    symbol_names: set[str] = field(default_factory=set)
    label_names: set[str] = field(default_factory=set)
    scopes: int = 0


class Scope:
    """One pair of braces. The outermost scope of a function has no parent and number 0."""

    def __init__(self, names: Names, parent: Scope | None, position: int, parse: Callable[[str, Scope], Entry]) -> None:
        self.names = names
        self.parent = parent
        self.position = position  # of the opening brace
        self.number = names.scopes
        names.scopes += 1
        self.entries = Entries(self._parse)
        self._parse_operand = parse
        self.registers: dict[str, int] = {}
        self.vectors: dict[str, int] = {}  # vector registers: name -> elements
        self.ranges: dict[str, Range] = {}
        self.symbols: dict[str, str] = {}  # name -> unique name
        self.symbol_lines: dict[str, int] = {}
        self.labels: dict[str, str] = {}

    def chain(self) -> list[Scope]:
        """This scope and the scopes around it, from the inside."""
        found, scope = [], self
        while scope is not None:
            found.append(scope)
            scope = scope.parent  # type: ignore[assignment]
        return found

    def _parse(self, text: str) -> Entry:
        """An operand seen for the first time in this scope."""
        return self.known(text) or self._parse_operand(text, self)

    # registers

    def declare(self, name: str, kind: str, line: int, vector: int = 0) -> int:
        """A register of its own name; -1 for a vector register, whose elements become registers."""
        if name in self.registers or name in self.vectors:
            raise Duplicate(self.names.registers[self.registers[name if name in self.registers else name + ".x"]].line)
        self._forget()
        if not vector:
            return self._new_register(name, kind, line)
        self.vectors[name] = vector
        for element in "xyzw"[:vector]:
            self._new_register(f"{name}.{element}", kind, line)
        return -1

    def declare_range(self, prefix: str, declared: Range) -> None:
        if prefix in self.ranges:
            raise Duplicate(self.ranges[prefix].line)
        self._forget()
        self.ranges[prefix] = declared

    def _new_register(self, name: str, kind: str, line: int) -> int:
        names = self.names
        unique = name
        if name in names.register_names or (self.parent is not None and self.parent.declares(name)):
            unique = f"{name}@{self.number}"
        names.register_names.add(unique)
        names.registers.append(Register(unique, kind, line))
        self.registers[name] = len(names.registers) - 1
        return self.registers[name]

    def register(self, name: str) -> int | None:
        """The id of a register visible here, or None."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.registers.get(name)
            if found is not None:
                return found
            if scope.ranges and (declared := scope._range_of(name)) is not None:
                return scope._new_register(name, declared.type, declared.line)
            scope = scope.parent
        return None

    def _range_of(self, name: str) -> Range | None:
        """The range that declares `name`; `%r1<5>` declares %r10 to %r14, so every cut into two is tried."""
        match = _PREFIX_AND_INDEX.fullmatch(name)
        if match is None:
            return None
        declared = self.ranges.get(match[1])
        if declared is not None and int(match[2]) < declared.count:
            return declared
        for cut in range(match.end(1) + 1, len(name)):
            declared = self.ranges.get(name[:cut])
            if declared is None or (name[cut] == "0" and cut + 1 < len(name)):
                continue
            if int(name[cut:]) < declared.count:
                return declared
        return None

    def declares(self, name: str) -> bool:
        return any(
            name in scope.registers or name in scope.vectors or scope._range_of(name) is not None
            for scope in self.chain()
        )

    def vector(self, name: str) -> int:
        """Elements of the vector register `name`, 0 when there is none."""
        return next((scope.vectors[name] for scope in self.chain() if name in scope.vectors), 0)

    # variables and labels

    def declare_symbol(self, name: str, line: int) -> str:
        if name in self.symbols:
            raise Duplicate(self.symbol_lines[name])
        self._forget()
        taken = self.names.symbol_names
        self.symbols[name] = f"{name}@{self.number}" if name in taken else name
        self.symbol_lines[name] = line
        taken.add(self.symbols[name])
        return self.symbols[name]

    def symbol(self, name: str) -> str | None:
        return next((scope.symbols[name] for scope in self.chain() if name in scope.symbols), None)

    def declare_label(self, name: str) -> str:
        taken = self.names.label_names
        self.labels[name] = f"{name}@{self.number}" if name in taken else name
        taken.add(self.labels[name])
        return self.labels[name]

    def label(self, name: str) -> str | None:
        return next((scope.labels[name] for scope in self.chain() if name in scope.labels), None)

    # parsed operands

    def _forget(self) -> None:
        """A new name may change what operands read before mean."""
        self.entries.clear()

    def known(self, text: str) -> Entry | None:
        """The operand as an outer scope knows it, when no name in it belongs to this scope."""
        if self.parent is None:
            return None
        for name in IDENTIFIER.findall(text):
            if name in self.registers or name in self.symbols or name in self.vectors:
                return None
            if self.ranges and self._range_of(name) is not None:
                return None
        found = self.parent.entries.get(text)
        return self.parent.known(text) if found is None else found

    # suggestions

    def nearest_register(self, name: str) -> str | None:
        """A hint for an undeclared register."""
        ranges = [(prefix, r) for scope in self.chain() for prefix, r in scope.ranges.items()]
        prefix = _DIGITS.sub("", name)
        for declared_prefix, declared in ranges:
            if declared_prefix == prefix and declared.count:
                bound = f"{prefix}0 to {prefix}{declared.count - 1}"
                return f"'{prefix}<{declared.count}>' on line {declared.line} declares {bound}"
        candidates = [n for scope in self.chain() for n in scope.registers]
        candidates += [f"{p}{min(int(name[len(prefix) :][:9] or 0), r.count - 1)}" for p, r in ranges if r.count]
        close = nearest(name, candidates)
        return f"did you mean '{close}'?" if close else None
