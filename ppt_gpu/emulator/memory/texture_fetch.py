"""Texture fetches of a warp and the addresses of surface accesses, compiled, for generated code to call.

Each lane has its own handle, coordinates and taps. Arithmetic is in f32 in the order of CUDA's Programming Guide
("Texture Fetching"): weights of 8 fractional bits, taps added up with x fastest.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import entry, merged
from ppt_gpu.common.records import Words
from ppt_gpu.workload.texture import HANDLE_STEP, TEXTURE_WINDOW, WORDS

Ints = NDArray[np.int32]
Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
F: Any = np.float32
_HALF, _ONE, _NONE, _BYTE = F(0.5), F(1), F(0), F(256)
_FAR = F(2.0**30)
CLAMP, WRAP, BORDER, MIRROR = range(4)
#: formats of channels whose values are floats
OF_FRACTIONS = (0, 1, 8, 9, 10, 11)


@merged
def _row(handle: int, textures: int) -> int:
    """Where the words of the texture that `handle` means begin in the table, -1 for no texture."""
    number = (handle - TEXTURE_WINDOW) // HANDLE_STEP
    if number < 0 or number >= textures or handle % HANDLE_STEP != 0:
        return int64(-1)
    return number * WORDS


@merged
def _index(i: int, extent: int, mode: int) -> int:
    """The texel that index `i` means, -1 for none."""
    if mode == WRAP:
        return i % extent
    if mode == BORDER and (i < 0 or i >= extent):
        return int64(-1)
    return min(max(i, int64(0)), extent - 1)


@merged
def _texel_coordinate(x: np.float32, extent: int, mode: int, normalized: bool) -> np.float32:
    """A coordinate in texels; what is no number is 0."""
    if x != x:
        return _NONE
    if normalized:
        if mode == WRAP:
            x = x - np.floor(x)
        elif mode == MIRROR:
            whole = np.floor(x)
            x = x - whole
            if np.floor(whole * _HALF) * F(2) != whole:
                x = _ONE - x
        x = x * F(extent)
    if x != x:
        return _NONE
    return min(max(x, -_FAR), _FAR)


@merged
def _half(bits: int) -> np.float32:
    """The value of an f16."""
    exponent, fraction = bits >> 10 & 31, bits & 0x3FF
    if exponent == 31:
        value = F(np.inf) if fraction == 0 else F(np.nan)
    elif exponent == 0:
        value = F(fraction) * F(2.0**-24)
    else:
        value = F(fraction + 1024) * F(2.0 ** (exponent - 25))
    return -value if bits >> 15 else value


@merged
def _channel(memory: Bytes, at: int, code: int, out: Ints, out_f: Floats, place: int) -> None:
    """Read one channel of format `code` into out[place]."""
    size = 4 if code in (0, 6, 7) else 2 if code in (1, 4, 5, 10, 11) else 1
    raw = int64(0)
    for k in range(size):
        raw |= int64(memory[at + k]) << (8 * k)
    signed = raw - ((raw >> (8 * size - 1)) << (8 * size))
    if code == 1:
        out_f[place] = _half(raw)
    elif code == 8 or code == 10:
        out_f[place] = F(raw) / F((1 << (8 * size)) - 1)
    elif code == 9 or code == 11:
        out_f[place] = max(F(signed) / F((1 << (8 * size - 1)) - 1), -_ONE)
    elif code in (3, 5):
        out[place] = signed
    else:
        out[place] = np.int32(raw)


@merged
def _on_cube(x: np.float32, y: np.float32, z: np.float32) -> tuple[int, np.float32, np.float32]:
    """(face of a cube that a direction meets, coordinates in it)"""
    big = max(abs(x), max(abs(y), abs(z)))
    if abs(x) == big:
        face = 0 if x >= _NONE else 1
        s, t = (-z if x >= _NONE else z), -y
    elif abs(y) == big:
        face = 2 if y >= _NONE else 3
        s, t = x, (z if y >= _NONE else -z)
    else:
        face = 4 if z >= _NONE else 5
        s, t = (x if z >= _NONE else -x), -y
    if big == _NONE:
        return face, _NONE, _NONE
    return face, (s / big + _ONE) * _HALF, (t / big + _ONE) * _HALF


@merged
def _between_texels(
    value: np.float32, extent: int, mode: int, normalized: bool, linear: bool
) -> tuple[int, np.float32]:
    """(texel before a coordinate, how far behind that it is, in 1/256)"""
    value = _texel_coordinate(value, extent, mode, normalized)
    if linear:
        value = value - _HALF
    whole = np.floor(value)
    return int64(whole), np.floor((value - whole) * _BYTE + _HALF) / _BYTE


@merged
def _step(table: Words, row: int, axis: int) -> int:
    """Bytes from one texel to the next along an axis."""
    if axis == 0:
        return table[row + 6]
    return table[row + 5] * table[row + 2] if axis == 2 else table[row + 5]


@merged
def _show(
    memory: Bytes, at: int, channels: int, size: int, code: int, inside: bool, out: Ints, out_f: Floats, lane: int
) -> None:
    """The four channels of a texel into rows 4 to 7 of `out`: 0 where it has none, but 1 in the last."""
    for c in range(4):
        target = (4 + c) * 32 + lane
        if c < channels and inside:
            _channel(memory, at + c * size, code, out, out_f, target)
        elif c == 3 and inside and code in OF_FRACTIONS:
            out_f[target] = _ONE
        else:
            out[target] = 1 if c == 3 and inside else 0


def _fetch(
    table: Words, textures: int, handles: Words, mask: int, request: int, given: Ints, given_f: Floats, memory: Bytes,
    base: int, out: Ints, out_f: Floats, address: Words,
) -> int:  # fmt: skip
    """tex and tld4 of the lanes in `mask`. given: [7, 32] coordinates, then offsets; out: [8, 32], 4 rows of results.

    `memory` starts at virtual address `base`. Returns the lanes that read a texel, whose first address is in
    `address` [32]; above 32 bits the lanes whose handle is none.
    """
    axes, arrayed, cube = request & 3, request >> 2 & 1, request >> 3 & 1
    floats, offset, component = request >> 4 & 1, request >> 5 & 1, (request >> 6) - 1
    found = int64(0)
    for lane in range(32):
        if not mask >> lane & 1:
            continue
        row = _row(handles[lane], textures)
        if row < 0:
            found |= int64(1) << (32 + lane)
            continue
        layer = int64(given[lane]) if arrayed else int64(0)
        first = 1 if arrayed else 0
        normalized = table[row + 13] != 0
        x = y = z = _NONE
        if floats:
            x = given_f[first * 32 + lane]
            y = given_f[(first + 1) * 32 + lane]
            z = given_f[(first + 2) * 32 + lane]
        if cube:
            face, x, y = _on_cube(x, y, z)
            layer = 6 * layer + face
            normalized = True
        layer = min(max(layer, int64(0)), table[row + 4] - 1)
        linear = floats and (component >= 0 or (table[row + 9] == 1 and table[row + 8] in OF_FRACTIONS))
        i0 = i1 = i2 = int64(0)
        a0 = a1 = a2 = _NONE
        for axis in range(axes):
            fraction = _NONE
            if floats:
                value = x if axis == 0 else y if axis == 1 else z
                mode = CLAMP if cube else table[row + 10 + axis]
                i, fraction = _between_texels(value, table[row + 1 + axis], mode, normalized, linear)
            else:
                i = int64(given[(first + axis) * 32 + lane])
            if offset:
                i += int64(given[(4 + axis) * 32 + lane])
            if axis == 0:
                i0, a0 = i, fraction
            elif axis == 1:
                i1, a1 = i, fraction
            else:
                i2, a2 = i, fraction
        channels, code = table[row + 7], table[row + 8]
        size = table[row + 6] // channels
        for c in range(4):
            out[c * 32 + lane] = 0
        taps = 1 << axes if linear else 1
        for tap in range(taps):
            place = table[row]
            weight = _ONE
            inside = True
            for axis in range(axes):
                up = tap >> axis & 1
                extent = table[row + 1 + axis]
                i = (i0 if axis == 0 else i1 if axis == 1 else i2) + up
                a = a0 if axis == 0 else a1 if axis == 1 else a2
                weight = weight * (a if up else _ONE - a)
                if floats:
                    mode = CLAMP if cube else table[row + 10 + axis]
                    if not (normalized or mode == BORDER):
                        mode = CLAMP
                    i = _index(i, extent, mode)
                elif i < 0 or i >= extent:
                    i = int64(-1)
                if i < 0:
                    inside = False
                place += i * _step(table, row, axis)
            place += layer * table[row + 3] * table[row + 2] * table[row + 5]
            if inside and not found >> lane & 1:
                found |= int64(1) << lane
                address[lane] = place
            if component >= 0:  # gathered counter-clockwise from the lower left (PTX ISA, tld4)
                target = 3 if tap == 0 else 2 if tap == 1 else 0 if tap == 2 else 1
                if inside and component < channels:
                    _channel(memory, place - base + component * size, code, out, out_f, target * 32 + lane)
                continue
            _show(memory, place - base, channels, size, code, inside, out, out_f, lane)
            for c in range(4):
                if linear:
                    out_f[c * 32 + lane] = out_f[c * 32 + lane] + weight * out_f[(4 + c) * 32 + lane]
                else:
                    out[c * 32 + lane] = out[(4 + c) * 32 + lane]
    return found


def _place(
    table: Words, textures: int, handles: Words, mask: int, request: int, given: Ints, size: int, address: Words
) -> int:
    """The addresses of the `size` bytes that surface accesses mean. given: [4, 32].

    Returns the lanes that access something; above 32 bits the lanes whose handle is none, and with their lower bit
    also set those that trap.
    """
    axes, arrayed, border = request & 3, request >> 2 & 1, request >> 3
    found = int64(0)
    for lane in range(32):
        if not mask >> lane & 1:
            continue
        row = _row(handles[lane], textures)
        if row < 0:
            found |= int64(1) << (32 + lane)
            continue
        layer = int64(given[lane]) if arrayed else int64(0)
        place, inside = table[row], True
        for axis in range(axes + arrayed):
            if arrayed and axis == axes:
                i, extent = layer, table[row + 4]
                step = table[row + 3] * table[row + 2] * table[row + 5]
            else:
                i, extent = int64(given[(axis + arrayed) * 32 + lane]), table[row + 1 + axis]
                step = _step(table, row, axis)
            room = extent - 1
            if axis == 0:  # in bytes
                step = int64(1)
                room = extent * table[row + 6] - size
            if i < 0 or i > room:
                inside = False
                i = min(max(i, int64(0)), room)
            place += i * step
        if inside or border == 1:
            found |= int64(1) << lane
            address[lane] = place
        elif border == 0:
            found |= int64(1) << lane | int64(1) << (32 + lane)
    return found


def _query(table: Words, textures: int, handles: Words, mask: int, word: int, out: Ints) -> int:
    """A word of each lane's texture; word -1: 1 (levels, samples). Returns the lanes whose handle is none."""
    bad = int64(0)
    for lane in range(32):
        if not mask >> lane & 1:
            continue
        row = _row(handles[lane], textures)
        if row < 0:
            bad |= int64(1) << (32 + lane)
        else:
            out[lane] = table[row + word] if word >= 0 else 1
    return bad


@lru_cache(maxsize=4)
def compiled_address(name: str) -> int:
    """The machine address of "fetch", "place" or "query", compiled on first use and kept on disk."""
    from numba import types

    words, ints = types.CPointer(types.int64), types.CPointer(types.int32)
    floats, raw = types.CPointer(types.float32), types.CPointer(types.uint8)
    i64 = types.int64
    signatures: dict[str, tuple[Any, Any]] = {
        "fetch": (_fetch, i64(words, i64, words, i64, i64, ints, floats, raw, i64, ints, floats, words)),
        "place": (_place, i64(words, i64, words, i64, i64, ints, i64, words)),
        "query": (_query, i64(words, i64, words, i64, i64, ints)),
    }
    function, signature = signatures[name]
    made = entry(function, no_cfunc_wrapper=False)
    made.compile(signature)
    found = made.overloads[signature.args]
    _KEPT.append(made)
    return int(found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name))


_KEPT: list[Any] = []
