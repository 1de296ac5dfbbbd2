"""The text form of textures and surfaces, in arguments and in the [textures] table of a workload.

    texture(BUFFER, width=64, height=64, format=u8x4, filter=linear, address=wrap, normalized=true)
    surface(BUFFER, width=64, height=64, format=f32x1)

BUFFER is the name of one, `name+bytes`, or the text form of a new one. docs/textures.md lists the keys.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.workload.argument_text import parse_buffer
from ppt_gpu.workload.texture import ADDRESS_MODES, CHANNELS, FILTERS, FORMATS, Texture
from ppt_gpu.workload.workload import Buffer

_TEXTURE = re.compile(r"\s*(texture|surface)\s*\((.*)\)\s*", re.S)
_PIECE = re.compile(r"\([^()]*\)|\[[^\]]*\]|[^,()\[\]]+|,")
_NAME = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\+\s*(\d+))?\s*")
_FORMAT = re.compile(r"([a-z]+\d+)(?:x(\d))?")
_EXTENTS = ("width", "height", "depth", "layers", "pitch")
_SAMPLING = ("filter", "address", "normalized")
MOST_TEXELS = 1 << 31


def is_texture(text: str) -> bool:
    """Does the text say texture(...) or surface(...)?"""
    return _TEXTURE.fullmatch(text) is not None


def parse_texture(text: str, name: str, folder: Path | None = None) -> tuple[Texture, Buffer | None]:
    """A texture from its text form, and the buffer that it defines, if it does, named `name`_texels.

    File names are relative to `folder`. PptError when a key or value is wrong.
    """
    match = _TEXTURE.fullmatch(text)
    if match is None:
        raise PptError(f"'{text}' is not a texture", hint="such as texture(data, width=64, height=64, format=f32x1)")
    kind, items = match[1], _split(match[2])
    if not items or "=" in items[0].split("[")[0]:
        raise PptError(f"the buffer of the {kind} is missing", hint=f"such as {kind}(data, width=64)")
    own: Buffer | None = None
    named = _NAME.fullmatch(items[0])
    if named is None:
        own = parse_buffer(items[0].strip(), f"{name}_texels", folder)
    keys = (*_EXTENTS, "format", *(_SAMPLING if kind == "texture" else ()))
    values: dict[str, Any] = {}
    for item in items[1:]:
        key, equals, value = (part.strip() for part in item.partition("="))
        if key not in keys or not equals:
            raise PptError(f"unknown key '{key}' of a {kind}", hint=did_you_mean(key, keys))
        if key in values:
            raise PptError(f"'{key}' is given twice")
        values.update(_value(key, value))
    if "width" not in values:
        raise PptError(f"the width of the {kind} is missing", hint="in texels, such as width=64")
    buffer, offset = (named[1], int(named[2] or 0)) if named else (f"{name}_texels", 0)
    return Texture(name, buffer, offset=offset, **values), own


def renamed(texture: Texture, own: Buffer | None, name: str) -> tuple[Texture, Buffer | None]:
    """The same with another name."""
    if own is None:
        return replace(texture, name=name), None
    own = replace(own, name=f"{name}_texels")
    return replace(texture, name=name, buffer=own.name), own


def _split(text: str) -> list[str]:
    parts, current = [], ""
    for piece in _PIECE.findall(text):
        if piece == ",":
            parts.append(current)
            current = ""
        else:
            current += piece
    return [*parts, current] if current.strip() or parts else []


def _value(key: str, text: str) -> dict[str, Any]:
    if key in _EXTENTS:
        if not text.isascii() or not text.isdigit() or not 1 <= int(text) < MOST_TEXELS:
            raise PptError(f"{key} is '{text}'", hint="a positive number, such as 64")
        return {key: int(text)}
    if key == "format":
        return _format(text)
    if key == "filter":
        return {key: _one_of(key, text, FILTERS)}
    if key == "normalized":
        return {key: _one_of(key, text, ("false", "true")) == "true"}
    modes = [_one_of(key, mode.strip(), ADDRESS_MODES) for mode in text.split("/")]
    if len(modes) not in (1, 3):
        raise PptError(f"address is '{text}'", hint="one mode, or one for each axis: wrap/clamp/clamp")
    return {key: tuple(modes * 3)[:3]}


def _format(text: str) -> dict[str, Any]:
    match = _FORMAT.fullmatch(text)
    if match is None or match[1] not in FORMATS or int(match[2] or 1) not in CHANNELS:
        hint = did_you_mean(text.partition("x")[0], FORMATS)
        raise PptError(f"unknown texel format '{text}'", hint=hint if match is None or match[1] not in FORMATS else
                       "1, 2 or 4 channels, such as f32x4")  # fmt: skip
    return {"format": match[1], "channels": int(match[2] or 1)}


def _one_of(key: str, text: str, known: tuple[str, ...]) -> str:
    if text not in known:
        raise PptError(f"{key} is '{text}'", hint=did_you_mean(text, known))
    return text
