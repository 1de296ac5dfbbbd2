"""Integer arithmetic and bit operations of the interpreter: exact, on values of the operation's width.

Each function takes and gives bits, [lanes] uint64 zero-extended from `width`. Division by zero gives all ones and the
remainder is then the dividend.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reference.interpreter.block import LANES, Bits
from reference.interpreter.warp import signed, truncate

ONE = np.uint64(1)


def per_lane(function: Callable[..., int], width: int, *operands: Bits) -> Bits:
    """`function` of Python integers lane by lane, for what is clearest that way; wraps to `width`."""
    mask = (1 << width) - 1
    lanes = zip(*(x.tolist() for x in operands), strict=True)
    return np.array([function(*lane) & mask for lane in lanes], np.uint64)


def as_int(value: int, width: int, is_signed: bool) -> int:
    """A register's bits as a Python integer."""
    value &= (1 << width) - 1
    return value - (1 << width) if is_signed and value >> (width - 1) else value


def on_integers(function: Callable[..., int], width: int, is_signed: bool, *operands: Bits) -> Bits:
    """`function` of the operands' values as `width`-bit integers, lane by lane; wraps to `width`."""
    return per_lane(lambda *lane: function(*(as_int(x, width, is_signed) for x in lane)), width, *operands)


def wrap(bits: Bits, width: int) -> Bits:
    """The lowest `width` bits."""
    return bits & np.uint64((1 << width) - 1)


def multiply(a: Bits, b: Bits, width: int, is_signed: bool, part: str) -> Bits:
    """The lower half ("lo"), upper half ("hi") or whole ("wide") of a product of `width`-bit values."""
    if part == "lo":
        return wrap(a * b, width)
    if width <= 32:
        x, y = (signed(a, width), signed(b, width)) if is_signed else (a, b)
        product = (x * y).view(np.uint64)
        return wrap(product, 2 * width) if part == "wide" else wrap(product >> np.uint64(width), width)
    return per_lane(lambda x, y: as_int(x, 64, is_signed) * as_int(y, 64, is_signed) >> 64, 64, a, b)


def multiply24(a: Bits, b: Bits, is_signed: bool, part: str) -> Bits:
    """The product of the lowest 24 bits: its lower 32 bits ("lo"), or bits 16 to 47 ("hi")."""
    shift = 16 if part == "hi" else 0
    return per_lane(lambda x, y: as_int(x, 24, is_signed) * as_int(y, 24, is_signed) >> shift, 32, a, b)


def divide(a: Bits, b: Bits, width: int, is_signed: bool) -> Bits:
    """The quotient, rounded toward zero."""
    return per_lane(lambda x, y: _divide(as_int(x, width, is_signed), as_int(y, width, is_signed))[0], width, a, b)


def remainder(a: Bits, b: Bits, width: int, is_signed: bool) -> Bits:
    """The remainder, with the sign of the dividend."""
    return per_lane(lambda x, y: _divide(as_int(x, width, is_signed), as_int(y, width, is_signed))[1], width, a, b)


def _divide(a: int, b: int) -> tuple[int, int]:
    if b == 0:
        return -1, a
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient, a - quotient * b


def shift_left(a: Bits, amount: Bits, width: int) -> Bits:
    """Shifts by more than the width give 0."""
    inside = amount < np.uint64(width)
    return np.where(inside, wrap(a << np.where(inside, amount, 0).astype(np.uint64), width), np.uint64(0))


def shift_right(a: Bits, amount: Bits, width: int, is_signed: bool) -> Bits:
    """Shifts by more than the width give 0, or copies of the sign."""
    if is_signed:
        return truncate(signed(a, width) >> np.minimum(amount, np.uint64(width - 1)).astype(np.int64), width)
    inside = amount < np.uint64(width)
    return np.where(inside, a >> np.where(inside, amount, 0).astype(np.uint64), np.uint64(0))


def funnel_shift(a: Bits, b: Bits, amount: Bits, left: bool, wraps: bool) -> Bits:
    """shf: 32 bits of {b, a} shifted; the amount is taken modulo 32 ("wrap") or clamped to 32 ("clamp")."""

    def lane(x: int, y: int, n: int) -> int:
        n = n & 31 if wraps else min(n, 32)
        both = y << 32 | x
        return both << n >> 32 if left else both >> n

    return per_lane(lane, 32, a, b, amount)


def population_count(a: Bits, width: int) -> Bits:
    """Number of one bits."""
    return per_lane(int.bit_count, 32, wrap(a, width))


def leading_zeros(a: Bits, width: int) -> Bits:
    """Zeros above the highest one bit."""
    return per_lane(lambda x: width - x.bit_length(), 32, wrap(a, width))


def reverse(a: Bits, width: int) -> Bits:
    """Bits in opposite order."""
    return per_lane(lambda x: int(f"{x:0{width}b}"[::-1], 2), width, wrap(a, width))


def find_highest(a: Bits, width: int, is_signed: bool, shift_amount: bool) -> Bits:
    """bfind: the place of the highest bit that differs from the sign, or the shift that brings it up; -1 for none."""

    def lane(x: int) -> int:
        value = as_int(x, width, is_signed)
        place = (~value if value < 0 else value).bit_length() - 1
        return -1 if place < 0 else width - 1 - place if shift_amount else place

    return per_lane(lane, 32, wrap(a, width))


