"""Arguments of a launch: from the command line, checked against the kernel, packed into its parameter block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from ppt_gpu.common.errors import InputErrors, PptError
from ppt_gpu.ptx.linking.mangling import short_name
from ppt_gpu.ptx.module import TYPE_BYTES, Kernel, Module, Param
from ppt_gpu.workload.argument_text import parse_argument
from ppt_gpu.workload.block_cluster import cluster_errors
from ppt_gpu.workload.scalars import check_scalar, encode_scalar, is_float, scalar_type
from ppt_gpu.workload.texture import Texture
from ppt_gpu.workload.texture_text import is_texture, parse_texture
from ppt_gpu.workload.workload import Argument, Buffer, Dim3, Launch, Workload

#: What every GPU so far allows (CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability").
MAX_GRID: Dim3 = (2**31 - 1, 65535, 65535)
MAX_BLOCK: Dim3 = (1024, 1024, 64)
MAX_THREADS = 1024
MAX_DYNAMIC_SHARED = 256 << 10  # B, above any GPU's shared memory
MAX_REGISTERS = 255


class Buffers(Protocol):
    """Memory in which buffers have addresses and sizes, B."""

    def address_of(self, name: str) -> int: ...

    def size_of(self, name: str) -> int: ...


def workload_from_arguments(
    ptx_path: str | Path,
    kernel: str,
    grid: Sequence[int],
    block: Sequence[int],
    args: Sequence[str],
    dynamic_shared: int = 0,
    registers: int | None = None,
) -> Workload:
    """One launch from command-line values; `args` have the forms of `ppt_gpu.workload.argument_text`.

    `grid` and `block` have one to three items; `kernel` "" means the module's only entry. Raises InputErrors with
    everything that is wrong.
    """
    errors: list[PptError] = []
    arguments: list[Argument] = []
    buffers: list[Buffer] = []
    textures: list[Texture] = []
    for index, text in enumerate(args):
        try:
            if is_texture(text):
                texture, buffer = parse_texture(text, f"arg{index}")
                argument = Argument("u64", buffer=texture.name)
                textures.append(texture)
            else:
                argument, buffer = parse_argument(text, index)
        except PptError as error:
            errors.append(PptError(f"argument {index + 1} ({text}): {error.message}", hint=error.hint))
            continue
        if argument.buffer and buffer is None:
            hint = "a buffer is f32[1048576]=random, a scalar is i32=1024"
            hint = hint if not is_texture(text) else "the first item is a buffer such as f32[4096]=random"
            errors.append(PptError(f"argument {index + 1} ({text}) has no type", hint=hint))
        arguments.append(argument)
        buffers += [buffer] if buffer else []
    launch = Launch(kernel, dim3(grid), dim3(block), tuple(arguments), dynamic_shared, registers)
    errors += shape_errors(launch)
    if errors:
        raise InputErrors(errors)
    path = str(ptx_path)
    return Workload(Path(path).stem, path, path, (launch,), tuple(buffers), textures=tuple(textures))


def dim3(values: Sequence[int]) -> Dim3:
    """One to three extents as three; the rest are 1. PptError for another number of them."""
    if not 1 <= len(values) <= 3:
        raise PptError(f"a grid or block has one to three extents, not {len(values)}")
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


def shape_errors(launch: Launch) -> list[PptError]:
    """What no GPU would launch: extents, threads, shared memory or registers out of range."""
    errors = []
    for name, extents, limits in (("grid", launch.grid, MAX_GRID), ("block", launch.block, MAX_BLOCK)):
        for axis, extent, limit in zip("xyz", extents, limits, strict=True):
            if not 1 <= extent <= limit:
                errors.append(PptError(f"{name}.{axis} is {extent}", hint=f"expected 1 to {limit}"))
    if not errors and launch.threads_per_block > MAX_THREADS:
        message = f"a block of {launch.threads_per_block} threads is too large"
        errors.append(PptError(message, hint=f"a block has at most {MAX_THREADS} threads"))
    if not 0 <= launch.dynamic_shared <= MAX_DYNAMIC_SHARED:
        errors.append(PptError(f"dynamic_shared is {launch.dynamic_shared} B", hint="expected 0 to 256 KiB"))
    if launch.registers is not None and not 1 <= launch.registers <= MAX_REGISTERS:
        errors.append(PptError(f"registers is {launch.registers}", hint=f"expected 1 to {MAX_REGISTERS} a thread"))
    if launch.repeat < 1:
        errors.append(PptError(f"repeat is {launch.repeat}", hint="expected 1 or more"))
    return errors


def argument_errors(launch: Launch, kernel: Kernel) -> list[tuple[str, PptError]]:
    """Everything that is wrong with the launch's arguments and block for `kernel`; empty when it can run.

    Each error comes with the key of a workload that it is about: "arguments[3]", "arguments" or "block".
    """
    given, wanted = launch.arguments, [_shown(param, kernel) for param in kernel.params]
    errors: list[tuple[str, PptError]] = []
    if len(given) < len(wanted):
        missing = ", ".join(f"{p.name} ({_type_text(p)})" for p in wanted[len(given) :])
        text = f"{_count(given, wanted, kernel)}; missing: {missing}"
        errors.append(
            ("arguments", PptError(text, hint="a pointer takes a buffer, f32[1024]=random; a number, i32=1024"))
        )
    elif len(given) > len(wanted):
        surplus = ", ".join(_argument_text(a) for a in given[len(wanted) :])
        errors.append((f"arguments[{len(wanted)}]", PptError(f"{_count(given, wanted, kernel)}; surplus: {surplus}")))
    for number, (argument, param) in enumerate(zip(given, wanted, strict=False)):
        error = _mismatch(argument, param, kernel.pointer_bytes)
        if error is not None:
            which = f"argument {number + 1} ({_argument_text(argument)}) of kernel '{short_name(kernel.name)}'"
            errors.append((f"arguments[{number}]", PptError(f"{which}: {error.message}", hint=error.hint)))
    errors += [("cluster", error) for error in cluster_errors(kernel, launch)]
    return errors + [("block", error) for error in _block_errors(launch, kernel)]


def check_arguments(launch: Launch, kernel: Kernel) -> None:
    """Raise InputErrors with everything that is wrong with the launch's arguments for `kernel`."""
    errors = argument_errors(launch, kernel)
    if errors:
        raise InputErrors([error for _, error in errors])


