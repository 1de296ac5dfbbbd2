"""What of a workload may vary: block, grid, registers, shared memory, scalar arguments, sizes of buffers, macros.

The grid follows a block that varies, unless it varies itself: along each axis as many blocks as the threads of the
launch fill, rounded up, so that every element still has its thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ppt_gpu.common.errors import InputErrors, PptError, did_you_mean
from ppt_gpu.explore.expression import Value
from ppt_gpu.inputs import CUDA, extents
from ppt_gpu.workload.argument_text import parse_count
from ppt_gpu.workload.arguments import shape_errors
from ppt_gpu.workload.literals import literal
from ppt_gpu.workload.scalars import parse_scalar
from ppt_gpu.workload.workload import Argument, Dim3, Launch, Workload

AXES = "xyz"
SHAPES = ("block", "grid", *(f"{name}.{axis}" for name in ("block", "grid") for axis in AXES))
PLAIN = ("registers", "dynamic_shared")
FORMS = (*SHAPES, *PLAIN, "arguments[0]", "buffers.NAME", "define.NAME")
_ARGUMENT = re.compile(r"arguments\[(\d+)\]")
FAMILIES = ("buffers", "define", "arguments")


def is_launch_key(key: str) -> bool:
    """Is this a parameter of the workload? Else it is one of the GPU."""
    return key in SHAPES or key in PLAIN or re.split(r"[.\[]", key)[0] in (*FAMILIES, "block", "grid")


def check_launch_key(workload: Workload, key: str, label: str) -> None:
    """PptError that begins with `label` when this workload has no such parameter, or one that cannot vary."""
    if len(workload.launches) != 1 or workload.loops:
        raise PptError(f"{label}: '{workload.name}' has several launches", hint="a parameter of one launch can vary")
    if workload.machine_path:
        raise PptError(f"{label}: a trace of machine code brings its own", hint="parameters of the GPU can vary")
    if workload.tasklist_path and not key.startswith("grid"):
        raise PptError(f"{label}: a task list brings its own", hint="its grid can vary")
    launch = workload.launches[0]
    family, _, name = key.partition(".")
    if match := _ARGUMENT.fullmatch(key):
        number = int(match[1])
        if number >= len(launch.arguments):
            raise PptError(f"{label}: the launch has {len(launch.arguments)} arguments", hint="they count from 0")
        if launch.arguments[number].buffer or launch.arguments[number].is_struct:
            raise PptError(f"{label}: argument {number} is no scalar", hint="the size of a buffer is buffers.NAME")
    elif family == "buffers":
        known = [buffer.name for buffer in workload.buffers]
        if name not in known:
            raise PptError(f"{label}: no buffer '{name}'", hint=did_you_mean(name, known))
        if next(b for b in workload.buffers if b.name == name).init.startswith("npy:"):
            raise PptError(f"{label}: the file of '{name}' has its own size")
    elif family == "define":
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise PptError(f"{label}: '{name}' is no name of a macro", hint="such as define.TILE")
        if Path(workload.ptx_path).suffix not in CUDA:
            raise PptError(f"{label}: macros are of CUDA files", hint="this workload has no .cu file")
    elif key not in SHAPES and key not in PLAIN:
        raise PptError(f"{label}: unknown parameter '{key}'", hint=did_you_mean(key, FORMS))


def check_launch_value(workload: Workload, key: str, text: str, label: str) -> None:
    """PptError that begins with `label` when no launch could have this value; others may fit another launch only."""
    try:
        with_values(workload, {key: text})
    except InputErrors:
        pass
    except PptError as error:
        raise PptError(f"{label}: {error.message}", hint=error.hint) from None


def launch_values(workload: Workload) -> dict[str, Value]:
    """The parameters as they are, for expressions: `block` and `grid` alone are numbers of threads and blocks."""
    if len(workload.launches) != 1:
        return {}
    launch = workload.launches[0]
    found: dict[str, Value] = {"block": launch.threads_per_block, "grid": launch.blocks}
    for name, shape in (("block", launch.block), ("grid", launch.grid)):
        found |= {f"{name}.{axis}": extent for axis, extent in zip(AXES, shape, strict=True)}
    found |= {"dynamic_shared": launch.dynamic_shared, "registers": launch.registers or 0}
    found |= {f"arguments[{n}]": a.value for n, a in enumerate(launch.arguments) if not (a.buffer or a.is_struct)}
    return found | {f"buffers.{buffer.name}": buffer.count for buffer in workload.buffers}


def with_values(workload: Workload, values: Mapping[str, str]) -> Workload:
    """`workload` with these parameters changed. PptError for a text that does not fit, InputErrors for a bad launch."""
    if not values:
        return workload
    launch = workload.launches[0]
    launch = _with_shapes(launch, values)
    arguments, buffers, options = list(launch.arguments), list(workload.buffers), workload.compiler_options
    for key, text in values.items():
        family, _, name = key.partition(".")
        if match := _ARGUMENT.fullmatch(key):
            one = arguments[int(match[1])]
            arguments[int(match[1])] = replace(one, value=_number(one, text))
        elif family == "buffers":
            count = parse_count(text)
            buffers = [replace(b, count=count) if b.name == name else b for b in buffers]
        elif family == "define":
            options = (*options, f"-D{name}={text}")
        elif key == "registers":
            launch = replace(launch, registers=_whole(key, text), registers_from="", register_source="")
        elif key == "dynamic_shared":
            launch = replace(launch, dynamic_shared=_whole(key, text))
    launch = replace(launch, arguments=tuple(arguments))
    errors = shape_errors(launch)
    if errors:
        raise InputErrors(errors)
    return replace(workload, launches=(launch,), buffers=tuple(buffers), compiler_options=options)


def _number(argument: Argument, text: str) -> int | float:
    """`text` as a value of the argument, which may have no type yet. PptError when it is none."""
    value = literal(text) if not argument.type else parse_scalar(argument.type, text)
    if value is None:
        raise PptError(f"'{text}' is not a number", hint="such as 1024 or 2.5")
    return value


def following_grid(launch: Launch, block: Dim3) -> Dim3:
    """The grid that gives as many threads as `launch` has along each axis, with this block."""
    x, y, z = (-(-g * old // new) for g, old, new in zip(launch.grid, launch.block, block, strict=True))
    return x, y, z


def _with_shapes(launch: Launch, values: Mapping[str, str]) -> Launch:
    block = _shape(launch.block, "block", values)
    follows = following_grid(launch, block)
    grid = _shape(launch.grid if block == launch.block else follows, "grid", values)
    return replace(launch, block=block, grid=grid)


def _shape(now: Dim3, name: str, values: Mapping[str, str]) -> Dim3:
    if name in values:
        x, y, z = (*extents(name, values[name]), 1, 1)[:3]
        now = x, y, z
    found = [
        _whole(f"{name}.{axis}", values.get(f"{name}.{axis}", str(size))) for axis, size in zip(AXES, now, strict=True)
    ]
    return found[0], found[1], found[2]


def _whole(key: str, text: str) -> int:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if number < 0 or number != int(number):
        raise PptError(f"{key} is {text}", hint="expected a whole number")
    return int(number)
