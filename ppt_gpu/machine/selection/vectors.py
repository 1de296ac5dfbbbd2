"""Neighbouring words of shared memory, loaded by one instruction: where the address is known to be aligned.

ptxas makes one load of 64 or 128 bit of loads of 32 or 64 bit from neighbouring addresses, be they of one word or
pairs. It does so for shared memory, whose variables it aligns itself; of pointers to global memory nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ppt_gpu.machine.analysis.region_ssa import Step
from ppt_gpu.machine.analysis.values import SYMBOL_ALIGNED, Values
from ppt_gpu.ptx.instructions import access_bytes, access_kind, is_barrier, memory_space
from ppt_gpu.ptx.module import TYPE_BYTES, Instruction, Mem, Reg, Register, Sym, Vec

#: instructions behind which shared memory may hold what others wrote
_WALLS = frozenset(("bar", "barrier", "membar", "fence", "cp", "mbarrier", "call"))
#: bytes of one access of a lane at most
WIDEST = 16


class _Word(NamedTuple):
    offset: int
    place: int  # of the step


def vectorised(steps: list[Step], aligned: Mapping[int, int], registers: Sequence[Register]) -> list[Step]:
    """The steps with neighbouring loads of shared memory as one, where the first of them stood."""
    values = Values(aligned)
    version: dict[int, int] = {}
    groups: dict[tuple[object, ...], list[_Word]] = {}
    alignment: dict[tuple[object, ...], int] = {}
    epoch = 0  # between two of them, shared memory is written
    for place, step in enumerate(steps):
        instruction = step.instruction
        if _changes_shared(instruction):
            epoch += 1
        base = _base(instruction)
        if base is not None:
            address, size = instruction.operands[1], access_bytes(instruction)
            assert isinstance(address, Mem)
            key: tuple[object, ...] = (
                base,
                version.get(base, 0) if isinstance(base, int) else 0,
                epoch,
                size,
                instruction.opcode,
            )
            if key not in alignment:
                alignment[key] = _alignment(values, base, registers)
            groups.setdefault(key, []).append(_Word(address.offset, place))
        values.run(instruction)
        for register in instruction.writes:
            version[register] = version.get(register, 0) + 1
    gone: set[int] = set()
    for key, words in groups.items():
        size = access_bytes(steps[words[0].place].instruction)
        for group in _groups(sorted(set(words)), size, alignment[key]):
            if _free(steps, group, gone):
                _join(steps, group)
                gone.update(sorted(word.place for word in group)[1:])
    return [step for place, step in enumerate(steps) if place not in gone]


def _changes_shared(instruction: Instruction) -> bool:
    kind = access_kind(instruction)
    if kind in ("store", "atomic"):
        return memory_space(instruction) in ("shared", "generic")
    return is_barrier(instruction) or instruction.base in _WALLS


def _base(instruction: Instruction) -> int | str | None:
    """The base register, or symbol, of a load that may become a part of another one."""
    known = instruction.base == "ld" and memory_space(instruction) == "shared" and instruction.guard is None
    words = instruction.modifiers
    plain = known and words[:-1] in (("shared",), ("shared", "v2"))
    if not plain or TYPE_BYTES.get(words[-1], 0) not in (4, 8) or access_bytes(instruction) >= WIDEST:
        return None
    target, address = instruction.operands
    items = target.items if isinstance(target, Vec) else (target,)
    if not all(isinstance(item, Reg) for item in items) or not isinstance(address, Mem):
        return None
    if isinstance(address.base, Sym):
        return address.base.name if address.base.offset == 0 else None
    return address.base.id if isinstance(address.base, Reg) else None


def _alignment(values: Values, base: int | str, registers: Sequence[Register]) -> int:
    if isinstance(base, str):
        return SYMBOL_ALIGNED
    return values.alignment(values.register(base, 8 * TYPE_BYTES[registers[base].type]))


def _groups(words: Sequence[_Word], size: int, alignment: int) -> list[list[_Word]]:
    """Words in a row that start where an access as wide as they are may start, the widest first."""
    place_of = {word.offset: word for word in words}
    found = []
    for width in (WIDEST, WIDEST // 2):
        count = width // size
        if count < 2 or 1 << alignment < width:
            continue
        for start in sorted(place_of):
            group = [place_of[start + n * size] for n in range(count) if start + n * size in place_of]
            if start % width == 0 and len(group) == count:
                found.append(group)
                for word in group:
                    del place_of[word.offset]
    return found


def _free(steps: Sequence[Step], group: Sequence[_Word], gone: set[int]) -> bool:
    """May all be loaded where the first is? Nothing between may touch the registers of the later ones."""
    places = sorted(word.place for word in group)
    if gone.intersection(places):
        return False
    targets = {register for place in places for register in steps[place].instruction.writes}
    if len(targets) < sum(len(steps[place].instruction.writes) for place in places):
        return False
    for place in range(places[0], places[-1]):
        touched = {*steps[place].instruction.reads}
        if place not in places:
            touched.update(steps[place].instruction.writes)
        later = {r for other in places if other > place for r in steps[other].instruction.writes}
        if touched & later:
            return False
    return True


def _join(steps: Sequence[Step], group: Sequence[_Word]) -> None:
    """Make the earliest load of the group load all of it. Its address is that of the lowest word."""
    lowest = steps[group[0].place]
    first = steps[min(word.place for word in group)]
    targets = tuple(register for word in group for register in _targets(steps[word.place].instruction))
    kind = lowest.instruction.modifiers[-1]
    first.instruction = replace(
        first.instruction,
        opcode=f"ld.shared.v{len(targets)}.{kind}",
        operands=(Vec(tuple(map(Reg, targets))), lowest.instruction.operands[1]),
        reads=lowest.instruction.reads,
        writes=targets,
    )
    first.access = lowest.access


def _targets(load: Instruction) -> list[int]:
    """The registers that a load of a word or a pair writes, in the order of the words."""
    target = load.operands[0]
    return [item.id for item in (target.items if isinstance(target, Vec) else (target,)) if isinstance(item, Reg)]
