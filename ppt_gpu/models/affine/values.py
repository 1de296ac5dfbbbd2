"""What is known of a kernel's registers as affine expressions: at its start, and after one more instruction.

Integer arithmetic of PTX on affine expressions, by opcode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ppt_gpu.common.errors import PptError
from ppt_gpu.models.affine.affine import Affine, disjoint_sum, index, product, span
from ppt_gpu.ptx.instructions import access_bytes, memory_space
from ppt_gpu.ptx.module import TYPE_BYTES, Imm, Instruction, Kernel, Mem, Operand, Reg, Special, Sym
from ppt_gpu.workload.arguments import pack_parameters
from ppt_gpu.workload.workload import Launch

#: symbol -> values that it takes, from 0 on; parts of thread indices are added when they are met
Extents = dict[str, int]
#: lanes of a half warp; finer parts of a thread index are not followed
_HALF_WARP = 16


def _low_part(value: Affine, unit: int, extents: Extents) -> Affine | None:
    """value mod `unit`, a power of two: itself where it is below, the index alone where whole half warps agree."""
    reach = span(value, extents)
    if reach is not None and reach[0] >= 0 and reach[1] < unit:
        return value
    kept = Affine(value.constant % unit, tuple((name, c) for name, c in value.terms if c % unit))
    if kept.is_constant:
        return kept
    if unit % _HALF_WARP == 0 and kept in (index("tid.x"), index("laneid")):
        return _named(f"{kept.terms[0][0]} mod {unit}", unit, extents)
    return None


def _high_part(value: Affine, unit: int, extents: Extents) -> Affine | None:
    """value / `unit`, a power of two, rounded down."""
    reach = span(value, extents)
    if reach is not None and reach[0] // unit == reach[1] // unit:
        return Affine(reach[0] // unit)
    if all(factor % unit == 0 for _, factor in value.terms):
        return Affine(value.constant // unit, tuple((name, factor // unit) for name, factor in value.terms))
    if unit % _HALF_WARP == 0 and value == index("tid.x"):
        return _named(f"tid.x div {unit}", -(-extents["tid.x"] // unit), extents)
    return None


def _named(name: str, extent: int, extents: Extents) -> Affine:
    extents[name] = extent
    return index(name)


def _power(value: Affine) -> int:
    """The constant when it is a power of two, else 0."""
    unit = value.constant
    return unit if value.is_constant and unit > 0 and unit & (unit - 1) == 0 else 0


def _and(s: list[Affine], extents: Extents) -> Affine | None:
    for value, mask in ((s[0], s[1]), (s[1], s[0])):
        unit = _power(mask.plus(Affine(1)))
        if unit:
            return _low_part(value, unit, extents)
    return None


def _shift_left(s: list[Affine], extents: Extents) -> Affine | None:
    return s[0].times(1 << s[1].constant) if s[1].is_constant and 0 <= s[1].constant < 64 else None


def _shift_right(s: list[Affine], extents: Extents) -> Affine | None:
    known = s[1].is_constant and 0 <= s[1].constant < 64
    return _positive([s[0], Affine(1 << s[1].constant)], extents, _high_part) if known else None


def _divide(s: list[Affine], extents: Extents) -> Affine | None:
    return _positive(s, extents, _high_part)


def _remainder(s: list[Affine], extents: Extents) -> Affine | None:
    return _positive(s, extents, _low_part)


def _positive(
    s: list[Affine], extents: Extents, part: Callable[[Affine, int, Extents], Affine | None]
) -> Affine | None:
    """PTX rounds towards 0, which is down for what is not negative."""
    reach, unit = span(s[0], extents), _power(s[1])
    return part(s[0], unit, extents) if unit and reach is not None and reach[0] >= 0 else None


def _multiply_add(s: list[Affine], extents: Extents) -> Affine | None:
    found = product(s[0], s[1])
    return None if found is None else found.plus(s[2])


def _bits_or(s: list[Affine], extents: Extents) -> Affine | None:
    return disjoint_sum(s[0], s[1], extents)


#: what an opcode does to the expressions of its sources; what is not here loses them
ACTIONS: dict[str, Callable[[list[Affine], Extents], Affine | None]] = {
    "mov": lambda s, extents: s[0],
    "cvt": lambda s, extents: s[0],
    "cvta": lambda s, extents: s[0],
    "add": lambda s, extents: s[0].plus(s[1]),
    "sub": lambda s, extents: s[0].minus(s[1]),
    "neg": lambda s, extents: s[0].times(-1),
    "mul": lambda s, extents: product(s[0], s[1]),
    "mul24": lambda s, extents: product(s[0], s[1]),
    "mad": _multiply_add,
    "mad24": _multiply_add,
    "shl": _shift_left,
    "shr": _shift_right,
    "and": _and,
    "or": _bits_or,
    "xor": _bits_or,
    "div": _divide,
    "rem": _remainder,
}


_BUFFER_ROOM = 1 << 44
_AXES = "xyz"


@dataclass(frozen=True)
class Values:
    """The expression that each register holds, None where it is not known; left out: not written yet."""

    registers: dict[int, Affine | None]
    specials: Mapping[str, Affine]  # "tid.x"
    extents: dict[str, int]  # symbols run from 0 to this - 1
    parameters: Mapping[str, int]  # offset of each in `block`, B
    block: bytes  # the parameter block

    def copy(self) -> Values:
        return self.having(dict(self.registers))

    def having(self, registers: dict[int, Affine | None]) -> Values:
        return replace(self, registers=registers)

    def unknown(self, registers: int) -> Values:
        """The same launch with nothing known of the registers."""
        return replace(self, registers=dict.fromkeys(range(registers)), parameters={})


def launch_values(kernel: Kernel, launch: Launch) -> Values:
    """What a kernel starts with: its launch's extents and arguments, and no register."""
    specials, extents = {}, {}
    for kind, count, sizes in (("tid", "ntid", launch.block), ("ctaid", "nctaid", launch.grid)):
        for axis, size in zip(_AXES, sizes, strict=True):
            specials[f"{count}.{axis}"] = Affine(size)
            specials[f"{kind}.{axis}"] = index(f"{kind}.{axis}") if size > 1 else Affine(0)
            extents[f"{kind}.{axis}"] = size
    specials["laneid"] = index("laneid")
    extents["laneid"] = 32
    names: dict[str, int] = {}

    def address_of(name: str) -> int:
        return _BUFFER_ROOM * (1 + names.setdefault(name, len(names)))

    try:
        block, offsets = pack_parameters(kernel, launch, address_of), {p.name: p.offset for p in kernel.params}
    except PptError:  # textures have no address
        block, offsets = b"", {}
    return Values({}, specials, extents, offsets, block)


