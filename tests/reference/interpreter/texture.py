"""Textures and surfaces in the interpreter: one lane, one tap, one channel at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.forms.texture_form import (
    BadForm,
    Request,
    SurfaceRequest,
    destination_of,
    handle_operand,
    query_word,
    request_of,
    surface_request,
)
from ppt_gpu.ptx.instructions import vector_length
from ppt_gpu.ptx.module import Instruction, Operand
from ppt_gpu.workload.texture import ADDRESS_MODES, FORMATS, TEXTURE_WINDOW, Word
from reference.interpreter.access import Access, Place, record_places
from reference.interpreter.atomics import apply
from reference.interpreter.block import LANES
from reference.interpreter.memory import fill_elements, keep_elements, write_elements
from reference.interpreter.warp import Execute, Warp, type_of, unsupported, width_of

Row = Sequence[int]
f32 = np.float32
FAR = 2.0**30


def _rows(warp: Warp, place: Operand) -> list[Row | None]:
    """The texture of each active lane. PptError where the handle is none."""
    handles = warp.read(handle_operand(place), 64)
    found: list[Row | None] = [None] * LANES
    for lane in np.flatnonzero(warp.active).tolist():
        row = warp.launched.memory.textures.row(int(handles[lane]))
        if row is None:
            raise PptError(f"the handle {int(handles[lane]):#x} is no texture or surface")
        found[lane] = row.tolist()
    return found


def _checked(ins: Instruction, error: BadForm) -> PptError:
    return unsupported(ins, str(error))


# fetches ------------------------------------------------------------------------------------------------------------


def fetch(warp: Warp, ins: Instruction) -> None:
    """tex, tld4: one level of detail."""
    try:
        request = request_of(ins)
        rows = _rows(warp, ins.operands[1])
    except BadForm as error:
        raise _checked(ins, error) from None
    places: list[Place | None] = [None] * LANES
    results = [[0] * LANES for _ in range(4)]
    layers = warp.read(request.coordinates[0], 32).astype(np.uint32).view(np.int32)
    given = [_coordinate(warp, operand, request.floats) for operand in request.coordinates[request.arrayed :]]
    offsets = [warp.read(operand, 32).astype(np.uint32).view(np.int32) for operand in request.offsets]
    for lane, row in enumerate(rows):
        if row is None:
            continue
        layer = int(layers[lane]) if request.arrayed else 0
        moved = [int(offset[lane]) for offset in offsets] or [0, 0, 0]
        lane_result, address = _sample(warp, request, row, [axis[lane] for axis in given], layer, moved)
        for k in range(4):
            results[k][lane] = lane_result[k]
        if address is not None:
            places[lane] = Place("global", address, warp.launched.memory.data, 0, address, 0)
    record_places(warp, places)
    destination, resident = destination_of(ins)
    write_elements(warp, destination, "b32", results)
    if resident is not None:
        warp.write(resident, np.ones(LANES, np.uint64))


def _coordinate(warp: Warp, operand: Operand, floats: bool) -> np.ndarray:
    bits = warp.read_typed(operand, "f32" if floats else "s32").astype(np.uint32)
    return bits.view(np.float32 if floats else np.int32)


def _sample(
    warp: Warp, request: Request, row: Row, given: list, layer: int, moved: list[int]
) -> tuple[list[int], int | None]:
    """The four results' bits, and the address of the first texel read."""
    modes = [ADDRESS_MODES[row[Word.ADDRESS_X + axis]] for axis in range(3)]
    normalized = bool(row[Word.NORMALIZED])
    if request.cube:
        face, given = _face(*given)
        layer, normalized, modes = 6 * layer + face, True, ["clamp"] * 3
    layer = min(max(layer, 0), row[Word.LAYERS] - 1)
    real = [*FORMATS][row[Word.FORMAT]] not in ("u8", "s8", "u16", "s16", "u32", "s32")
    linear = request.floats and (request.component >= 0 or (row[Word.FILTER] == 1 and real))
    lower, weights = [], []
    for axis in range(request.axes):
        if not request.floats:
            lower.append(int(given[axis]) + moved[axis])
            weights.append(f32(0))
            continue
        value = _in_texels(given[axis], row[Word.WIDTH + axis], modes[axis], normalized)
        value = f32(value - f32(0.5)) if linear else value
        whole = f32(np.floor(value))
        weights.append(f32(f32(np.floor(f32(f32(f32(value - whole) * f32(256)) + f32(0.5)))) / f32(256)))
        lower.append(int(whole) + moved[axis])
    first: int | None = None
    total = [f32(0)] * 4
    bits = [0] * 4
    for tap in range(1 << request.axes if linear else 1):
        ups = [tap >> axis & 1 for axis in range(request.axes)]
        weight = f32(1)
        index = []
        for axis, up in enumerate(ups):
            weight = f32(weight * (weights[axis] if up else f32(1) - weights[axis]))
            mode = modes[axis] if request.floats else "border"
            index.append(_texel(lower[axis] + up, row[Word.WIDTH + axis], mode, normalized))
        address = None if None in index else _texel_address(row, [i or 0 for i in index], layer)
        first = address if first is None else first
        texel = _read_texel(warp, row, address, real)
        if request.component >= 0:
            bits[{0: 3, 1: 2, 2: 0, 3: 1}[tap]] = texel[request.component] if (
                request.component < row[Word.CHANNELS]) else 0  # fmt: skip
        elif linear:
            total = [
                f32(t + f32(weight * np.array([b], np.uint32).view(f32)[0])) for t, b in zip(total, texel, strict=True)
            ]
        else:
            bits = texel
    if linear and request.component < 0:
        bits = np.array(total, f32).view(np.uint32).tolist()
    return bits, first


