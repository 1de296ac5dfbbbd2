"""Writes LLVM IR as text: 32-lane vectors, one line an operation.

Text is what LLVM parses anyway; building it directly costs a tenth of an object tree.
"""

from __future__ import annotations

import math
import struct
from functools import lru_cache
from typing import Any

from ppt_gpu.emulator.forms.opcode import float_bits, float_from_bits
from ppt_gpu.emulator.llvm.library import helper_address

LANES = 32

#: PTX type -> LLVM element type of one lane
ELEMENT: dict[str, str] = {
    "pred": "i1", "b8": "i8", "u8": "i8", "s8": "i8", "b16": "i16", "u16": "i16", "s16": "i16", "bf16": "i16",
    "b32": "i32", "u32": "i32", "s32": "i32", "b64": "i64", "u64": "i64", "s64": "i64",
    "f16": "half", "f32": "float", "f64": "double", "f16x2": "i32", "bf16x2": "i32", "tf32": "i32",
    "u16x2": "i32", "s16x2": "i32", "f32x2": "i64", "b128": "i128",
}  # fmt: skip
BITS: dict[str, int] = {
    "i1": 1,
    "i8": 8,
    "i16": 16,
    "half": 16,
    "i32": 32,
    "float": 32,
    "i64": 64,
    "double": 64,
    "i128": 128,
}
FLOATS: dict[int, str] = {16: "half", 32: "float", 64: "double"}


def vec(element: str) -> str:
    return f"<{LANES} x {element}>"


def scalar(element: str, value: int | float) -> str:
    """An LLVM constant. Floats are exact: the double that holds the value, in hexadecimal."""
    return _scalar(element, value, _is_minus_zero(value))


def _is_minus_zero(value: int | float) -> bool:
    """-0.0, which a cache takes for 0.0."""
    return value == 0 and math.copysign(1.0, value) < 0


@lru_cache(maxsize=4096)
def _scalar(element: str, value: int | float, _minus_zero: bool) -> str:
    if element == "half":
        return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
    if element in ("float", "double"):
        if element == "float":
            value = float_from_bits(float_bits(float(value), 32), 32)
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    bits = BITS[element]
    value = int(value) & ((1 << bits) - 1)
    if bits == 1:
        return "true" if value else "false"
    return str(value - (1 << bits) if value >> (bits - 1) else value)


def bits_scalar(element: str, bits: int) -> str:
    """A float constant with exactly these bits (NaN payloads included)."""
    if element == "half":
        return f"0xH{bits:04X}"
    if element == "double":
        return f"0x{bits:016X}"
    sign, exponent, fraction = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:  # LLVM writes a float as the double of the same value; NaN payloads move to the top bits
        return f"0x{sign << 63 | 0x7FF << 52 | fraction << 29:016X}"
    return scalar("float", float_from_bits(bits, 32))


def const(element: str, value: int | float) -> str:
    """A constant vector with `value` in every lane."""
    return _const(element, value, _is_minus_zero(value))


@lru_cache(maxsize=4096)
def _const(element: str, value: int | float, _minus_zero: bool) -> str:
    item = f"{element} {scalar(element, value)}"
    return f"<{', '.join([item] * LANES)}>" if not _has_splat() else f"splat ({item})"


@lru_cache(maxsize=256)
def lanes(element: str, step: int, first: int = 0) -> str:
    """The constant vector first, first + step, first + 2 step, ..."""
    return f"<{', '.join(f'{element} {scalar(element, first + step * i)}' for i in range(LANES))}>"


@lru_cache(maxsize=1)
def _has_splat() -> bool:
    from llvmlite import binding

    return binding.llvm_version_info[0] >= 19


