"""NumPy arrays and Python numbers as kernel arguments: buffers with their content, scalars of the parameters' types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.frontends.texture_argument import ArrayTexture, texture_over
from ppt_gpu.ptx.module import TYPE_BYTES, Param
from ppt_gpu.workload.argument_text import parse_argument
from ppt_gpu.workload.scalars import is_float
from ppt_gpu.workload.texture import Texture
from ppt_gpu.workload.texture_text import is_texture, parse_texture
from ppt_gpu.workload.workload import Argument, Buffer

#: numpy type -> PTX element type; any other one is bytes
_ELEMENTS = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int8": "s8", "uint8": "u8", "bool": "u8",
    "int16": "s16", "uint16": "u16", "int32": "s32", "uint32": "u32", "int64": "s64", "uint64": "u64",
}  # fmt: skip


@dataclass
class Arrays:
    """The buffers of a call and the arrays in them. The same memory given twice is one buffer."""

    buffers: list[Buffer] = field(default_factory=list)
    contents: dict[str, NDArray] = field(default_factory=dict)  # buffer name -> the user's array
    textures: list[Texture] = field(default_factory=list)
    _names: dict[tuple[int, int], str] = field(default_factory=dict)  # (address, bytes) -> buffer name

    def pointer(self, array: NDArray, name: str) -> Argument:
        """The address of the buffer that holds `array`. PptError when its elements do not lie one after another."""
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            raise PptError(f"{name}: the array is not contiguous", hint="pass np.ascontiguousarray(array)")
        if array.dtype.hasobject:
            raise PptError(f"{name}: an array of Python objects has no place on a GPU")
        if not array.dtype.isnative:
            hint = "pass array.astype(array.dtype.newbyteorder('='))"
            raise PptError(f"{name}: the array's bytes are in the other order than a GPU's ({array.dtype})", hint=hint)
        place = (array.__array_interface__["data"][0], array.nbytes)
        known = self._names.get(place)
        if known is None:
            self._apart(array, name)
            known = self._names[place] = self._unused(name)
            element = _ELEMENTS.get(array.dtype.name, "u8")
            self.buffers.append(Buffer(known, element, array.nbytes // TYPE_BYTES[element]))
            self.contents[known] = array
        return Argument("u64", buffer=known)

    def space(self, size: int, name: str) -> Argument:
        """The address of a new buffer of `size` zero bytes."""
        self.buffers.append(Buffer(self._unused(name), "u8", size))
        return Argument("u64", buffer=self.buffers[-1].name)

    def texture(self, given: ArrayTexture, name: str) -> Argument:
        """The handle of the texture that `given` describes, over the buffer that holds its array."""
        over = self.pointer(given.array, f"{name}_texels")
        self.textures.append(texture_over(given, name, over.buffer))
        return Argument("u64", buffer=name)

    def add(self, buffer: Buffer) -> None:
        self.buffers.append(buffer)

    def _apart(self, array: NDArray, name: str) -> None:
        for other, known in self.contents.items():
            if np.may_share_memory(array, known) and np.shares_memory(array, known):
                hint = "pass the array that holds both, or a copy"
                raise PptError(f"{name}: the array overlaps '{other}'", hint=hint)

    def _unused(self, name: str) -> str:
        taken = {buffer.name for buffer in self.buffers}
        return next(n for n in (name, *(f"{name}_{i}" for i in range(2, len(taken) + 3))) if n not in taken)


def arguments_for(params: Sequence[Param], values: Sequence[Any], arrays: Arrays) -> tuple[Argument, ...]:
    """`values` as arguments for `params`: arrays, numbers, bytes of a struct, or the text forms of a command line.

    Whether they fit is checked when the workload is bound, except for what cannot be an argument at all: PptError.
    """
    found = []
    for number, value in enumerate(values):
        param = params[number] if number < len(params) else None
        found.append(_argument(param, value, number, arrays))
    return tuple(found)


def _argument(param: Param | None, value: Any, number: int, arrays: Arrays) -> Argument:
    name = f"arg{number}"
    if isinstance(value, Argument):
        return value
    if isinstance(value, np.ndarray):
        return arrays.pointer(value, name)
    if isinstance(value, ArrayTexture):
        return arrays.texture(value, name)
    if isinstance(value, str) and is_texture(value):
        texture, buffer = parse_texture(value, name)
        arrays.textures.append(texture)
        if buffer is not None:
            arrays.add(buffer)
        return Argument("u64", buffer=name)
    if isinstance(value, str):
        argument, buffer = parse_argument(value, number)
        if buffer is not None:
            arrays.add(buffer)
        return argument
    if isinstance(value, bytes | np.void):
        content = value if isinstance(value, bytes) else value.tobytes()
        return Argument("struct", fields=tuple(Argument("u8", byte) for byte in content))
    if isinstance(value, tuple):
        return Argument("struct", fields=tuple(_member(item, f"{name}_{i}", arrays) for i, item in enumerate(value)))
    return scalar(param, value, name)


def _member(value: Any, name: str, arrays: Arrays) -> Argument:
    """A member of a struct: its own type says how many bytes it takes."""
    if isinstance(value, np.ndarray):
        return arrays.pointer(value, name)
    if not isinstance(value, np.generic):
        kind = type(value).__name__
        hint = "such as (np.float32(1.5), np.int16(2), array)"
        raise PptError(f"{name}: a {kind} has no size; members of a struct are arrays and NumPy scalars", hint=hint)
    return scalar(None, value, name)


def scalar(param: Param | None, value: Any, name: str) -> Argument:
    """A number as argument: a Python number takes the type of its parameter, a NumPy one keeps its own.

    An f16 for a parameter of 16 bits, as numba passes it, becomes its bits. PptError when `value` is no number.
    """
    if isinstance(value, np.float16) and param is not None and param.type == "u16":
        return Argument("u16", int(value.view(np.uint16)))
    if isinstance(value, np.generic) and not isinstance(value, np.bool_):
        if value.dtype.name not in _ELEMENTS:
            raise PptError(f"{name}: {value.dtype} is no type of a scalar argument")
        return Argument(_ELEMENTS[value.dtype.name], value.item())
    if not isinstance(value, int | float | np.bool_):
        kind = type(value).__name__
        hint = "an array is a numpy.ndarray, a struct its bytes or a structured scalar, a scalar a number"
        raise PptError(f"{name}: a {kind} is no kernel argument", hint=hint)
    if isinstance(value, float):
        wide = param is not None and param.bytes == 8
        return Argument(param.type if param and is_float(param.type) else "f64" if wide else "f32", value)
    number = int(value)
    if param is not None and is_float(param.type):
        return Argument(param.type, float(number))
    bits = 8 * param.bytes if param is not None and param.bytes in (1, 2, 4, 8) else 64
    return Argument(f"{'s' if number < 0 else 'u'}{bits}", number)
