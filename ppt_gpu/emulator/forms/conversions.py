"""What a cvt instruction converts, read from its modifiers: shared by both engines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

#: types of one number
INTEGERS = {f"{s}{n}": n for s in "us" for n in (8, 16, 32, 64)}
FLOATS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
#: types narrower than a byte that only cvt.pack knows
_SMALL = {f"{s}{n}": n for s in "us" for n in (2, 4)}
_PACKED = re.compile(r"(f16|bf16|e4m3|e5m2|e3m2|e2m3|e2m1|ue8m0|s2f6)x([24])")
_TO_INTEGER = ("rni", "rzi", "rmi", "rpi")


@dataclass(frozen=True)
class Conversion:
    """`target` and `source` are types of one number; `count` numbers are packed on the packed side, 1 for none."""

    target: str
    source: str
    target_count: int
    source_count: int
    rounding: str  # rn, rz, rm, rp, rna, rs
    integral: str  # rni, rzi, rmi, rpi, or ""
    flags: tuple[str, ...]  # of ftz, sat, satfinite, relu

    @property
    def count(self) -> int:
        return max(self.target_count, self.source_count)


@lru_cache(maxsize=4096)
def conversion(modifiers: tuple[str, ...]) -> Conversion | None:
    """None where the modifiers do not name a target and a source."""
    types: list[tuple[str, int]] = []
    for modifier in modifiers:
        packed = _PACKED.fullmatch(modifier)
        if packed:
            types.append((packed[1], int(packed[2])))
        elif modifier in INTEGERS or modifier in FLOATS or modifier == "tf32" or modifier in _SMALL:
            types.append((modifier, 1))
    if len(types) < 2:
        return None
    (target, target_count), (source, source_count) = types[:2]
    return Conversion(
        target, source, target_count, source_count,
        next((m for m in modifiers if m in ("rn", "rz", "rm", "rp", "rna", "rs")), "rn"),
        next((m for m in modifiers if m in _TO_INTEGER), ""),
        tuple(m for m in ("ftz", "sat", "satfinite", "relu") if m in modifiers),
    )  # fmt: skip


def storage(name: str, count: int) -> int:
    """Bits of the register that holds `count` packed numbers of a format."""
    return {"e2m1": 4}.get(name, FLOATS.get(name, 8)) * count


def refusal(c: Conversion) -> str:
    """Why a conversion is not executed; "" where it is."""
    if c.rounding == "rs":
        return "stochastic rounding (.rs): the manual shows its use of the random bits in figures only"
    if "s2f6" in (c.target, c.source):
        return "the fixed-point type .s2f6x2"
    return ""


def not_a_number(source: str, target: str) -> int:
    """What a NaN becomes as an integer of type `target` (PTX ISA, "cvt")."""
    bits = INTEGERS[target]
    return 1 << (bits - 1) if source == "f64" or bits == 64 else 0


def limits(target: str) -> tuple[int, int]:
    """Least and largest value of an integer type, also of 2 and 4 bits."""
    bits = int(target[1:])
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if target[0] == "s" else (0, (1 << bits) - 1)
