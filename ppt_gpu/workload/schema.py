"""What a workload's TOML may say: its keys and the types of their values. See docs/workload.md."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ppt_gpu.common.errors import PptError
from ppt_gpu.spec.toml_reader import (
    Field,
    Flag,
    Keyed,
    Leaf,
    ListOf,
    Mismatch,
    Number,
    Quantity,
    Table,
    TableList,
    Text,
)
from ppt_gpu.spec.toml_schema import kind_of, shown
from ppt_gpu.workload.argument_text import parse_buffer
from ppt_gpu.workload.arguments import MAX_BLOCK, MAX_DYNAMIC_SHARED, MAX_GRID, MAX_REGISTERS
from ppt_gpu.workload.texture import Texture
from ppt_gpu.workload.texture_text import parse_texture
from ppt_gpu.workload.workload import Buffer, Dim3

#: Keys of a launch. At the top of the file they serve every [[launch]] that does not give its own.
LAUNCH_KEYS = ("kernel", "grid", "block", "cluster", "arguments", "dynamic_shared", "registers", "repeat")

#: rounds of a loop, each of which is looked at
MAX_ROUNDS = 100_000


@dataclass(frozen=True, kw_only=True)
class Extents(Leaf):
    """A grid or block: an integer or a list of one to three, each from 1 to its limit."""

    limits: Dim3

    def read(self, value: Any) -> Dim3:
        """Three extents. Raises Mismatch."""
        values = value if isinstance(value, list) else [value]
        if not 1 <= len(values) <= 3 or not all(isinstance(v, int) and not isinstance(v, bool) for v in values):
            raise Mismatch(f"expected one to three integers, such as [64, 64], not {kind_of(value)} {shown(value)}")
        for axis, extent, limit in zip("xyz", values, self.limits, strict=False):
            if not 1 <= extent <= limit:
                raise Mismatch(f"{axis} is {extent}, out of range, expected 1 to {limit}")
        x, y, z = [*values, 1, 1][:3]
        return x, y, z


@dataclass(frozen=True, kw_only=True)
class BufferLeaf(Leaf):
    """A buffer in its text form ("f32[1024]=random"), still without a name."""

    folder: Path

    def read(self, value: Any) -> Buffer:
        """The buffer, named "". Raises Mismatch."""
        if not isinstance(value, str):
            raise Mismatch(f'expected a buffer such as "f32[1024]=random", not {kind_of(value)} {shown(value)}')
        try:
            return parse_buffer(value, "", self.folder)
        except PptError as error:
            raise Mismatch(error.message, error.hint) from None


@dataclass(frozen=True, kw_only=True)
class TextureLeaf(Leaf):
    """A texture or surface in its text form, still without a name, and the buffer that it defines, if it does."""

    folder: Path

    def read(self, value: Any) -> tuple[Texture, Buffer | None]:
        """The texture, named "", and its own buffer. Raises Mismatch."""
        if not isinstance(value, str):
            what = f"{kind_of(value)} {shown(value)}"
            raise Mismatch(f'expected a texture such as "texture(data, width=64)", not {what}')
        try:
            return parse_texture(value, "", self.folder)
        except PptError as error:
            raise Mismatch(error.message, error.hint) from None


@dataclass(frozen=True, kw_only=True)
class ArgumentLeaf(Leaf):
    """An argument as written; the reader parses it, so that each has its own errors and place."""

    def read(self, value: Any) -> Any:
        """`value`."""
        return value


def _launch_fields() -> dict[str, Field]:
    return {
        "kernel": Text(default=None),
        "grid": Extents(limits=MAX_GRID, default=None),
        "block": Extents(limits=MAX_BLOCK, default=None),
        "cluster": Extents(limits=(16, 16, 16), default=None),
        "arguments": ListOf(item=ArgumentLeaf(), default=None),
        "dynamic_shared": Quantity(
            dimension="bytes", plain=True, integer=True, minimum=0, maximum=MAX_DYNAMIC_SHARED, default=None
        ),
        "registers": Number(integer=True, minimum=1, maximum=MAX_REGISTERS, default=None),
        "repeat": Number(integer=True, minimum=1, default=None),
    }


def _loop_fields(launch: dict[str, Field]) -> Table:
    return Table(
        fields={
            "repeat": Number(integer=True, minimum=1, maximum=MAX_ROUNDS),
            "swap": ListOf(item=Text(), default=()),
            "launch": TableList(item=Table(fields=launch), default=None),
        }
    )


def workload_schema(folder: Path) -> Table:
    """The schema of a workload file in `folder`, where its .npy files are looked for."""
    launch = _launch_fields()
    return Table(
        fields={
            "name": Text(default=None),
            "ptx": Text(default=None),
            "tasklist": Text(default=None),
            **launch,
            "launch": TableList(item=Table(fields=launch), default=None),
            "loop": TableList(item=_loop_fields(launch), default=None),
            "buffers": Keyed(item=BufferLeaf(folder=folder), default={}),
            "symbols": Keyed(item=BufferLeaf(folder=folder), default={}),
            "textures": Keyed(item=TextureLeaf(folder=folder), default={}),
            "copy_in": ListOf(item=Text(), default=()),
            "copy_out": ListOf(item=Text(), default=()),
            "pinned": Flag(default=True),
            "graph": Flag(default=False),
        }
    )