def pack_parameters(kernel: Kernel, launch: Launch, address_of: Callable[[str], int]) -> bytes:
    """The parameter block: each argument little-endian at its parameter's offset, zeros between.

    `address_of` gives a buffer's device address. Raises InputErrors when the arguments do not fit the kernel.
    """
    check_arguments(launch, kernel)
    block = bytearray(max((p.offset + p.bytes for p in kernel.params), default=0))
    for argument, param in zip(launch.arguments, kernel.params, strict=True):
        if argument.is_struct:
            raw = pack_struct(argument, address_of)
        elif argument.buffer:
            raw = (address_of(argument.buffer) + argument.offset).to_bytes(8, "little")
        else:
            raw = encode_scalar(_param_type(argument, param), argument.value)
        block[param.offset : param.offset + param.bytes] = raw.ljust(param.bytes, b"\0")[: param.bytes]
    return bytes(block)


def pack_arguments(module: Module, kernel: Kernel, launch: Launch, memory: Buffers) -> bytes:
    """`pack_parameters` for buffers in `memory`; also checks that pointer offsets stay inside their buffers.

    Errors name the module's file and the kernel's line.
    """
    errors = [error for _, error in argument_errors(launch, kernel)]
    for argument in (member for a in launch.arguments for member in (a, *a.fields)):
        if argument.buffer and not 0 <= argument.offset <= memory.size_of(argument.buffer):
            size = memory.size_of(argument.buffer)
            errors.append(PptError(f"byte {argument.offset} is outside buffer '{argument.buffer}' ({size} bytes)"))
    if errors:
        raise InputErrors([PptError(e.message, path=module.path, line=kernel.line, hint=e.hint) for e in errors])
    return pack_parameters(kernel, launch, memory.address_of)


def pack_struct(argument: Argument, address_of: Callable[[str], int]) -> bytes:
    raw = bytearray()
    for member in argument.fields:
        element = scalar_type(member.type)
        raw += bytes(-len(raw) % TYPE_BYTES[element])
        value = address_of(member.buffer) + member.offset if member.buffer else member.value
        raw += encode_scalar(element, value)
    return bytes(raw)


