"""The text of printf in a kernel: C's conversions, the arguments taken from memory one behind the other."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from ppt_gpu.common.errors import PptError

_CONVERSION = re.compile(r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?(?P<length>hh|h|ll|l|j|z|t|L)?(?P<kind>.)", re.S)  # fmt: skip  # noqa: E501
_WIDE = ("l", "ll", "j", "z", "t")
_WIDEST = 10_000  # characters that a width may ask for


def format_text(pattern: str, read: Callable[[int, int], int], string: Callable[[int], str]) -> tuple[str, int]:
    """(text, number of arguments). `read(offset, size)` gives the bytes of an argument, `string` those of %s.

    Arguments are aligned to their size, 4 or 8 bytes; floats come as doubles. Raises PptError for an unknown
    conversion.
    """
    arguments = _Arguments(read)
    pieces, end = [], 0
    for match in _CONVERSION.finditer(pattern):
        pieces += [pattern[end : match.start()], _one(match, arguments, string)]
        end = match.end()
    return "".join([*pieces, pattern[end:]]), arguments.count


class _Arguments:
    def __init__(self, read: Callable[[int, int], int]) -> None:
        self.read = read
        self.offset = 0
        self.count = 0

    def next(self, size: int, signed: bool = False) -> int:
        at = -(-self.offset // size) * size
        self.offset = at + size
        self.count += 1
        value = self.read(at, size)
        return value - (1 << 8 * size) if signed and value >> (8 * size - 1) else value


def _one(match: re.Match[str], arguments: _Arguments, string: Callable[[int], str]) -> str:
    kind, flags = match["kind"], match["flags"]
    if kind == "%":
        return "%"
    width = _number(match["width"], arguments)
    precision = _number(match["precision"], arguments) if match["precision"] is not None else None
    if width is not None and width < 0:
        width, flags = -width, flags + "-"
    if precision is not None and precision < 0:
        precision = None
    if max(width or 0, precision or 0) > _WIDEST:
        raise PptError(f"printf: '{match[0]}' asks for more than {_WIDEST} characters")
    size = 8 if match["length"] in _WIDE else 4
    if kind in "di":
        body = _integer(arguments.next(size, signed=True), "d", flags, precision)
    elif kind in "uoxX":
        body = _integer(arguments.next(size), kind, flags, precision)
    elif kind in "fFeEgGaA":
        value = struct.unpack("<d", arguments.next(8).to_bytes(8, "little"))[0]
        body = _real(value, kind, flags, precision)
    elif kind == "c":
        body = chr(arguments.next(4) & 0xFF)
    elif kind == "s":
        body = string(arguments.next(8))[:precision]
    elif kind == "p":
        body = f"{arguments.next(8):#x}"
    else:
        raise PptError(f"printf: unknown conversion '{match[0]}'")
    return _padded(body, width or 0, flags, kind, precision)


def _number(text: str | None, arguments: _Arguments) -> int | None:
    """A width or precision; an empty precision is 0."""
    if text is None:
        return None
    return arguments.next(4, signed=True) if text == "*" else int(text or 0)


def _integer(value: int, kind: str, flags: str, precision: int | None) -> str:
    digits = format(abs(value), "d" if kind == "u" else kind)
    if precision is not None:
        digits = "" if precision == 0 and value == 0 else digits.rjust(precision, "0")
    if "#" in flags and value:
        digits = {"x": "0x", "X": "0X", "o": "0"}.get(kind, "") + digits
    return _sign(value < 0, flags if kind == "d" else "") + digits


def _sign(negative: bool, flags: str) -> str:
    return "-" if negative else "+" if "+" in flags else " " if " " in flags else ""


def _real(value: float, kind: str, flags: str, precision: int | None) -> str:
    negative = struct.pack(">d", value)[0] >> 7 == 1
    if value != value or value in (float("inf"), float("-inf")):
        text = "nan" if value != value else "inf"
    elif kind in "aA":
        text = _hexadecimal(abs(value), precision)
        if "#" in flags and "." not in text:
            text = text.replace("p", ".p")
    else:
        alternate = "#" if "#" in flags else ""
        text = format(abs(value), f"{alternate}.{6 if precision is None else precision}{kind.lower()}")
    return _sign(negative, flags) + (text.upper() if kind.isupper() else text)


def _hexadecimal(value: float, precision: int | None) -> str:
    text = value.hex()
    if precision is None:  # without trailing zeros
        mantissa, _, exponent = text.partition("p")
        return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}p{exponent}"
    mantissa, _, exponent = text[2:].partition("p")
    whole, _, fraction = mantissa.partition(".")
    scaled = int(whole + fraction.ljust(13, "0"), 16)
    drop = 4 * (13 - min(precision, 13))
    kept = (scaled + (1 << drop >> 1)) >> drop if drop else scaled
    if drop and scaled & ((1 << drop) - 1) == 1 << (drop - 1):
        kept &= ~1
    digits = f"{kept:x}".rjust(min(precision, 13) + 1, "0")
    cut = len(digits) - min(precision, 13)
    tail = digits[cut:].ljust(precision, "0")
    return f"0x{digits[:cut]}{'.' if tail else ''}{tail}p{exponent}"


def _padded(body: str, width: int, flags: str, kind: str, precision: int | None) -> str:
    if "-" in flags:
        return body.ljust(width)
    numeric = kind in "fFeEgGaA" or (kind in "diuoxX" and precision is None)
    if "0" in flags and numeric and body.lower().lstrip("+- ") not in ("nan", "inf"):
        head = body[:1] if body[:1] in "+- " else ""
        rest = body[len(head) :]
        if rest[:2].lower() == "0x":
            head, rest = head + rest[:2], rest[2:]
        return head + rest.rjust(width - len(head), "0")
    return body.rjust(width)
