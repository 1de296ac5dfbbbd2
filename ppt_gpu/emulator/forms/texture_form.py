"""What a texture or surface instruction asks for, read from its opcode: shared by both engines."""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.ptx.module import Imm, Instruction, Mem, Operand, Pair, Reg, Special, Vec, items_of
from ppt_gpu.workload.texture import Word

#: geometry -> (axes, arrayed, cube, coordinates given)
GEOMETRIES = {"1d": (1, False, False, 1), "2d": (2, False, False, 2), "3d": (3, False, False, 4),
              "a1d": (1, True, False, 2), "a2d": (2, True, False, 4),
              "cube": (2, False, True, 4), "acube": (2, True, True, 4)}  # fmt: skip
COMPONENTS = ("r", "g", "b", "a")
BORDERS = ("trap", "clamp", "zero")
#: what txq and suq ask for -> word of the table, -1 for always one
QUERIES = {"width": Word.WIDTH, "height": Word.HEIGHT, "depth": Word.DEPTH, "array_size": Word.LAYERS,
           "normalized_coords": Word.NORMALIZED, "num_mipmap_levels": -1, "num_samples": -1}  # fmt: skip


class BadForm(Exception):
    """A form of the instruction that is not executed; the text says which part."""


@dataclass(frozen=True)
class Request:
    """A fetch (tex, tld4). `coordinates` are the operands that count: layer first, then x, y, z."""

    axes: int
    arrayed: bool
    cube: bool
    floats: bool  # coordinates are f32, else s32
    component: int  # of tld4; -1 for tex
    coordinates: tuple[Operand, ...]
    offsets: tuple[Operand, ...]  # in texels, by axis; none given: empty
    kind: str  # type of the destination

    @property
    def code(self) -> int:
        """The same in one number, for compiled code."""
        flags = self.arrayed | self.cube << 1 | self.floats << 2 | bool(self.offsets) << 3
        return self.axes | flags << 2 | (self.component + 1) << 6


def request_of(ins: Instruction) -> Request:
    """What a tex or tld4 instruction asks for. Raises BadForm."""
    modifiers = ins.modifiers
    geometry = next((m for m in modifiers if m in GEOMETRIES), "")
    types = [m for m in modifiers if m in ("s32", "u32", "f32", "f16", "f16x2")]
    if not geometry:
        raise BadForm("multi-sample textures" if any(m.endswith("2dms") for m in modifiers) else "its geometry")
    if len(types) < 2 or types[0] not in ("s32", "u32", "f32"):
        raise BadForm("results in half precision")
    axes, arrayed, cube, given = GEOMETRIES[geometry]
    place = ins.operands[1]
    if not isinstance(place, Mem) or not all(isinstance(i, Reg | Imm | Special) for i in place.indices):
        raise BadForm("samplers apart from textures (.texmode_independent)")
    if len(place.indices) not in (given, 4 if geometry in ("1d", "2d") else given):  # PTX 1.x always gives four
        raise BadForm("samplers apart from textures, or another number of coordinates")
    component = COMPONENTS.index(modifiers[0]) if ins.base == "tld4" and modifiers[0] in COMPONENTS else -1
    count = arrayed + (3 if cube else axes)
    return Request(
        axes, arrayed, cube, types[1] == "f32", component, place.indices[:count], _offsets(ins, axes), types[0]
    )


def _offsets(ins: Instruction, axes: int) -> tuple[Operand, ...]:
    """The texel offsets, which come after the level or the gradients."""
    gradient, level = "grad" in ins.modifiers, "level" in ins.modifiers
    rest = ins.operands[2 + (2 if gradient else level) :]
    if not rest:
        return ()
    items = items_of(rest[0])
    if len(rest) > 1 or (not isinstance(rest[0], Vec) and axes > 1):
        raise BadForm("depth comparison")
    return items[:axes]


def destination_of(ins: Instruction) -> tuple[Operand, Operand | None]:
    """The four elements, and the predicate of residency if it is asked for."""
    first = ins.operands[0]
    return (first.first, first.second) if isinstance(first, Pair) else (first, None)


@dataclass(frozen=True)
class SurfaceRequest:
    """A surface access. `coordinates`: layer first if `arrayed`, then x in bytes, y, z."""

    axes: int
    arrayed: bool
    border: str  # "trap", "clamp" or "zero"
    coordinates: tuple[Operand, ...]

    @property
    def code(self) -> int:
        """The same in one number, for compiled code."""
        return self.axes | self.arrayed << 2 | BORDERS.index(self.border) << 3


def surface_request(ins: Instruction, place: Operand) -> SurfaceRequest:
    """What a suld, sust or sured instruction asks for. Raises BadForm."""
    geometry = next((m for m in ins.modifiers if m in GEOMETRIES), "")
    if not geometry or "cube" in geometry:
        raise BadForm("its geometry")
    axes, arrayed, _, given = GEOMETRIES[geometry]
    if not isinstance(place, Mem) or len(place.indices) < min(given, arrayed + axes):
        raise BadForm("another number of coordinates")
    if "p" in ins.modifiers:
        raise BadForm("formatted surface accesses (.p)")
    border = next((m for m in ins.modifiers if m in BORDERS), "trap")
    return SurfaceRequest(axes, arrayed, border, place.indices[: arrayed + axes])


def query_word(ins: Instruction) -> int:
    """The word of the texture table that a txq or suq instruction asks for, -1 for always one. Raises BadForm."""
    asked = next((QUERIES[m] for m in ins.modifiers if m in QUERIES), None)
    if asked is None:
        raise BadForm("this query")
    return int(asked)


def handle_operand(place: Operand) -> Operand:
    """The operand that holds or names the handle. Raises BadForm."""
    if not isinstance(place, Mem) or place.base is None:
        raise BadForm("an operand that is no texture")
    return place.base
