"""Integer arithmetic of PTX on affine expressions, by opcode."""

from __future__ import annotations

from collections.abc import Callable

from ppt_gpu.models.affine.affine import Affine, disjoint_sum, index, product, span

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
