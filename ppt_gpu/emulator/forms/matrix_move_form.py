"""What ldmatrix, stmatrix, movmatrix, wmma.load and wmma.store move, read from the opcode."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ppt_gpu.emulator.forms.matrix_form import ELEMENT_BITS, WMMA_SHAPES, shape_of
from ppt_gpu.emulator.forms.matrix_layout import Fragment, fragment_a, fragment_b, fragment_c


@dataclass(frozen=True)
class RowMove:
    """ldmatrix or stmatrix: `lanes` lanes give the addresses of 16 B rows; `registers` a lane hold the fragments."""

    move: str  # kind of `matrix_layout.permutation`
    matrices: int
    lanes: int
    registers: int
    bits: int  # of an element of the permutation


@lru_cache(maxsize=64)
def row_move(opcode: str) -> RowMove:
    """The form of an ldmatrix or stmatrix. ValueError for one that is not executed."""
    base, *modifiers = opcode.split(".")
    count = next((int(m[1]) for m in modifiers if m in ("x1", "x2", "x4")), 1)
    turned = "trans" in modifiers
    if "m16n16" in modifiers and base == "ldmatrix" and "b8" in modifiers and count < 4:
        return RowMove("bytes", count, 16 * count, 2 * count, 8)
    if "m8n8" not in modifiers or "b16" not in modifiers:
        raise ValueError("only matrices of m8n8.b16, and ldmatrix.m16n16.trans.b8, are moved")
    name = ("load" if base == "ldmatrix" else "store") + ("_trans" if turned else "")
    return RowMove(name, count, 8 * count, count, 16)


@dataclass(frozen=True)
class BlockMove:
    """wmma.load or wmma.store of a whole matrix: `lines` rows (or columns) of `line_bytes`, `pitch` elements apart."""

    role: str  # "a", "b", "c"
    layout: str
    m: int
    n: int
    k: int
    bits: int
    fragment: Fragment

    @property
    def lines(self) -> int:
        rows = {"a": self.m, "b": self.k, "c": self.m}[self.role]
        columns = {"a": self.k, "b": self.n, "c": self.n}[self.role]
        return rows if self.layout == "row" else columns

    @property
    def line_bytes(self) -> int:
        return self.fragment.place.size * self.bits // 8 // self.lines

    @property
    def by_eights(self) -> bool:
        """Does ptxas load it from shared memory as ldmatrix.x4 would, four matrices of eight lines of 16 B?"""
        return self.role != "c" and self.bits == 16 and self.lines % 8 == 0 and self.lines * self.line_bytes == 512

    @property
    def unit(self) -> int:
        """Bits that move together: elements, or bytes of smaller ones."""
        return max(8, self.bits)

    @property
    def key(self) -> tuple[str, int, int, int, int, int]:
        """Arguments of `matrix_layout.permutation` for a load."""
        return self.role + self.layout, self.m, self.n, self.k, self.bits, self.unit


def shares(lines: int, line_bytes: int, by_eights: bool) -> list[tuple[int, int]]:
    """(Line, byte in it) of the share of the matrix that each lane moves, as a move is recorded: side by side along the
    lines or, `by_eights`, the lines of one matrix after those of another."""
    if by_eights:
        blocks = lines // 8
        return [(lane % 8 + lane // 8 % blocks * 8, lane // 8 // blocks * 16) for lane in range(32)]
    share = lines * line_bytes // 32
    return [divmod(lane * share, line_bytes) for lane in range(32)]


@lru_cache(maxsize=256)
def block_move(opcode: str) -> BlockMove:
    """The form of a wmma.load or wmma.store. ValueError for one that does not exist."""
    _, *modifiers = opcode.split(".")
    m, n, k = shape_of(tuple(modifiers))
    kind = modifiers[-1]
    role = {"d": "c"}.get(modifiers[1], modifiers[1])
    layout = next((word for word in modifiers if word in ("row", "col")), "")
    shape = f"m{m}n{n}k{k}"
    known = [a for a, shapes in WMMA_SHAPES.items() if shape in shapes]
    allowed = ("f16", "f32", "f64", "s32") if role == "c" else known
    if role not in ("a", "b", "c") or not layout or not known or kind not in allowed:
        raise ValueError(f"there is no fragment {role} of {shape} with elements {kind}")
    bits = ELEMENT_BITS[kind]
    if kind == "b1":
        bits, k = 32, k // 32
    if bits < 8 and layout != {"a": "row", "b": "col"}[role]:
        raise ValueError(f"a fragment {role} of {kind} lies {'row' if role == 'a' else 'column'} by {kind}")
    fragment = {
        "a": lambda: fragment_a(m, k, bits),
        "b": lambda: fragment_b(n, k, bits),
        "c": lambda: fragment_c(m, n, bits),
    }[role]()
    return BlockMove(role, layout, m, n, k, bits, fragment)
