"""Arrays of local memory that ptxas keeps in registers although the index is computed: comparisons choose the word.

For each place that an access may have there is a comparison with its address and a move under that predicate, of each
word: `@p1 MOV R5, R14; @p2 MOV R5, R15`. Comparisons with one address are shared. Where there are more places than
LIMITS, where a word has 8 bytes, where no access names its place (nothing is there at first, nor read in the end), or
where an address goes elsewhere, the array stays in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from ppt_gpu.machine.analysis.region_ssa import NewRegisters
from ppt_gpu.machine.selection.scalar_replacement import Place, as_move, constant_pointers, named_place, seen_arrays
from ppt_gpu.ptx.cfg import ControlFlow
from ppt_gpu.ptx.instructions import copied, memory_space
from ppt_gpu.ptx.linking.call_graph import symbols_of
from ppt_gpu.ptx.module import TYPE_BYTES, Guard, Imm, Instruction, Kernel, Mem, Operand, Reg, Sym, Vec
from ppt_gpu.ptx.uses import writers_of

#: bytes of a word, the only ones that ptxas does this with
WORD = 4
#: by bytes of an access within a loop: the most places it may have. ptxas 13.0, the same on sm_75, 80, 86, 89, 90, 100
#: and 120: arrays of 2 to 64 words, accumulated in a loop by words (5 places and not 6), pairs (7 and not 8) and fours
#: (12 at least); with another index for the load than for the store it is 4, 8 and 9
LIMITS = {WORD: 5, 2 * WORD: 7, 4 * WORD: 12}
#: and outside of loops: the most places of all accesses together. 4 loads: 8 places and not 9; 2 loads: 17 at least;
#: 7 stores of a sort in straight code: not 8
LIMIT_STRAIGHT = 34


@dataclass(frozen=True, slots=True)
class _Access:
    """A load or store of words. base: the register with its address; None where the place is `offset` itself."""

    index: int
    base: int | None
    offset: int  # B
    values: tuple[Operand, ...]

    @property
    def bytes(self) -> int:
        return WORD * len(self.values)


def chosen_words(kernel: Kernel, flow: ControlFlow, names: NewRegisters) -> dict[int, tuple[Instruction, ...]]:
    """What stands for the accesses to such arrays, and for the steps from one address to the next, by index.

    Addresses of local memory have 32 bits: registers that only go on by constants count as one each from here on.
    Others are sums with a product, which is one instruction of the machine anyway.
    """
    sizes = seen_arrays(kernel)
    if not sizes:
        return {}
    found: dict[int, tuple[Instruction, ...]] = {}
    writers = writers_of(kernel.instructions)
    places = constant_pointers(writers, set(sizes))
    looping = set(chain.from_iterable(range(head, end + 1) for end, head in flow.back_edges))
    for name, size in sizes.items():
        array = _Array(kernel, name, {r: p for r, p in places.items() if p.variable == name}, writers)
        if not array.moved or not array.is_closed() or not _fits(array.accesses, size, flow, looping):
            continue
        words = [names.of_bytes(WORD) for _ in range(size // WORD)]
        for access in array.accesses:
            found[access.index] = tuple(_instead(kernel.instructions[access.index], access, words, names))
        for register in array.moved:
            steps = [one for one in writers[register] if one.base == "add"]
            if all(isinstance(operand, Imm) for one in steps for operand in one.operands[2:]):
                names.weights[register] = 1
                found |= {one.index: (replace(one, opcode="add.s32"),) for one in steps}
    return found


class _Array:
    """A local variable, the registers that point into it, and all accesses by them."""

    def __init__(
        self, kernel: Kernel, name: str, places: Mapping[int, Place], writers: Mapping[int, list[Instruction]]
    ) -> None:
        self.kernel, self.name, self.places, self.writers = kernel, name, places, writers
        self.moved = self._moved()  # registers whose place is computed
        self.accesses: list[_Access] = []

    def _moved(self) -> set[int]:
        found: set[int] = set()
        size = -1
        while len(found) != size:
            size = len(found)
            for register, written in self.writers.items():
                if register not in self.places and any(self._derives(one, found) for one in written):
                    found.add(register)
        return found

    def _points(self, operand: Operand | None, moved: Collection[int]) -> bool:
        if isinstance(operand, Sym):
            return operand.name == self.name
        return isinstance(operand, Reg) and (operand.id in self.places or operand.id in moved)

    def _derives(self, instruction: Instruction, moved: Collection[int]) -> bool:
        """Does it make an address within the array of another one?"""
        if instruction.guard is not None:
            return False
        if instruction.base in ("mov", "cvta"):
            return self._points(copied(instruction) or instruction.operands[-1], moved)
        if instruction.opcode not in ("add.s64", "add.u64"):
            return False
        _, first, second = instruction.operands
        return self._points(first, moved) != self._points(second, moved)

    def is_closed(self) -> bool:
        """Are all its addresses used for plain accesses, and for nothing else? Those become known by this."""
        if any(not self._derives(one, self.moved) for register in self.moved for one in self.writers[register]):
            return False
        pointers = self.moved | self.places.keys()
        for instruction in self.kernel.instructions:
            named = any(self.name in symbols_of(operand) for operand in instruction.operands)
            if not named and pointers.isdisjoint(instruction.reads):
                continue
            access = self._access(instruction)
            if access is not None:
                self.accesses.append(access)
            elif not self._derives(instruction, self.moved) or not pointers.issuperset(instruction.writes):
                return False
        return True

    def _access(self, instruction: Instruction) -> _Access | None:
        if (
            instruction.base not in ("ld", "st")
            or memory_space(instruction) != "local"
            or instruction.guard is not None
        ):
            return None
        if instruction.modifiers[:-1] not in (("local",), ("local", "v2"), ("local", "v4")):
            return None
        address, value = instruction.operands[:: 1 if instruction.base == "st" else -1]
        values = value.items if isinstance(value, Vec) else (value,)
        plain = all(isinstance(one, Reg | Imm) and not self._points(one, self.moved) for one in values)
        if (
            TYPE_BYTES.get(instruction.modifiers[-1]) != WORD
            or not plain
            or not isinstance(address, Mem)
            or address.indices
        ):
            return None
        place = named_place(address, self.places, (self.name,))
        if place is not None:
            return _Access(instruction.index, None, place.offset, values)
        if not isinstance(address.base, Reg):
            return None
        return _Access(instruction.index, address.base.id, address.offset, values)


def _fits(accesses: Collection[_Access], size: int, flow: ControlFlow, looping: Collection[int]) -> bool:
    """Has each few enough places, and does any name its own?"""
    straight, named = 0, False
    for access in accesses:
        if access.base is None:
            named = True
            if access.offset % WORD or not 0 <= access.offset <= size - access.bytes:
                return False
        elif flow.block_of(access.index) not in looping:
            straight += size // access.bytes
        elif size // access.bytes > LIMITS[access.bytes]:
            return False
    return named and straight <= LIMIT_STRAIGHT


def _instead(instruction: Instruction, access: _Access, words: list[int], names: NewRegisters) -> Iterator[Instruction]:
    """The instructions that stand for an access to `words`."""
    most = WORD * len(words) - access.bytes
    for place in (access.offset,) if access.base is None else range(0, most + 1, access.bytes):
        guard = None
        if access.base is not None:
            guard = Guard(names.predicate(), negated=False)
            yield replace(
                instruction,
                opcode="setp.eq.s32",
                operands=(Reg(guard.reg), Reg(access.base), Imm(place - access.offset)),
                reads=(access.base,),
                writes=(guard.reg,),
            )
        for word, value in zip(words[place // WORD :], access.values, strict=False):
            yield as_move(instruction, word, value, WORD, guard)
