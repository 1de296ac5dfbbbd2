"""Names of a function body: registers, variables and labels, by nested scope, each made unique in the function."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import repeat

from ppt_gpu.common.errors import nearest
from ppt_gpu.ptx.module import Register
from ppt_gpu.ptx.parsing.drafts import from_columns
from ppt_gpu.ptx.parsing.names import Duplicate, Entry, Names, Range, register_entries, register_entry

IDENTIFIER = re.compile(r"[A-Za-z_$%][\w$]*", re.ASCII)
_NO_NAME = frozenset("[0123456789-")  # begin most operands that are no names
_DIGITS = re.compile(r"[0-9]+\Z")


class Entries(dict[str, Entry]):
    """Operands of a scope by their text, parsed when they are first asked for. Most are registers."""

    __slots__ = ("others", "scope")

    def __init__(self, scope: Scope | None) -> None:
        super().__init__()
        self.scope = scope
        self.others = False  # holds more than registers of the scope

    def __missing__(self, text: str) -> Entry:
        scope = self.scope
        assert scope is not None, "the scope is closed"
        entry: Entry
        register = None if text[:1] in _NO_NAME else scope.own_register(text)
        if register is not None:
            entry = register_entry(register)
        else:
            entry = (scope.parent and scope.known(text)) or scope.parse(text, scope)
            self.others = True
        self[text] = entry
        return entry


class Scope:
    """One pair of braces. The outermost scope of a function has no parent and number 0."""

    def __init__(self, names: Names, parent: Scope | None, position: int, parse: Callable[[str, Scope], Entry]) -> None:
        self.names = names
        self.parent = parent
        self.position = position  # of the opening brace
        self.number = names.scopes
        names.scopes += 1
        self.entries = Entries(self)
        self.parse = parse
        self.registers: dict[str, int] = {}
        self.vectors: dict[str, int] = {}  # vector registers: name -> elements
        self.ranges: dict[str, Range] = {}
        self.symbols: dict[str, str] = {}  # name -> unique name
        self.symbol_lines: dict[str, int] = {}
        self.labels: dict[str, str] = {}

    def close(self) -> None:
        """No operand will be read here again. Breaks the cycle with `entries`, so that memory is freed at once."""
        self.entries = Entries(None)

    def chain(self) -> list[Scope]:
        """This scope and the scopes around it, from the inside."""
        found, scope = [], self
        while scope is not None:
            found.append(scope)
            scope = scope.parent  # type: ignore[assignment]
        return found

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
        self._create(prefix, declared)

    def _create(self, prefix: str, declared: Range) -> None:
        """All registers of a range at once, which is much faster than one by one; not when it is absurdly long."""
        names = self.names
        if declared.count > names.creatable[0] or declared.vector:
            return
        names.creatable[0] -= declared.count
        if self.parent is not None:
            return
        new = [f"{prefix}{index}" for index in range(declared.count)]
        if not (names.register_names.isdisjoint(new) and self.registers.keys().isdisjoint(new)):
            return
        first = len(names.registers)
        ids = range(first, first + len(new))
        names.registers += from_columns(Register, len(new), new, repeat(declared.type), repeat(declared.line))
        self.registers.update(zip(new, ids, strict=True))
        self.entries.update(zip(new, register_entries(first, ids.stop), strict=True))

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
            found = scope.own_register(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def own_register(self, name: str) -> int | None:
        """The id of a register that this scope declares, or None."""
        found = self.registers.get(name)
        if found is None and self.ranges:
            declared = self._range_of(name)
            if declared is not None:
                return self._new_register(name, declared.type, declared.line)
        return found

    def _range_of(self, name: str) -> Range | None:
        """The range that declares `name`; `%r1<5>` declares %r10 to %r14, so every cut into two is tried."""
        prefix = name.rstrip("0123456789")
        first, length = len(prefix), len(name)
        if not 0 < length - first <= 10:
            return None
        for cut in range(first, length):
            declared = self.ranges.get(name[:cut])
            if declared is None or (name[cut] == "0" and cut + 1 < length):
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
        scope: Scope | None = self
        while scope is not None:
            if name in scope.vectors:
                return scope.vectors[name]
            scope = scope.parent
        return 0

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
        """The unique name of a variable or parameter visible here, or None."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.symbols.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def declare_label(self, name: str) -> str:
        taken = self.names.label_names
        self.labels[name] = f"{name}@{self.number}" if name in taken else name
        taken.add(self.labels[name])
        return self.labels[name]

    def label(self, name: str) -> str | None:
        return next((scope.labels[name] for scope in self.chain() if name in scope.labels), None)

    # parsed operands

    def _forget(self) -> None:
        """A new name may change what operands read before mean, other than registers of this scope."""
        if self.entries.others:
            self.entries.clear()
            self.entries.others = False

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