class Text:
    """A function body being written. `op` returns the name of the value that it adds."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0
        self.declarations: dict[str, str] = {}

    def op(self, text: str) -> str:
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def call(self, result: str, name: str, *arguments: tuple[str, str]) -> str:
        """Call a function or intrinsic with (type, value) arguments; declares it. "" when `result` is void."""
        types = ", ".join(kind for kind, _ in arguments)
        self.declarations[name] = f"declare {result} @{name}({types})"
        text = f"call {result} @{name}({', '.join(f'{kind} {value}' for kind, value in arguments)})"
        if result == "void":
            self.do(text)
            return ""
        return self.op(text)

    def binary(self, operation: str, element: str, left: str, right: str) -> str:
        """A lane-wise operation; comparisons give a <32 x i1>."""
        return self.op(f"{operation} {vec(element)} {left}, {right}")

    def select(self, flags: str, element: str, yes: str, no: str) -> str:
        return self.op(f"select {vec('i1')} {flags}, {vec(element)} {yes}, {vec(element)} {no}")

    def convert(self, operation: str, source: str, value: str, target: str) -> str:
        return self.op(f"{operation} {vec(source)} {value} to {vec(target)}")

    def cast(self, value: str, source: str, target: str) -> str:
        """The same bits as another element type of the same width."""
        if source == target:
            return value
        return self.op(f"bitcast {vec(source)} {value} to {vec(target)}")

    def helper(self, key: tuple[Any, ...], result: str, *arguments: tuple[str, str]) -> str:
        """Call the helper function `key` (llvm.library); "" when `result` is void."""
        values = ", ".join(f"{kind} {value}" for kind, value in arguments)
        call = f"call {result} inttoptr (i64 {helper_address(key)} to ptr)({values})"
        if result == "void":
            self.do(call)
            return ""
        return self.op(call)

    def splat(self, element: str, value: str) -> str:
        """A vector with the scalar `value` in every lane."""
        one = self.op(f"insertelement {vec(element)} poison, {element} {value}, i32 0")
        return self.op(f"shufflevector {vec(element)} {one}, {vec(element)} poison, {vec('i32')} zeroinitializer")

    def mask_bits(self, flags: str) -> str:
        """<32 x i1> as an i32, lane 0 lowest."""
        return self.op(f"bitcast {vec('i1')} {flags} to i32")

    def mask_flags(self, bits: str) -> str:
        return self.op(f"bitcast i32 {bits} to {vec('i1')}")

    def i32(self, operation: str, left: str, right: str | int) -> str:
        """A scalar 32-bit operation; comparisons give an i1."""
        return self.op(f"{operation} i32 {left}, {right}")

    def i64(self, operation: str, left: str, right: str | int) -> str:
        return self.op(f"{operation} i64 {left}, {right}")

    def v32(self, operation: str, left: str, right: str) -> str:
        """A lane-wise operation on <32 x i32>; comparisons give a <32 x i1>."""
        return self.op(f"{operation} {vec('i32')} {left}, {right}")

    def v64(self, operation: str, left: str, right: str) -> str:
        return self.op(f"{operation} {vec('i64')} {left}, {right}")

    def widen(self, value: str) -> str:
        """A scalar i32 as i64."""
        return self.op(f"zext i32 {value} to i64")

    def widen_lanes(self, value: str) -> str:
        return self.op(f"zext {vec('i32')} {value} to {vec('i64')}")

    def first_lane(self, mask: str) -> str:
        """Lane number of the lowest set bit; the mask is not 0."""
        return self.call("i32", "llvm.cttz.i32", ("i32", mask), ("i1", "true"))

    def last_lane(self, mask: str) -> str:
        return self.i32("sub", "31", self.call("i32", "llvm.ctlz.i32", ("i32", mask), ("i1", "true")))

    def extract(self, element: str, vector: str, lane: str) -> str:
        return self.op(f"extractelement {vec(element)} {vector}, i32 {lane}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")

    def jump(self, label: str) -> None:
        self.do(f"br label %{label}")

    def as_pointer(self, address: str) -> str:
        return self.op(f"inttoptr i64 {address} to ptr")

    def offset_pointer(self, pointer: str, offset: int | str) -> str:
        """A pointer `offset` bytes further."""
        return self.op(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def field(self, pointer: str, slot: int, kind: str = "i64") -> str:
        """Load 64-bit slot number `slot` behind `pointer`."""
        at = self.op(f"getelementptr i64, ptr {pointer}, i64 {slot}")
        return self.op(f"load {kind}, ptr {at}, align 8")

    def set_field(self, pointer: str, slot: int, value: str, kind: str = "i64") -> None:
        at = self.op(f"getelementptr i64, ptr {pointer}, i64 {slot}")
        self.do(f"store {kind} {value}, ptr {at}, align 8")

    def intrinsic(self, name: str, element: str, *values: str) -> str:
        """A lane-wise intrinsic whose operands and result have the same vector type."""
        kind = vec(element)
        return self.call(kind, f"llvm.{name}.v32{suffix(element)}", *((kind, v) for v in values))


class Helper(Text):
    """A helper function's text: the type of its result, and its parameters, each as "TYPE %name"."""

    def __init__(self, result: str, *parameters: str, attributes: str = "") -> None:
        super().__init__()
        self.result = result
        self.parameters = parameters
        self.attributes = attributes

    def module(self, name: str) -> str:
        head = f"define {self.result} @{name}({', '.join(self.parameters)}) {self.attributes} {{"
        return "\n".join([*self.declarations.values(), head, *self.lines, "}"])


def suffix(element: str) -> str:
    return {"half": "f16", "float": "f32", "double": "f64"}.get(element, element)