def extract(a: Bits, start: Bits, length: Bits, width: int, is_signed: bool) -> Bits:
    """bfe: `length` bits from `start` (both modulo 256); beyond the top, copies of the field's highest bit inside."""

    def lane(x: int, at: int, count: int) -> int:
        at, count = at & 0xFF, count & 0xFF
        if count == 0:
            return 0
        top = min(at + count - 1, width - 1)
        sign = is_signed and (x >> top) & 1
        field = (x >> at) & ((1 << count) - 1)
        inside = max(0, min(count, width - at))
        return field | (-1 << inside) if sign else field

    return per_lane(lane, width, wrap(a, width), start, length)


def insert(a: Bits, b: Bits, start: Bits, length: Bits, width: int) -> Bits:
    """bfi: the lowest `length` bits of `a` put into `b` at `start` (both modulo 256)."""

    def lane(x: int, y: int, at: int, count: int) -> int:
        at, count = at & 0xFF, count & 0xFF
        field = ((1 << count) - 1) << at
        return (y & ~field) | ((x << at) & field)

    return per_lane(lane, width, a, b, start, length)


def permute(a: Bits, b: Bits, selector: Bits, mode: str) -> Bits:
    """prmt: four bytes picked from {b, a}; bit 3 of a nibble copies the byte's sign instead."""

    def lane(x: int, y: int, s: int) -> int:
        source = [(y << 32 | x) >> (8 * i) & 0xFF for i in range(8)]
        picks = _picks(mode, s)
        value = 0
        for place, pick in enumerate(picks):
            byte = source[pick & 7]
            value |= ((0xFF if byte & 0x80 else 0) if pick & 8 else byte) << (8 * place)
        return value

    return per_lane(lane, 32, a, b, selector)


def _picks(mode: str, selector: int) -> list[int]:
    n = selector & 3
    modes = {
        "f4e": [n, n + 1, n + 2, n + 3],
        "b4e": [n, (n - 1) & 7, (n - 2) & 7, (n - 3) & 7],
        "rc8": [n, n, n, n],
        "ecl": [max(i, n) for i in range(4)],
        "ecr": [min(i, n) for i in range(4)],
        "rc16": [(2 * n) & 2, ((2 * n) & 2) + 1] * 2,
    }
    return modes.get(mode) or [(selector >> (4 * i)) & 15 for i in range(4)]


def logic3(a: Bits, b: Bits, c: Bits, table: int) -> Bits:
    """lop3: bit (4a + 2b + c) of `table`, for each bit."""
    result = np.zeros(LANES, np.uint64)
    full = np.uint64(0xFFFFFFFF)
    for index in range(8):
        if table >> index & 1:
            terms = [x if index >> shift & 1 else ~x for x, shift in ((a, 2), (b, 1), (c, 0))]
            result |= terms[0] & terms[1] & terms[2] & full
    return result


def bit_mask(start: Bits, length: Bits, wraps: bool) -> Bits:
    """bmsk: `length` ones from `start`; both modulo 32 ("wrap") or clamped ("clamp")."""

    def lane(at: int, count: int) -> int:
        at, count = (at & 31, count & 31) if wraps else (min(at, 32), min(count, 32))
        return ((1 << count) - 1) << at

    return per_lane(lane, 32, start, length)


def sign_extend_at(a: Bits, count: Bits, is_signed: bool, wraps: bool) -> Bits:
    """szext: the lowest `count` bits, sign- or zero-extended."""

    def lane(x: int, n: int) -> int:
        n = n & 31 if wraps else min(n, 32)
        return as_int(x, n, is_signed) if n else 0

    return per_lane(lane, 32, a, count)


def find_nth(mask: Bits, base: Bits, offset: Bits) -> Bits:
    """fns: the place of the n-th one bit from `base` upwards (n > 0) or downwards; -1 when there is none."""

    def lane(bits: int, at: int, count: int) -> int:
        n = as_int(count, 32, True)
        if n == 0:
            return at if at < 32 and bits >> at & 1 else -1
        places = range(at, 32) if n > 0 else range(min(at, 31), -1, -1)
        found = [p for p in places if bits >> p & 1]
        return found[abs(n) - 1] if len(found) >= abs(n) else -1

    return per_lane(lane, 32, mask, base, offset)


def dot_product(a: Bits, b: Bits, c: Bits, signs: tuple[bool, bool], pairs: str) -> Bits:
    """dp4a (pairs ""), or dp2a with the lower ("lo") or upper ("hi") bytes of b."""

    def lane(x: int, y: int, z: int) -> int:
        if not pairs:
            terms = [(x >> 8 * i, 8, y >> 8 * i) for i in range(4)]
        else:
            start = 0 if pairs == "lo" else 16
            terms = [(x >> 16 * i, 16, y >> start + 8 * i) for i in range(2)]
        return z + sum(as_int(p, width, signs[0]) * as_int(q, 8, signs[1]) for p, width, q in terms)

    return per_lane(lane, 32, a, b, c)
