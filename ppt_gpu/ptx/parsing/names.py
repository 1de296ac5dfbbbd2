"""Names of a function: what all its scopes share."""

from __future__ import annotations

from dataclasses import dataclass, field

from ppt_gpu.ptx.module import Operand, Reg, Register

#: an operand and the ids of the registers in it
Entry = tuple[Operand, tuple[int, ...]]

#: the entry of each register id, shared by all functions; grows on demand
_REGISTER_ENTRIES: list[tuple[Reg, tuple[int, ...]]] = []


def register_entry(register: int) -> tuple[Reg, tuple[int, ...]]:
    """The operand and the id tuple of a register."""
    while register >= len(_REGISTER_ENTRIES):
        index = len(_REGISTER_ENTRIES)
        _REGISTER_ENTRIES.append((Reg(index), (index,)))
    return _REGISTER_ENTRIES[register]


class Duplicate(Exception):
    """The name is taken; `line` says where."""

    def __init__(self, line: int) -> None:
        self.line = line
        super().__init__(line)


@dataclass(slots=True)
class Range:
    """`.reg .b32 %r<6>;` declares %r0 to %r5. Where not created at once, a register is when it is first used."""

    type: str
    count: int
    line: int
    vector: int = 0


@dataclass(slots=True)
class Names:
    """What all scopes of one function share."""

    registers: list[Register] = field(default_factory=list)
    register_names: set[str] = field(default_factory=set)  # of those not created as a whole range
    symbol_names: set[str] = field(default_factory=set)
    label_names: set[str] = field(default_factory=set)
    scopes: int = 0
    creatable: list[int] = field(default_factory=lambda: [0])  # registers that may be created before their use


def register_entries(first: int, stop: int) -> list[tuple[Reg, tuple[int, ...]]]:
    """Those of the registers first to stop - 1."""
    register_entry(stop)
    return _REGISTER_ENTRIES[first:stop]
