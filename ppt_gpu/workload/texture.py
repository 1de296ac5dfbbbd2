"""Textures and surfaces: buffers seen as 1D, 2D or 3D arrays of texels, and the table of them that instructions read.

Texels lie pitch-linear in their buffer: texel (x, y, z) of a layer is at
`((layer * depth + z) * height + y) * pitch + x * texel bytes`. A GPU may tile them instead; see docs/textures.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError

TEXTURE_WINDOW = 0x0400_0000_0000  # handles: this plus HANDLE_STEP for each texture
HANDLE_STEP = 256
#: channel type -> bytes; unorm and snorm integers are read as floats in 0..1 and -1..1
FORMATS = {"f32": 4, "f16": 2, "u8": 1, "s8": 1, "u16": 2, "s16": 2, "u32": 4, "s32": 4,
           "unorm8": 1, "snorm8": 1, "unorm16": 2, "snorm16": 2}  # fmt: skip
CHANNELS = (1, 2, 4)
FILTERS = ("point", "linear")
ADDRESS_MODES = ("clamp", "wrap", "border", "mirror")


@dataclass(frozen=True)
class Texture:
    """A texture or surface object over `buffer`. Extents in texels; `pitch` in bytes a row, 0: rows without gaps."""

    name: str
    buffer: str
    width: int
    height: int = 1
    depth: int = 1
    layers: int = 1  # six for a cube map
    format: str = "f32"  # of FORMATS
    channels: int = 1
    filter: str = "point"
    address: tuple[str, str, str] = ("clamp", "clamp", "clamp")  # by axis
    normalized: bool = False  # coordinates in 0..1 instead of texels
    pitch: int = 0
    offset: int = 0  # B from the buffer's start

    @property
    def texel_bytes(self) -> int:
        return FORMATS[self.format] * self.channels

    @property
    def row_bytes(self) -> int:
        return self.pitch or self.width * self.texel_bytes

    @property
    def bytes(self) -> int:
        """Bytes from its first to behind its last texel."""
        rows = self.height * self.depth * self.layers
        return (rows - 1) * self.row_bytes + self.width * self.texel_bytes


class Word(IntEnum):
    """Words of a row of the texture table."""

    START = 0  # virtual address of the first texel
    WIDTH = 1
    HEIGHT = 2
    DEPTH = 3
    LAYERS = 4
    PITCH = 5
    TEXEL = 6  # B
    CHANNELS = 7
    FORMAT = 8  # place in FORMATS
    FILTER = 9  # place in FILTERS
    ADDRESS_X = 10  # places in ADDRESS_MODES
    ADDRESS_Y = 11
    ADDRESS_Z = 12
    NORMALIZED = 13


WORDS = 16


class TextureTable:
    """The textures of a launch. A handle is TEXTURE_WINDOW + HANDLE_STEP x the number of the texture."""

    def __init__(
        self,
        textures: Sequence[Texture] = (),
        place: Callable[[str], tuple[int, int]] = lambda name: (0, 0),
        unbound: Sequence[str] = (),
    ) -> None:
        """`place` gives a buffer's address and bytes; names in `unbound` that are no texture get the handle 0.

        PptError when a texture does not fit into its buffer.
        """
        self.handles = dict.fromkeys(unbound, 0)
        self.handles |= {texture.name: TEXTURE_WINDOW + HANDLE_STEP * n for n, texture in enumerate(textures)}
        self.rows: NDArray[np.int64] = np.zeros((max(len(textures), 1), WORDS), np.int64)
        self.count = len(textures)
        for number, texture in enumerate(textures):
            start, size = place(texture.buffer)
            check_texture(texture, size)
            self.rows[number, :14] = (
                start + texture.offset, texture.width, texture.height, texture.depth, texture.layers,
                texture.row_bytes, texture.texel_bytes, texture.channels, [*FORMATS].index(texture.format),
                FILTERS.index(texture.filter), *(ADDRESS_MODES.index(mode) for mode in texture.address),
                texture.normalized,
            )  # fmt: skip

    def row(self, handle: int) -> NDArray[np.int64] | None:
        """The words of the texture with this handle; None when there is none."""
        number, rest = divmod(handle - TEXTURE_WINDOW, HANDLE_STEP)
        return self.rows[number] if rest == 0 and 0 <= number < self.count else None


def check_texture(texture: Texture, buffer_bytes: int) -> None:
    """PptError when the texture's extents are impossible or do not fit into its buffer."""
    what = f"texture '{texture.name}'" if texture.name else "the texture"
    if texture.row_bytes < texture.width * texture.texel_bytes or texture.row_bytes % texture.texel_bytes:
        need = texture.width * texture.texel_bytes
        raise PptError(f"{what}: a pitch of {texture.pitch} bytes", hint=f"a multiple of a texel, at least {need}")
    if texture.offset % texture.texel_bytes:
        raise PptError(f"{what}: byte {texture.offset} is not aligned to a texel of {texture.texel_bytes} bytes")
    if texture.offset + texture.bytes > buffer_bytes:
        message = f"{what} needs {texture.offset + texture.bytes} bytes, its buffer '{texture.buffer}' has"
        raise PptError(f"{message} {buffer_bytes}", hint="make the buffer larger, or width, height, layers smaller")