def _face(x: f32, y: f32, z: f32) -> tuple[int, list[f32]]:
    """The face of a cube map and the coordinates in it (CUDA Programming Guide, "Cubemap Textures")."""
    big = max(abs(x), abs(y), abs(z)) if not any(math.isnan(v) for v in (x, y, z)) else _nan_largest(x, y, z)
    if abs(x) == big:
        face, s, t = (0, -z, -y) if x >= 0 else (1, z, -y)
    elif abs(y) == big:
        face, s, t = (2, x, z) if y >= 0 else (3, x, -z)
    else:
        face, s, t = (4, x, -y) if z >= 0 else (5, -x, -y)
    if big == 0:
        return face, [f32(0), f32(0)]
    return face, [f32(f32(f32(v / big) + f32(1)) * f32(0.5)) for v in (s, t)]


def _nan_largest(x: f32, y: f32, z: f32) -> f32:
    """The largest magnitude as compiled code compares it, where one is no number: max(a, b) is b unless a > b."""
    inner = abs(y) if abs(y) > abs(z) else abs(z)
    return abs(x) if abs(x) > inner else inner


def _in_texels(x: f32, extent: int, mode: str, normalized: bool) -> f32:
    if math.isnan(x):
        return f32(0)
    if normalized:
        whole = f32(np.floor(x))
        if mode == "wrap":
            x = f32(x - whole)
        elif mode == "mirror":
            odd = f32(f32(np.floor(f32(whole * f32(0.5)))) * f32(2)) != whole
            x = f32(x - whole)
            x = f32(f32(1) - x) if odd else x
        x = f32(x * f32(extent))
    if math.isnan(x):
        return f32(0)
    return f32(min(max(float(x), -FAR), FAR))


def _texel(i: int, extent: int, mode: str, normalized: bool) -> int | None:
    """The texel that index `i` means, None for none. Only normalised coordinates wrap."""
    if mode == "border":
        return i if 0 <= i < extent else None
    if mode == "wrap" and normalized:
        return i % extent
    return min(max(i, 0), extent - 1)


def _texel_address(row: Row, index: list[int], layer: int) -> int:
    x, y, z = (*index, 0, 0)[:3]
    line = (layer * row[Word.DEPTH] + z) * row[Word.HEIGHT] + y
    return row[Word.START] + line * row[Word.PITCH] + x * row[Word.TEXEL]


def _read_texel(warp: Warp, row: Row, address: int | None, real: bool) -> list[int]:
    """The bits of four channels; missing ones are 0, 0 and 1, and all are 0 outside of the texture."""
    if address is None:
        return [0] * 4
    kind, channels = [*FORMATS][row[Word.FORMAT]], row[Word.CHANNELS]
    size = FORMATS[kind]
    memory = warp.launched.memory
    data = memory.data[address - memory.base : address - memory.base + channels * size].tobytes()
    found = [_channel(kind, data[k * size : (k + 1) * size]) for k in range(channels)]
    return (found + [0, 0, 0, 0x3F800000 if real else 1][len(found) :])[:4]


