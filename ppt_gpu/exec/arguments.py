"""A launch's arguments, checked against the kernel's parameters and packed into the parameter bytes."""

from __future__ import annotations

import struct

import numpy as np

from ppt_gpu.errors import InputErrors, PptError
from ppt_gpu.exec.fill import NUMPY_TYPES, bf16_bits
from ppt_gpu.exec.memory import DeviceMemory
from ppt_gpu.exec.workload import Argument, Launch
from ppt_gpu.ptx.module import TYPE_BYTES, Kernel, Module, Param


def pack_arguments(module: Module, kernel: Kernel, launch: Launch, memory: DeviceMemory) -> bytes:
    """The kernel's parameter bytes, each argument at its parameter's offset, little endian.

    Raises PptError (InputErrors when there are several) for a missing or surplus argument, one of the wrong size or
    kind, a scalar out of range, or an unknown buffer.
    """
    wanted, given = kernel.params, launch.arguments
    if len(wanted) != len(given):
        kind = "missing" if len(given) < len(wanted) else "surplus"
        which = wanted[len(given)].name if len(given) < len(wanted) else _text(given[len(wanted)])
        raise PptError(
            f"kernel '{kernel.name}' takes {len(wanted)} arguments, the launch gives {len(given)}: "
            f"{kind} '{which}'",
            path=module.path,
            line=kernel.line,
            hint="parameters: " + (", ".join(f"{p.name} (.{p.type}, {p.bytes} B)" for p in wanted) or "none"),
        )
    raw = bytearray(max((p.offset + p.bytes for p in wanted), default=0))
    errors = []
    for position, (param, argument) in enumerate(zip(wanted, given, strict=True)):
        try:
            raw[param.offset : param.offset + param.bytes] = _pack(param, argument, memory)
        except PptError as error:
            where = f"argument {position + 1} of '{kernel.name}' (parameter '{param.name}', .{param.type})"
            errors.append(
                PptError(f"{where}: {error.message}", path=module.path, line=param.line or None, hint=error.hint)
            )
    if errors:
        raise errors[0] if len(errors) == 1 else InputErrors(errors)
    return bytes(raw)


def _text(argument: Argument) -> str:
    return argument.buffer or f"{argument.type}:{argument.value}"


def _pack(param: Param, argument: Argument, memory: DeviceMemory) -> bytes:
    if argument.buffer:
        return _pointer(param, argument, memory)
    size = TYPE_BYTES.get(argument.type, 0)
    if param.bytes != TYPE_BYTES.get(param.type) and argument.type == f"b{8 * param.bytes}":
        return _integer(argument, 8 * param.bytes, signed=False)  # a by-value struct, given as one integer
    if argument.type not in NUMPY_TYPES:
        raise PptError(f"unknown scalar type '{argument.type}'", hint=f"expected one of: {', '.join(NUMPY_TYPES)}")
    if size != param.bytes:
        raise PptError(f"a {argument.type} has {size} bytes, the parameter {param.bytes}")
    floating = "f" in argument.type
    if not param.type.startswith("b") or param.type == "bf16":
        if ("f" in param.type) != floating:
            raise PptError(f"a {argument.type} scalar for a .{param.type} parameter")
    return _float(argument) if floating else _integer(argument, 8 * size, argument.type.startswith("s"))


def _pointer(param: Param, argument: Argument, memory: DeviceMemory) -> bytes:
    if param.bytes != 8 or param.type[0] == "f":
        raise PptError(f"buffer '{argument.buffer}' is a 64-bit pointer, the parameter has {param.bytes} bytes")
    address = memory.address_of(argument.buffer)
    if not 0 <= argument.offset <= memory.size_of(argument.buffer):
        raise PptError(
            f"offset {argument.offset} is outside buffer '{argument.buffer}' "
            f"({memory.size_of(argument.buffer)} bytes)"
        )
    return struct.pack("<Q", address + argument.offset)


def _integer(argument: Argument, bits: int, signed: bool) -> bytes:
    value = argument.value
    if value != int(value):
        raise PptError(f"{value} is not an integer")
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if not low <= value <= high:
        raise PptError(f"{value} does not fit {argument.type} ({low} to {high})")
    return (int(value) & ((1 << bits) - 1)).to_bytes(bits // 8, "little")


def _float(argument: Argument) -> bytes:
    with np.errstate(over="ignore"):
        if argument.type == "bf16":
            return bf16_bits(np.array([argument.value])).tobytes()
        value = np.array([argument.value], NUMPY_TYPES[argument.type])
    if np.isinf(value[0]) and np.isfinite(argument.value):
        raise PptError(f"{argument.value} does not fit {argument.type}")
    return value.tobytes()