def assign(values: Values, instruction: Instruction) -> None:
    """The effect of one instruction on `values`, in place. Under a guard, what it may leave must be what was there."""
    result = _result(values, instruction)
    for number, register in enumerate(instruction.writes):
        new = result if number == 0 else None
        if instruction.guard is not None and register in values.registers and values.registers[register] != new:
            new = None
        values.registers[register] = new


def _result(values: Values, instruction: Instruction) -> Affine | None:
    words = instruction.opcode.split(".")
    if words[0] == "ld":
        return _parameter(values, instruction)
    action = ACTIONS.get(words[0])
    if action is None or len(instruction.writes) != 1 or not _on_integers(words):
        return None
    operands = instruction.operands[1:]
    sources = [source for operand in operands if (source := _source(values, operand)) is not None]
    return action(sources, values.extents) if sources and len(sources) == len(operands) else None


def _on_integers(words: list[str]) -> bool:
    """Are all types integers of 32 bits or more, of which no carry or high half is asked for?"""
    types = [word for word in words if word in TYPE_BYTES]
    wide = all(kind[0] in "bsu" and TYPE_BYTES[kind] in (4, 8) for kind in types)
    return wide and not {"hi", "cc", "sat"} & set(words)


def _source(values: Values, operand: Operand) -> Affine | None:
    if isinstance(operand, Reg):
        return values.registers.get(operand.id)
    if isinstance(operand, Imm):
        return Affine(operand.value) if isinstance(operand.value, int) else None
    if isinstance(operand, Special):
        return values.specials.get(operand.name)
    if isinstance(operand, Sym):  # variables are aligned to their elements at least; their place is not known
        return index(f"&{operand.name}").plus(Affine(operand.offset))
    return None


def _parameter(values: Values, instruction: Instruction) -> Affine | None:
    address = instruction.operands[-1]
    if memory_space(instruction) != "param" or not isinstance(address, Mem) or not isinstance(address.base, Sym):
        return None
    first = values.parameters.get(address.base.name)
    size = access_bytes(instruction)
    if first is None or len(instruction.writes) != 1 or not _on_integers(instruction.opcode.split(".")):
        return None
    at = first + address.offset + address.base.offset
    if not 0 <= at <= len(values.block) - size:
        return None
    return Affine(int.from_bytes(values.block[at : at + size], "little", signed=True))