def _channel(kind: str, data: bytes) -> int:
    raw = int.from_bytes(data, "little")
    value = int.from_bytes(data, "little", signed=True)
    top = (1 << (8 * len(data) - 1)) - 1
    if kind == "f16":
        number = f32(np.frombuffer(data, np.float16)[0])
        if math.isnan(number):
            number = f32(-np.nan if raw >> 15 else np.nan)
    elif kind.startswith("unorm"):
        number = f32(raw) / f32(2 * top + 1)
    elif kind.startswith("snorm"):
        number = max(f32(value) / f32(top), f32(-1))
    else:
        return (value if kind[0] == "s" else raw) & 0xFFFFFFFF
    return int(np.array([number], f32).view(np.uint32)[0])


# surfaces -----------------------------------------------------------------------------------------------------------


def _surface(warp: Warp, ins: Instruction, place: Operand, size: int) -> Access:
    """The lanes' places on a surface; lanes outside with .zero have none."""
    try:
        request = surface_request(ins, place)
        rows = _rows(warp, place)
    except BadForm as error:
        raise _checked(ins, error) from None
    given = [warp.read(operand, 32).astype(np.uint32).view(np.int32) for operand in request.coordinates]
    memory = warp.launched.memory
    places: list[Place | None] = [None] * LANES
    for lane, row in enumerate(rows):
        if row is None:
            continue
        address = _surface_address(request, row, [int(axis[lane]) for axis in given], size)
        if address is None:
            continue
        if address % size:
            raise PptError(f"address {address:#x} is not aligned to the {size} bytes accessed")
        places[lane] = Place("global", address, memory.data, address - memory.base, address, 0)
    record_places(warp, places)
    return Access(places, size)


def _surface_address(request: SurfaceRequest, row: Row, given: list[int], size: int) -> int | None:
    layer = given.pop(0) if request.arrayed else 0
    limits = [row[Word.WIDTH] * row[Word.TEXEL] - size, row[Word.HEIGHT] - 1, row[Word.DEPTH] - 1]
    inside = all(0 <= i <= limit for i, limit in zip(given, limits, strict=False)) and 0 <= layer < row[Word.LAYERS]
    if not inside and request.border == "zero":
        return None
    if not inside and request.border == "trap":
        raise PptError(f"the surface access at {tuple(given)} is outside of its surface")
    x, y, z = (*(min(max(i, 0), limit) for i, limit in zip(given, limits, strict=False)), 0, 0)[:3]
    layer = min(max(layer, 0), row[Word.LAYERS] - 1)
    line = (layer * row[Word.DEPTH] + z) * row[Word.HEIGHT] + y
    return row[Word.START] + line * row[Word.PITCH] + x


def surface_load(warp: Warp, ins: Instruction) -> None:
    """suld.b"""
    kind, count = type_of(ins), vector_length(ins)
    access = _surface(warp, ins, ins.operands[1], count * width_of(kind) // 8)
    fill_elements(warp, ins.operands[0], kind, count, access)


def surface_store(warp: Warp, ins: Instruction) -> None:
    """sust.b"""
    kind, count = type_of(ins), vector_length(ins)
    access = _surface(warp, ins, ins.operands[0], count * width_of(kind) // 8)
    keep_elements(warp, ins.operands[1], kind, access)


def surface_reduction(warp: Warp, ins: Instruction) -> None:
    """sured.b"""
    kind = type_of(ins)
    access = _surface(warp, ins, ins.operands[0], width_of(kind) // 8)
    apply(warp, ins, access, kind, 1, ins.operands[1:])


def query(warp: Warp, ins: Instruction) -> None:
    """txq, suq"""
    try:
        word = query_word(ins)
        rows = _rows(warp, ins.operands[1])
    except BadForm as error:
        raise _checked(ins, error) from None
    found = [0 if row is None else row[word] if word >= 0 else 1 for row in rows]
    warp.write(ins.operands[0], np.array(found, np.uint64))


def is_type(warp: Warp, ins: Instruction) -> None:
    """istypep: handles of textures, samplers and surfaces are of one kind here."""
    handles = warp.read(ins.operands[1], 64).tolist()
    warp.write(ins.operands[0], np.array([0 <= h - TEXTURE_WINDOW < 1 << 32 for h in handles], np.uint64))


TEXTURES: dict[str, Execute] = {
    **dict.fromkeys(("tex", "tld4"), fetch),
    **dict.fromkeys(("txq", "suq"), query),
    "suld": surface_load,
    "sust": surface_store,
    "sured": surface_reduction,
    "istypep": is_type,
}
