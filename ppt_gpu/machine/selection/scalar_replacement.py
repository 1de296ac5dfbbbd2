"""Words of local memory that ptxas keeps in registers: those of which every access names the place.

So it is with a volatile variable of a thread: PTX stores and loads it, machine code does not. What a computed index
chooses, whose address goes elsewhere, or that is accessed as words of other sizes stays in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

from ppt_gpu.ptx.instructions import access_bytes, access_kind, copied, memory_space
from ppt_gpu.ptx.linking.call_graph import symbols_of
from ppt_gpu.ptx.linking.linked import LinkedKernel
from ppt_gpu.ptx.module import TYPE_BYTES, Guard, Imm, Instruction, Kernel, Mem, Operand, Reg, Sym
from ppt_gpu.ptx.uses import writers_of


class Place(NamedTuple):
    variable: str
    offset: int  # B


def seen_arrays(kernel: Kernel) -> dict[str, int]:
    """Bytes of the variables in local memory, by name. Of kernels that call functions none: what these are given is
    not looked through."""
    if isinstance(kernel, LinkedKernel) and kernel.calls:
        return {}
    return {variable.name: variable.bytes for variable in kernel.variables if variable.space == "local"}


def words_in_registers(kernel: Kernel, register: Callable[[int], int]) -> dict[int, tuple[Instruction, ...]]:
    """The copies that stand for accesses, by their index. `register` makes one of so many bytes for each word."""
    names = set(seen_arrays(kernel))
    if not names:
        return {}
    places = constant_pointers(writers_of(kernel.instructions), names)
    found: dict[Place, dict[int, tuple[int, Instruction]]] = {}
    escaped: set[str] = set()
    for index, instruction in enumerate(kernel.instructions):
        place = _accessed(instruction, places, names)
        if place is not None:
            found.setdefault(place, {})[index] = (access_bytes(instruction), instruction)
        elif not (len(instruction.writes) == 1 and instruction.writes[0] in places):
            escaped |= {places[r].variable for r in instruction.reads if r in places}
            escaped |= {name for operand in instruction.operands for name in symbols_of(operand)} & names
    sizes = {place: {size for size, _ in accesses.values()} for place, accesses in found.items()}
    copies: dict[int, tuple[Instruction, ...]] = {}
    for place, accesses in found.items():
        if place.variable in escaped or len(sizes[place]) > 1 or _overlaps(place, sizes):
            continue
        size = next(iter(sizes[place]))
        word = register(size)
        for index, (_, instruction) in accesses.items():
            value = instruction.operands[0 if access_kind(instruction) == "load" else 1]
            copies[index] = (as_move(instruction, word, value, size, instruction.guard),)
    return copies


def _overlaps(place: Place, sizes: Mapping[Place, set[int]]) -> bool:
    own = range(place.offset, place.offset + max(sizes[place]))
    return any(
        other != place
        and other.variable == place.variable
        and other.offset < own.stop
        and own.start < other.offset + max(sizes[other])
        for other in sizes
    )


def as_move(instruction: Instruction, word: int, value: Operand, size: int, guard: Guard | None) -> Instruction:
    """The move that stands for a load or store of `size` bytes, where register `word` is what it loads or stores."""
    to, source = (value, Reg(word)) if access_kind(instruction) == "load" else (Reg(word), value)
    assert isinstance(to, Reg)
    read = (source.id,) if isinstance(source, Reg) else ()
    return replace(
        instruction,
        opcode=f"mov.b{8 * size}",
        operands=(to, source),
        guard=guard,
        reads=read if guard is None else (*read, guard.reg),
        writes=(to.id,),
    )


def constant_pointers(writers: Mapping[int, list[Instruction]], names: set[str]) -> dict[int, Place]:
    """What registers always point to: a local variable of `names`, or a constant behind another such pointer."""
    places: dict[int, Place] = {}
    size = -1
    while len(places) != size:
        size = len(places)
        for register, found in writers.items():
            values = {_value(instruction, places, names) for instruction in found}
            if register not in places and len(values) == 1 and (place := values.pop()) is not None:
                places[register] = place
    return places


def _value(instruction: Instruction, places: Mapping[int, Place], names: set[str]) -> Place | None:
    if instruction.guard is not None:
        return None
    source = instruction.operands[-1] if instruction.base == "cvta" else copied(instruction)
    if isinstance(source, Sym) and source.name in names:
        return Place(source.name, source.offset)
    if isinstance(source, Reg):
        return places.get(source.id)
    if instruction.base == "add" and len(instruction.operands) == 3:
        _, base, more = instruction.operands
        if isinstance(base, Reg) and base.id in places and isinstance(more, Imm) and isinstance(more.value, int):
            return Place(places[base.id].variable, places[base.id].offset + more.value)
    return None


def _accessed(instruction: Instruction, places: Mapping[int, Place], names: set[str]) -> Place | None:
    """The word that a plain load or store of local memory names."""
    plain = instruction.base in ("ld", "st") and memory_space(instruction) == "local" and len(instruction.operands) == 2
    if not plain or instruction.modifiers[:-1] not in (("local",), ("volatile", "local")):
        return None
    if TYPE_BYTES.get(instruction.modifiers[-1], 0) not in (4, 8):
        return None
    address, value = instruction.operands[:: 1 if instruction.base == "st" else -1]
    if not isinstance(address, Mem) or not isinstance(value, Reg | Imm):
        return None
    if isinstance(value, Reg) and instruction.base == "st" and value.id in places:
        return None
    return named_place(address, places, names)


def named_place(address: Mem, places: Mapping[int, Place], names: Collection[str]) -> Place | None:
    """What an address names: a place in a variable of `names`, or behind a pointer that is always to one place."""
    base = address.base
    if isinstance(base, Sym) and base.name in names:
        return Place(base.name, base.offset + address.offset)
    if isinstance(base, Reg) and base.id in places:
        return Place(places[base.id].variable, places[base.id].offset + address.offset)
    return None
