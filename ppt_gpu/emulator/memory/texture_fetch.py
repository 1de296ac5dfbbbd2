"""Texture fetches of a warp and the addresses of surface accesses, compiled, for generated code to call.

Each lane has its own handle, coordinates and taps. Arithmetic is in f32 in the order of CUDA's Programming Guide
("Texture Fetching"): weights of 8 fractional bits, taps added up with x fastest.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ppt_gpu.common.compiled import entry, merged
from ppt_gpu.workload.texture import HANDLE_STEP, TEXTURE_WINDOW, WORDS

F = np.float32
_HALF, _ONE, _NONE, _BYTE = F(0.5), F(1), F(0), F(256)
_FAR = F(2.0**30)
CLAMP, WRAP, BORDER, MIRROR = range(4)


@merged
def _row(handle: Any, textures: Any) -> Any:
    """Where the words of the texture that `handle` means begin in the table, -1 for no texture."""
    number = (handle - TEXTURE_WINDOW) // HANDLE_STEP
    if number < 0 or number >= textures or handle % HANDLE_STEP != 0:
        return np.int64(-1)
    return number * WORDS


@merged
def _index(i: Any, extent: Any, mode: Any) -> Any:
    """The texel that index `i` means, -1 for none."""
    if mode == WRAP:
        return i % extent
    if mode == BORDER and (i < 0 or i >= extent):
        return np.int64(-1)
    return min(max(i, np.int64(0)), extent - 1)


@merged
def _texel_coordinate(x: Any, extent: Any, mode: Any, normalized: Any) -> Any:
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
def _half(bits: Any) -> Any:
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
def _channel(memory: Any, at: Any, code: Any, out: Any, out_f: Any, place: Any) -> None:
    """Read one channel of format `code` into out[place]."""
    size = 4 if code in (0, 6, 7) else 2 if code in (1, 4, 5, 10, 11) else 1
    raw = np.int64(0)
    for k in range(size):
        raw |= np.int64(memory[at + k]) << (8 * k)
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


def _fetch(
    table: Any, textures: Any, handles: Any, mask: Any, request: Any, given: Any, given_f: Any, memory: Any,
    base: Any, out: Any, out_f: Any, address: Any,
) -> Any:  # fmt: skip
    """tex and tld4 of the lanes in `mask`. given: [7, 32] coordinates, then offsets; out: [8, 32], 4 rows of results.

    `memory` starts at virtual address `base`. Returns the lanes that read a texel, whose first address is in
    `address` [32]; above 32 bits the lanes whose handle is none.
    """
    axes, arrayed, cube = request & 3, request >> 2 & 1, request >> 3 & 1
    floats, offset, component = request >> 4 & 1, request >> 5 & 1, (request >> 6) - 1
    found = np.int64(0)
    for lane in range(32):
        if not mask >> lane & 1:
            continue
        row = _row(handles[lane], textures)
        if row < 0:
            found |= np.int64(1) << (32 + lane)
            continue
        layer = np.int64(given[lane]) if arrayed else np.int64(0)
        first = 1 if arrayed else 0
        normalized = table[row + 13] != 0
        x = y = z = _NONE
        if floats:
            x = given_f[first * 32 + lane]
            y = given_f[(first + 1) * 32 + lane]
            z = given_f[(first + 2) * 32 + lane]
        if cube:
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
            if big != _NONE:
                x, y = (s / big + _ONE) * _HALF, (t / big + _ONE) * _HALF
            else:
                x = y = _NONE
            layer = 6 * layer + face
            normalized = True
        layer = min(max(layer, np.int64(0)), table[row + 4] - 1)
        linear = floats and (component >= 0 or (table[row + 9] == 1 and table[row + 8] in (0, 1, 8, 9, 10, 11)))
        i0 = i1 = i2 = np.int64(0)
        a0 = a1 = a2 = _NONE
        for axis in range(axes):
            extent = table[row + 1 + axis]
            mode = CLAMP if cube else table[row + 10 + axis]
            fraction = _NONE
            if floats:
                value = x if axis == 0 else y if axis == 1 else z
                value = _texel_coordinate(value, extent, mode, normalized)
                if linear:
                    value = value - _HALF
                whole = np.floor(value)
                fraction = np.floor((value - whole) * _BYTE + _HALF) / _BYTE
                i = np.int64(whole)
            else:
                i = np.int64(given[(first + axis) * 32 + lane])
            if offset:
                i += np.int64(given[(4 + axis) * 32 + lane])
            if axis == 0:
                i0, a0 = i, fraction
            elif axis == 1:
                i1, a1 = i, fraction
            else:
                i2, a2 = i, fraction
        channels, code = table[row + 7], table[row + 8]
        size = table[row + 6] // channels
        one = code in (0, 1, 8, 9, 10, 11)
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
                    i = np.int64(-1)
                if i < 0:
                    inside = False
                step = table[row + 6]
                if axis == 1:
                    step = table[row + 5]
                elif axis == 2:
                    step = table[row + 5] * table[row + 2]
                place += i * step
            place += layer * table[row + 3] * table[row + 2] * table[row + 5]
            if inside and not found >> lane & 1:
                found |= np.int64(1) << lane
                address[lane] = place
            if component >= 0:  # gathered counter-clockwise from the lower left (PTX ISA, tld4)
                target = 3 if tap == 0 else 2 if tap == 1 else 0 if tap == 2 else 1
                if inside and component < channels:
                    _channel(memory, place - base + component * size, code, out, out_f, target * 32 + lane)
                continue
            for c in range(4):
                if c < channels and inside:
                    _channel(memory, place - base + c * size, code, out, out_f, (4 + c) * 32 + lane)
                elif c == 3 and inside:
                    if one:
                        out_f[(4 + c) * 32 + lane] = _ONE
                    else:
                        out[(4 + c) * 32 + lane] = 1
                else:
                    out[(4 + c) * 32 + lane] = 0
                if linear:
                    out_f[c * 32 + lane] = out_f[c * 32 + lane] + weight * out_f[(4 + c) * 32 + lane]
                else:
                    out[c * 32 + lane] = out[(4 + c) * 32 + lane]
    return found


def _place(
    table: Any, textures: Any, handles: Any, mask: Any, request: Any, given: Any, size: Any, address: Any
) -> Any:
    """The addresses of the `size` bytes that surface accesses mean. given: [4, 32].

    Returns the lanes that access something; above 32 bits the lanes whose handle is none, and with their lower bit
    also set those that trap.
    """
    axes, arrayed, border = request & 3, request >> 2 & 1, request >> 3
    found = np.int64(0)
    for lane in range(32):
        if not mask >> lane & 1:
            continue
        row = _row(handles[lane], textures)
        if row < 0:
            found |= np.int64(1) << (32 + lane)
            continue
        layer = np.int64(given[lane]) if arrayed else np.int64(0)
        place, inside = table[row], True
        for axis in range(axes + arrayed):
            if arrayed and axis == axes:
                i, extent = layer, table[row + 4]
                step = table[row + 3] * table[row + 2] * table[row + 5]
            else:
                i, extent = np.int64(given[(axis + arrayed) * 32 + lane]), table[row + 1 + axis]
                step = table[row + 6]
                if axis == 1:
                    step = table[row + 5]
                elif axis == 2:
                    step = table[row + 5] * table[row + 2]
            room = extent - 1
            if axis == 0:  # in bytes
                step = np.int64(1)
                room = extent * table[row + 6] - size
            if i < 0 or i > room:
                inside = False
                i = min(max(i, np.int64(0)), room)
            place += i * step
        if inside or border == 1:
            found |= np.int64(1) << lane
            address[lane] = place
        elif border == 0:
            found |= np.int64(1) << lane | np.int64(1) << (32 + lane)
    return found


def _query(table: Any, textures: Any, handles: Any, mask: Any, word: Any, out: Any) -> Any:
    """A word of each lane's texture; word -1: 1 (levels, samples). Returns the lanes whose handle is none."""
    bad = np.int64(0)
    for lane in range(32):
        if not mask >> lane & 1:
            continue
        row = _row(handles[lane], textures)
        if row < 0:
            bad |= np.int64(1) << (32 + lane)
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
