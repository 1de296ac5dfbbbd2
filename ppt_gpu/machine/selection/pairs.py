"""Pairs of PTX instructions that one machine instruction does though the one does not only feed the other.

Both halves of a product; two conversions whose results are a pair; logic, and the comparison of its result with zero;
sine and cosine, which bring their angle into range once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ppt_gpu.ptx.module import Imm, Instruction, Operand, Reg, Vec

Operations = tuple[str, ...]
Results = Mapping[int, tuple[int, list[int]]]
#: types of the products both of whose halves one instruction makes
_HALVES = ("u32", "s32")
_PAIR = 2
_LOGIC = frozenset(("and", "or", "xor", "not"))
_INTEGERS = frozenset(("b32", "s32", "u32"))


def pairs(
    code: Sequence[Instruction],
    results: Results,
    found: Mapping[int, Operations],
    fuse: Mapping[str, Operations],
    literals: Mapping[int, int],
) -> dict[int, Operations]:
    """The operations of such pairs in a piece of straight-line code, by place.

    results: of each register that is written once and not read behind the code, its writer and its readers. found:
    operations of places that are, or do, parts of others. literals: registers that hold the same number everywhere.
    """
    made: dict[int, Operations] = {}
    if whole := fuse.get("mul.hi+mul.32"):
        made |= _products(code, found, whole, literals)
    if pair := fuse.get("cvt.f16+cvt.f16"):
        made |= _packed(code, results, pair)
    if test := fuse.get("logic.32+setp.zero"):
        made |= _tested(code, results, found, test)
    return made | _angles(code, fuse)


def _products(
    code: Sequence[Instruction], found: Mapping[int, Operations], whole: Operations, literals: Mapping[int, int]
) -> dict[int, Operations]:
    """Both halves of a product of 32-bit values: one instruction makes them, where the first of the two stands."""
    made: dict[int, Operations] = {}
    written: dict[int, int] = {}  # register -> the last place that writes it
    waiting: dict[tuple[object, ...], tuple[int, str]] = {}

    def value(operand: Operand) -> str:
        if isinstance(operand, Imm):
            return str(operand.value)
        if not isinstance(operand, Reg):
            return str(operand)
        return str(literals.get(operand.id, f"{operand.id} {written.get(operand.id)}"))

    for place, instruction in enumerate(code):
        words = instruction.modifiers
        if instruction.base == "mul" and words[0] in ("lo", "hi") and words[1] in _HALVES and place not in found:
            key = (*sorted(map(value, instruction.operands[1:])), instruction.guard)
            other = waiting.pop(key, None)
            if other is None:
                waiting[key] = (place, words[0])
            elif other[1] != words[0]:
                made |= {other[0]: whole, place: ()}
        written.update(dict.fromkeys(instruction.writes, place))
    return made


def _angles(code: Sequence[Instruction], fuse: Mapping[str, Operations]) -> dict[int, Operations]:
    """Sines of angles whose cosine has been made, and the other way round: the angle is in range already."""
    made: dict[int, Operations] = {}
    first: dict[int, str] = {}  # register that holds an angle -> what has been made of it
    for place, instruction in enumerate(code):
        angle = instruction.operands[1] if instruction.base in ("sin", "cos") else None
        if isinstance(angle, Reg) and instruction.guard is None:
            name = f"{instruction.base}.approx"
            if second := fuse.get(f"{first.get(angle.id)}+{name}"):
                made[place] = second
            first.setdefault(angle.id, name)
        for register in instruction.writes:
            first.pop(register, None)
    return made


def _packed(code: Sequence[Instruction], results: Results, pair: Operations) -> dict[int, Operations]:
    """Two conversions to halves that are read as a pair."""
    made: dict[int, Operations] = {}
    for instruction in code:
        items = next((o.items for o in instruction.operands if isinstance(o, Vec) and len(o.items) == _PAIR), ())
        if instruction.base not in ("mov", "st"):
            continue
        writers = [results[each.id][0] for each in items if isinstance(each, Reg) and each.id in results]
        halves = {w for w in writers if code[w].base == "cvt" and code[w].modifiers == ("rn", "f16", "f32")}
        if len(halves) == _PAIR and made.keys().isdisjoint(halves):
            made |= {min(halves): (), max(halves): pair}
    return made


def _tested(
    code: Sequence[Instruction], results: Results, found: Mapping[int, Operations], test: Operations
) -> dict[int, Operations]:
    """Comparisons of logic with zero, which that instruction does as well."""
    made: dict[int, Operations] = {}
    written: dict[int, int] = {}
    for place, instruction in enumerate(code):
        register = _compared_with_zero(instruction)
        writer = None if register is None else written.get(register)
        if register is not None and writer is not None and writer not in made and found.get(writer) != ():
            logic = code[writer]
            if logic.base in _LOGIC and logic.modifiers == ("b32",) and logic.guard is None:
                alone = results.get(register) == (writer, [place])
                made |= {writer: (), place: test} if alone else {writer: found.get(writer, ("int32.logic",)), place: ()}
        written.update(dict.fromkeys(instruction.writes, place))
    return made


def _compared_with_zero(instruction: Instruction) -> int | None:
    """The register that it tells from zero, or not."""
    words = instruction.modifiers
    if instruction.base != "setp" or len(words) != 2 or words[0] not in ("eq", "ne") or words[1] not in _INTEGERS:
        return None
    first, second = instruction.operands[1:3]
    zero = isinstance(second, Imm) and not second.value and not second.bits
    return first.id if zero and isinstance(first, Reg) and instruction.guard is None else None
