"""The registers that values take while the instructions of a block are put in order.

A value takes its registers from the instruction that computes it to the last one that reads it; so a register of a loop
is free between its last use and the instruction that writes it for the next turn. What an instruction under a predicate
writes is the value that was there before.
"""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.ptx.linking.liveness import members, needed_before
from ppt_gpu.ptx.module import Instruction


class Taken:
    """Which values are in registers; instructions are known by their numbers in `code`.

    weights: 32-bit registers of each PTX register; alive: bit set of those that are read behind the code.
    """

    def __init__(self, code: Sequence[Instruction], weights: Sequence[int], alive: int) -> None:
        self._weight: list[int] = []  # of each value
        self._left: list[int] = []  # instructions that still read it
        self._used: list[tuple[int, ...]] = []  # values, by instruction
        self._readers: list[list[int]] = []  # instructions, by value
        self._made: list[tuple[int, ...]] = []
        newest: dict[int, int] = {}  # value of a register
        self._live: set[int] = set()

        def new(register: int) -> int:
            newest[register] = len(self._weight)
            self._weight.append(weights[register])
            self._left.append(0)
            self._readers.append([])
            return newest[register]

        def read(register: int) -> int:
            if register not in newest:
                self._live.add(new(register))
            return newest[register]

        for register in sorted(needed_before(code, alive)):
            read(register)
        for number, instruction in enumerate(code):
            used = {read(register) for register in instruction.reads}
            for one in used:
                self._left[one] += 1
                self._readers[one].append(number)
            old = newest if instruction.guard is not None else {}
            self._used.append(tuple(used))
            self._made.append(tuple(old[r] if r in old else new(r) for r in dict.fromkeys(instruction.writes)))
        for register in members(alive):
            self._left[read(register)] += 1  # by what is behind the code
        self.count = sum(self._weight[one] for one in self._live)

    def change(self, number: int) -> int:
        """Registers that are taken after the instruction beyond those before it."""
        made = self._made[number]
        freed = sum(
            self._weight[v] for v in self._used[number] if self._left[v] == 1 and v in self._live and v not in made
        )
        return sum(self._weight[v] for v in made if v not in self._live) - freed

    def issue(self, number: int) -> None:
        """The instruction is next."""
        self.count += self.change(number)
        for v in self._used[number]:
            self._left[v] -= 1
            if self._left[v] == 0:
                self._live.discard(v)
        self._live.update(self._made[number])

    def of_one_more(self, number: int) -> list[int]:
        """The readers of the values that an instruction reads and that only one reader is still to come for."""
        return [one for v in self._used[number] if self._left[v] == 1 for one in self._readers[v]]

    def readers_of(self, number: int) -> set[int]:
        """The instructions that read what one makes."""
        return {reader for v in self._made[number] for reader in self._readers[v] if reader != number}
