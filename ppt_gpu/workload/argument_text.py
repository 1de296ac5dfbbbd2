"""The text forms of arguments and buffers, the same on the command line and in a workload's TOML.

    scalar   i32=1024   f32=2.5   u64=0x10
             1024  2.5  0x10  a number takes the type of its parameter (not in a struct)
             i32=round  i32=64-2*round   an integer that changes from round to round of a loop: round is 0, 1, 2, ...
    buffer   TYPE[COUNT]           zeros
             TYPE[COUNT]=INIT      zeros, iota, random, random:SEED, random(LOW,HIGH):SEED, const:VALUE, npy:FILE,
                           ring:STRIDE (element i is i + STRIDE modulo COUNT: what a pointer chase follows)
             TYPE[COUNT]:copied    the host copied it just before the launch (any INIT may follow)
    struct   struct(f32=1.5, i32=2, ...)   a parameter passed by value; members at their natural alignment,
             structs and tensor maps among them
    name     data   data+4096      a buffer defined elsewhere, plus bytes
    tensor   tensormap(data, dims=1024x512, box=64x64, type=f16, ...)   see `ppt_gpu.workload.value_text`

COUNT may be a product ("1024*1024"), and empty with npy: the file's own count.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.workload.literals import literal
from ppt_gpu.workload.npy_file import npy_elements
from ppt_gpu.workload.scalars import check_scalar, integer_range, is_float, parse_scalar, scalar_type
from ppt_gpu.workload.value_text import parse_value
from ppt_gpu.workload.workload import Argument, Buffer

INIT_FORMS = ("zeros", "iota", "random", "const", "ring", "npy")

_BUFFER = re.compile(r"\s*(?P<type>\w+)\s*\[(?P<count>[^\]]*)\](?P<option>\s*:\s*\w+)?\s*(?:=(?P<init>.*))?", re.S)
_RANDOM = re.compile(r"random\s*(?:\((?P<low>[^,()]+),(?P<high>[^,()]+)\))?\s*(?::\s*(?P<seed>\d+))?")


def parse_buffer(text: str, name: str, folder: Path | None = None) -> Buffer:
    """A buffer from its text form. File names are relative to `folder`. PptError when it is none."""
    match = _BUFFER.fullmatch(text)
    if not match:
        raise PptError(f"'{text}' is not a buffer", hint="write TYPE[COUNT]=INIT, such as f32[1048576]=random")
    element = scalar_type(match["type"])
    option = (match["option"] or "").strip(" :")
    if option not in ("", "copied"):
        raise PptError(f"unknown buffer option '{option}'", hint="the only option is ':copied'")
    init_text = "zeros" if match["init"] is None else match["init"].strip()
    counted_by_file = init_text.startswith("npy:") and not match["count"].strip()
    count = 0 if counted_by_file else parse_count(match["count"])
    return with_init(Buffer(name, element, count, copied=option == "copied"), init_text, folder)


def parse_count(text: str) -> int:
    """A positive number of elements, or a product of them ("1024*1024"). PptError otherwise."""
    count = 1
    for factor in text.split("*"):
        digits = factor.strip().replace("_", "")
        if not (digits.isascii() and digits.isdigit()):
            raise PptError(f"'{text}' is not a count", hint="a count such as 1048576 or 1024*1024")
        count *= int(digits)
    if not 1 <= count < 1 << 48:
        raise PptError(f"a buffer of {count} elements is out of range", hint="at least 1, below 2^48")
    return count


def with_init(buffer: Buffer, text: str, folder: Path | None = None) -> Buffer:
    """`buffer` with the initial content that `text` names. PptError for an unknown form or a bad value."""
    form = re.split(r"[:(]", text, maxsplit=1)[0].strip()
    if form not in INIT_FORMS:
        file = f"for a file: npy:{text}" if text.endswith(".npy") else None
        raise PptError(f"unknown initial content '{text}'", hint=file or did_you_mean(form, INIT_FORMS))
    if form == "random":
        return _with_random(buffer, text)
    if form == "const":
        value = parse_scalar(buffer.type, text.partition(":")[2])
        return replace(buffer, init=f"const:{value!r}")
    if form == "ring":
        return _with_ring(buffer, text)
    if form == "npy":
        return _with_file(buffer, text.partition(":")[2].strip(), folder)
    if text != form:
        raise PptError(f"'{form}' takes no value, found '{text}'")
    return replace(buffer, init=form)


def _with_ring(buffer: Buffer, text: str) -> Buffer:
    stride = text.partition(":")[2].strip()
    if is_float(buffer.type):
        raise PptError(f"a ring of {buffer.type}: elements are indices", hint=f"such as u32[{buffer.count}]=ring:32")
    if not stride.isdecimal() or not 1 <= int(stride) <= buffer.count:
        raise PptError(f"'{text}' is no ring", hint=f"ring:STRIDE, from 1 to {buffer.count}")
    check_scalar(buffer.type, buffer.count - 1)
    return replace(buffer, init=f"ring:{int(stride)}")


def _with_file(buffer: Buffer, name: str, folder: Path | None) -> Buffer:
    if not name:
        raise PptError("no file is named after npy:", hint="npy:FILE.npy")
    path = Path(name) if folder is None else folder / name
    count = npy_elements(path, buffer.count)
    if buffer.count and count != buffer.count:
        raise PptError(f"{path} has {count} elements, not {buffer.count}", hint="an empty count takes the file's")
    if not count:
        raise PptError(f"{path} has no elements")
    return replace(buffer, count=count, init=f"npy:{path.absolute()}")


def _with_random(buffer: Buffer, text: str) -> Buffer:
    match = _RANDOM.fullmatch(text)
    if not match:
        raise PptError(f"'{text}' is not a random content", hint="random, random:SEED or random(LOW,HIGH):SEED")
    low, high = 0.0, 1.0
    if match["low"] is not None:
        low, high = (float(parse_scalar(buffer.type, match[key])) for key in ("low", "high"))
    buffer = replace(buffer, init="random", seed=int(match["seed"] or 0), low=low, high=high)
    check_random(buffer, has_range=match["low"] is not None)
    return buffer


def check_random(buffer: Buffer, has_range: bool) -> None:
    """PptError when the range of a random buffer is empty, or missing where integers need one."""
    if not is_float(buffer.type):
        if not has_range:
            message = f"random {buffer.type} values need a range"
            most = min(buffer.count - 1, integer_range(buffer.type)[1])
            raise PptError(message, hint=f"such as {buffer.type}[{buffer.count}]=random(0,{most})")
        for bound in (buffer.low, buffer.high):
            check_scalar(buffer.type, int(bound))
    if not buffer.low <= buffer.high:
        raise PptError(f"the range of random values is empty: {buffer.low:g} to {buffer.high:g}")


def parse_argument(text: str, index: int, folder: Path | None = None) -> tuple[Argument, Buffer | None]:
    """An argument from its text form, and the buffer that it defines, named "arg`index`", if it does.

    PptError when the text has none of the forms, or a type, count or value in it is wrong.
    """
    if _BUFFER.fullmatch(text):
        buffer = parse_buffer(text, f"arg{index}", folder)
        return Argument("u64", buffer=buffer.name), buffer
    number = literal(text)
    return parse_value(text) if number is None else Argument("", number), None
