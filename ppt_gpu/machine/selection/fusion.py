"""PTX instructions that one machine instruction does together: what each instruction of a kernel costs.

An instruction that becomes a part of another, because that alone reads its result, is free; the other then is the
operation that does both. Which patterns a GPU has, and what they become, its ISA says ([fuse], from what ptxas makes
of them).

Bitwise logic of up to three values, done by one instruction (LOP3): which instructions become a part of others.

LOP3 computes any function of three values, one of which may be a literal. Covering a network of logic gates with such
instructions is technology mapping (Cong and Ding, "FlowMap", 1994); here it is greedy: first what one instruction alone
reads becomes a part of that one, then what all its readers have room for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from ppt_gpu.machine.selection.pairs import Operations, pairs
from ppt_gpu.ptx.instructions import copied, form
from ppt_gpu.ptx.module import Imm, Instruction, Kernel, Reg
from ppt_gpu.ptx.uses import readers_of, writers_of

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
            if all(map(_fits_together, joined.values())):
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


def _fits_together(inputs: Inputs) -> bool:
    return len(inputs) <= _INPUTS and sum(what != "register" for what, _ in inputs) <= _LITERALS


_TYPES = frozenset(("u32", "s32", "b32", "u64", "s64", "b64"))
#: what stands behind the name of a sum or product of floats that may be rounded together with another
_FLOATS = {("f32",): "f32", ("ftz", "f32"): "ftz.f32", ("f64",): "f64"}
#: conversions that only extend, or round floats to whole numbers and those to integers, by what is behind their name
_CONVERSIONS: Mapping[tuple[str, ...], str] = (
    {("s64", "s32"): "cvt.s64", ("u64", "u32"): "cvt.u64"}
    | {(rounding, *flush, "f32", "f32"): "cvt.whole" for rounding in ("rmi", "rpi", "rni") for flush in ((), ("ftz",))}
    | {("rzi", *flush, kind, "f32"): "cvt.integer" for kind in ("s32", "u32") for flush in ((), ("ftz",))}
)
#: what may be added to, not taken from, something by the instruction that does it
_POSITIVE = ("mul.wide", "mul.32", "mul.64", "shr.32", "shl.64", "cvt.s64")
#: most sources of a machine instruction
_SOURCES = 3


def kind(instruction: Instruction) -> str:
    """What the instruction is in patterns: "add.32", "mul.wide", "shl.32", "logic.32", "mul.f32"; "" for others."""
    words = instruction.modifiers
    if words in _FLOATS and instruction.base in ("add", "sub", "mul"):
        return f"{'mul' if instruction.base == 'mul' else 'add'}.{_FLOATS[words]}"
    if instruction.base == "cvt":
        return _CONVERSIONS.get(words, "")
    if instruction.base in ("min", "max") and len(words) == 1:
        return f"{instruction.base}.{words[0]}"
    size = words[-1][1:] if words and words[-1] in _TYPES else ""
    if not size or "cc" in words or "sat" in words:
        return ""
    base = instruction.base
    if base in ("add", "sub"):
        return f"add.{size}"
    if base == "mul" and "wide" in words:
        return "mul.wide"
    if base == "mul" and "lo" in words:
        return f"mul.{size}"
    if base in ("shl", "shr") and isinstance(instruction.operands[2], Imm):
        return f"{base}.{size}"
    if base in ("and", "or", "xor", "not"):
        return f"logic.{size}"
    return ""


def named(instruction: Instruction, fuse: Mapping[str, Operations]) -> str:
    """Its kind, or that of products by a power of two ("mul.wide.shift") where the ISA says what shifts become."""
    found = kind(instruction)
    if found.startswith("mul.") and f"{found}.shift" in fuse:
        factors = [o.value for o in instruction.operands[1:] if isinstance(o, Imm) and isinstance(o.value, int)]
        if any(factor > 0 and factor & (factor - 1) == 0 for factor in factors):
            return f"{found}.shift"
    return found


def fused(
    code: Sequence[Instruction],
    alive: int,
    single: Mapping[int, Instruction],
    fuse: Mapping[str, Operations],
    parts: Mapping[int, Operations] = MappingProxyType({}),
    literals: Mapping[int, int] = MappingProxyType({}),
) -> dict[int, Operations]:
    """The operations of those instructions of a piece of straight-line code that are, or have become, part of another.

    alive: registers that are read behind the code. single: of registers with one writer and only readers that it may
    become a part of, wherever these are, that writer (`parts_everywhere`). parts: places of `code` that are a part of
    something else anyway, and what they cost. literals: registers that hold the same number wherever they are read.
    """
    found = dict(parts)
    taken = set(parts)  # instructions that do another one's work already, or whose work another does
    results = _results(code, alive)
    for size in ("32", "64"):
        if operations := fuse.get(f"logic.{size}+logic.{size}"):
            absorbed, absorbing = logic_parts(code, results, taken, size)
            found |= dict.fromkeys(absorbed, ()) | dict.fromkeys(absorbing, operations)
            taken |= absorbed | absorbing
    for number, (writer, readers) in results.items():
        first = named(code[writer], fuse)
        if not first or not readers or writer in taken or code[writer].guard is not None:
            continue
        patterns = [fuse.get(f"{first}+{kind(code[reader])}") for reader in readers]
        if number in single or any(p is None for p in patterns) or taken.intersection(readers):
            continue
        if any(not _fits(code[writer], code[reader], number) for reader in readers):
            continue
        if any(register in single for reader in readers for register in code[reader].reads):
            continue
        if len(readers) > 1 and first not in ("mul.wide", "shl.32"):
            continue  # to do it again in each reader pays where that costs nothing
        found[writer] = ()
        taken.update((writer, *readers))
        found |= {reader: pattern for reader, pattern in zip(readers, patterns, strict=True) if pattern is not None}
    for place, instruction in enumerate(code):
        joined = [single[register] for register in instruction.reads if register in single]
        if any(register in single for register in instruction.writes):
            found[place] = ()
        elif joined and place not in taken:
            found |= _joined(place, instruction, joined[0], fuse)
        elif place not in taken and instruction.base == "mul" and named(instruction, fuse).endswith(".shift"):
            found[place] = fuse[named(instruction, fuse)]
    return found | pairs(code, results, found, fuse, literals)


def _joined(
    place: int, instruction: Instruction, writer: Instruction, fuse: Mapping[str, Operations]
) -> dict[int, Operations]:
    """What the reader of a part costs. A copy, where the same product is made again, is the product."""
    first = kind(writer)
    if pattern := fuse.get(f"{first}+{kind(instruction)}"):
        return {place: pattern}
    return {place: fuse[f"{first}+add.64"]} if instruction.base == "mov" else {}


def parts_everywhere(kernel: Kernel, fuse: Mapping[str, Operations]) -> dict[int, Instruction]:
    """Registers written once, by an instruction that becomes a part of each of its readers, and that instruction.

    A product for addresses that a loop adds again and again is made by each addition anew, which costs it nothing.
    """
    written, read = writers_of(kernel.instructions), readers_of(kernel.instructions)
    found: dict[int, Instruction] = {}
    for register, (writer, *others) in written.items():
        if others or kind(writer) != "mul.wide" or writer.guard is not None:
            continue
        if any(len(written.get(source, ())) != 1 for source in writer.reads):
            continue  # its factors change: it must be made where they are what they were
        used = read.get(register, [])
        fits = all(f"mul.wide+{kind(r)}" in fuse and _fits(writer, r, register) for r in used)
        if used and fits and not any((set(r.reads) - {register}) & found.keys() for r in used):
            found[register] = writer
    return found


def literals(kernel: Kernel) -> dict[int, int]:
    """Registers that are written once, with a literal integer, and that."""
    found: dict[int, int] = {}
    for register, (writer, *others) in writers_of(kernel.instructions).items():
        source = copied(writer)
        if not others and writer.guard is None and isinstance(source, Imm) and isinstance(source.value, int):
            found[register] = source.value
    return found


def _fits(writer: Instruction, reader: Instruction, register: int) -> bool:
    """Can one instruction read what both read?"""
    if reader.guard is not None and reader.guard.reg == register:
        return False
    if sum(isinstance(o, Reg) and o.id == register for o in reader.operands[1:]) != 1:
        return False
    if reader.base == "sub" and kind(writer) in _POSITIVE:
        subtracted = reader.operands[2]
        if isinstance(subtracted, Reg) and subtracted.id == register:
            return False
    sources = [o for o in (*writer.operands[1:], *reader.operands[1:]) if not (isinstance(o, Reg) and o.id == register)]
    literals = sum(isinstance(o, Imm) for o in sources)
    return len(sources) <= _SOURCES and literals <= 1 and form(writer.opcode).space is None


def _results(code: Sequence[Instruction], alive: int) -> dict[int, tuple[int, list[int]]]:
    """Of each register that is written once, and not read behind the code: its writer and its readers."""
    writer: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    dropped: set[int] = set()
    for place, instruction in enumerate(code):
        for register in instruction.reads:
            if register in writer:
                readers[register].append(place)
            else:
                dropped.add(register)
        for register in instruction.writes:
            if register in writer:
                dropped.add(register)
            writer[register], readers[register] = place, []
    return {
        register: (place, readers[register])
        for register, place in writer.items()
        if register not in dropped and not alive >> register & 1
    }