def _struct_bytes(argument: Argument) -> int:
    return len(pack_struct(argument, lambda name: 0))


def _shown(param: Param, kernel: Kernel) -> Param:
    """`param` as messages name it: without the mangled name of its kernel before it."""
    mangled = kernel.name.startswith("_Z")
    return replace(param, name=param.name.removeprefix(f"{kernel.name}_")) if mangled else param


def _count(given: Sequence[Argument], wanted: Sequence[Param], kernel: Kernel) -> str:
    have = f"{len(given)} argument{'s' * (len(given) != 1)}"
    return f"kernel '{short_name(kernel.name)}' has {len(wanted)} parameter{'s' * (len(wanted) != 1)}, {have} given"


def _type_text(param: Param) -> str:
    if param.is_struct:
        return f"struct of {param.bytes} bytes"
    return f"{param.type}, pointer" if param.pointer_space else param.type


def _argument_text(argument: Argument) -> str:
    if argument.is_struct:
        return f"struct of {_struct_bytes(argument)} bytes"
    number = f"{argument.type}={argument.value}" if argument.type else f"{argument.value}"
    return f"buffer {argument.buffer}" if argument.buffer else number


def _param_type(argument: Argument, param: Param) -> str:
    """The type to encode by: untyped bits (".b32") take the argument's own type."""
    return scalar_type(argument.type) if param.type[0] == "b" and param.type != "bf16" else param.type


def _mismatch(argument: Argument, param: Param, pointer_bytes: int) -> PptError | None:
    what = f"the parameter {param.name} is {_type_text(param)}"
    if param.is_struct and _is_its_number(argument, param):
        return _scalar_error(argument)
    if argument.is_struct or param.is_struct:
        size = _struct_bytes(argument) if argument.is_struct else -param.bytes
        within = param.bytes - param.align < size <= param.bytes or (size, param.bytes) == (0, 1)  # C++: an empty class
        fits = within and (param.is_struct or param.type == "b8")
        half = "f16=1.5 or bf16=1.5 for a half, else " if param.is_struct and param.bytes == 2 else ""
        return None if fits else PptError(what, hint=f"write {half}struct(f32=1.5, i32=2, ...), members in order")
    if argument.buffer:
        pointer = param.bytes in (8, pointer_bytes) and not is_float(param.type)
        return None if pointer else PptError(f"{what}, not a pointer", hint=f"such as {param.type}=1")
    if error := _scalar_error(argument):
        return error
    if TYPE_BYTES[scalar_type(argument.type)] != param.bytes:
        return PptError(what, hint=_example(param))
    if param.type[0] != "b" and is_float(scalar_type(argument.type)) != is_float(param.type):
        return PptError(what, hint=_example(param))
    return None


def _is_its_number(argument: Argument, param: Param) -> bool:
    """Is `argument` a number with a type that fills a struct? CUDA's halves are classes around one (`f16=1.5`)."""
    number = not argument.is_struct and not argument.buffer and argument.type != ""
    return number and TYPE_BYTES[scalar_type(argument.type)] == param.bytes


def _scalar_error(argument: Argument) -> PptError | None:
    try:
        check_scalar(scalar_type(argument.type), argument.value)
    except PptError as error:
        return error
    return None


def _example(param: Param) -> str:
    if param.pointer_space or param.bytes == 8:
        return f"a buffer such as f32[1048576], or {param.type}=1"
    return f"such as {param.type}={'1.5' if is_float(param.type) else '1'}"


def _block_errors(launch: Launch, kernel: Kernel) -> list[PptError]:
    errors = []
    name = short_name(kernel.name)
    required, most = kernel.directives.get("reqntid"), kernel.directives.get("maxntid")
    if required and dim3(required) != launch.block:
        message = f"kernel '{name}' requires the block {_extents(required)}, not {_extents(launch.block)}"
        errors.append(PptError(message, hint="its .reqntid says so"))
    if most and launch.threads_per_block > dim3(most)[0] * dim3(most)[1] * dim3(most)[2]:
        message = f"kernel '{name}' allows blocks up to {_extents(most)}, not {_extents(launch.block)}"
        errors.append(PptError(message, hint="its .maxntid says so"))
    return errors


def _extents(values: Sequence[int]) -> str:
    return "x".join(str(v) for v in values)
