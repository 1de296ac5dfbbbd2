"""Bitwise logic of up to three values, done by one instruction (LOP3): which instructions become a part of others.

LOP3 computes any function of three values, one of which may be a literal. Covering a network of logic gates with such
instructions is technology mapping (Cong and Ding, "FlowMap", 1994); here it is greedy: first what one instruction alone
reads becomes a part of that one, then what all its readers have room for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ppt_gpu.ptx.module import Imm, Instruction, Reg

#: values that one instruction reads, and how many of them may be literals
_INPUTS, _LITERALS = 3, 1
_BASES = frozenset(("and", "or", "xor", "not"))
Inputs = frozenset[tuple[str, object]]


def logic_parts(
    code: Sequence[Instruction], results: Mapping[int, tuple[int, list[int]]], taken: Collection[int], size: str
) -> tuple[set[int], set[int]]:
    """Places of a piece of straight-line code whose logic of `size` ("32", "64") others do, and of those others.

    results: of each register that is written once and not read behind the code, its writer and its readers.
    taken: places that are parts of something else.
    """
    inputs = {
        place: _inputs(instruction)
        for place, instruction in enumerate(code)
        if place not in taken and instruction.guard is None and _is_logic(instruction, size)
    }
    into: dict[int, set[int]] = {}  # of each place whose logic others do: those

    def doing(place: int) -> set[int]:
        """Who does the logic of a place now."""
        return {done for other in into[place] for done in doing(other)} if place in into else {place}

    for many in (False, True):
        for register, (writer, readers) in results.items():
            if writer not in inputs or writer in into or not readers or not inputs.keys() >= set(readers):
                continue
            now = {done for reader in readers for done in doing(reader)}
            if (len(now) > 1) is not many:
                continue
            joined = {r: inputs[r] - {("register", register)} | inputs[writer] for r in now}
            if all(map(_fits, joined.values())):
                inputs |= joined
                into[writer] = now
    return set(into), {place for places in into.values() for place in places} - into.keys()


def _is_logic(instruction: Instruction, size: str) -> bool:
    words = instruction.modifiers
    return instruction.base in _BASES and len(words) == 1 and words[0] == f"b{size}"


def _inputs(instruction: Instruction) -> Inputs:
    found: set[tuple[str, object]] = set()
    for operand in instruction.operands[1:]:
        if isinstance(operand, Reg):
            found.add(("register", operand.id))
        elif isinstance(operand, Imm):
            found.add(("literal", operand.value if operand.bits is None else operand.bits))
        else:
            found.add(("other", str(operand)))
    return frozenset(found)


def _fits(inputs: Inputs) -> bool:
    return len(inputs) <= _INPUTS and sum(what != "register" for what, _ in inputs) <= _LITERALS
