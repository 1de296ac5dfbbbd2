"""Keys of a GPU file as parameters: is there such a key, does a value fit it, what is its number in a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ppt_gpu.common import units
from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.explore.expression import Value
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.spec.gpu_schema import GPU
from ppt_gpu.spec.toml_reader import Field, Keyed, Leaf, Mismatch, Quantity, Table, parse_override

#: how a number in base units is written where a file wants a unit
_BASE_UNITS = {"time": "s", "cycles": "", "bytes": "", "bytes/s": "B/s", "bytes/cycle": "", "frequency": "Hz"}

_SHOWN: dict[str, Callable[[float], str]] = {
    "time": units.format_time,
    "bytes": units.format_bytes,
    "bytes/s": units.format_rate,
    "bytes/cycle": "{:g} B/cycle".format,
    "frequency": units.format_frequency,
}


def leaf_of(key: str, label: str) -> Leaf:
    """The type of a key such as "dram.bandwidth". PptError that begins with `label` for an unknown one."""
    path = next(iter(_paths(parse_override(f"{key}=0").data)))
    field: Field = GPU
    for depth, part in enumerate(path):
        if isinstance(field, Keyed):
            wrong = field.key(part) if field.key else None
            if wrong:
                raise PptError(f"{label}: {wrong[0]}", hint=wrong[1])
            field = field.item
        elif isinstance(field, Table) and part in field.fields:
            field = field.fields[part]
        else:
            known = list(field.fields) if isinstance(field, Table) else []
            where = f" in '{'.'.join(path[:depth])}'" if depth else ""
            raise PptError(f"{label}: unknown key '{part}'{where}", hint=did_you_mean(part, known))
    if not isinstance(field, Leaf):
        raise PptError(
            f"{label}: '{key}' is a table, not a value", hint=f"such as {key}.{next(iter(_keys(field)), 'key')}"
        )
    return field


def check_value(key: str, text: str, label: str) -> None:
    """PptError when no GPU file could have this value at `key`."""
    leaf = leaf_of(key, label)
    value: Any = parse_override(f"{key}={text}").data
    while isinstance(value, dict):
        value = next(iter(value.values()))
    try:
        leaf.read(value)
    except Mismatch as error:
        raise PptError(f"{label}: {error}", hint=error.hint) from None


def text_of(key: str, value: Value) -> str:
    """`value`, a number in base units or a word, as a GPU file writes it."""
    leaf = leaf_of(key, key)
    if isinstance(value, str | bool):
        return str(value).lower() if isinstance(value, bool) else value
    if isinstance(value, float) and value == int(value):
        value = int(value)
    unit = _BASE_UNITS.get(leaf.dimension, "") if isinstance(leaf, Quantity) and not leaf.plain else ""
    return f"{value!r} {unit}".strip()


def shown_value(key: str, value: Value) -> str:
    """`value`, in base units, for people to read."""
    leaf = leaf_of(key, key)
    show = _SHOWN.get(leaf.dimension) if isinstance(leaf, Quantity) else None
    if show is None or isinstance(value, str):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return show(value)


def numbers_of(gpu: Gpu) -> dict[str, Value]:
    """Every plain value of a GPU file by its key, in base units: what expressions may name."""
    found: dict[str, Value] = {}
    for name, table in GPU.fields.items():
        if isinstance(table, Table):
            _add_plain(found, name, table, getattr(gpu, name))
    pipe = GPU.fields["pipes"]
    assert isinstance(pipe, Keyed) and isinstance(pipe.item, Table)
    for name in gpu.pipes:
        _add_plain(found, f"pipes.{name}", pipe.item, gpu.pipes[name])
    return found


def _add_plain(found: dict[str, Value], name: str, table: Table, part: Any) -> None:
    for key in table.fields:
        value = getattr(part, key)
        if isinstance(value, int | float | str):
            found[f"{name}.{key}"] = value


def _keys(field: Field) -> tuple[str, ...]:
    return tuple(field.fields) if isinstance(field, Table) else ()


def _paths(data: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(data, dict):
        return [path]
    return [found for key, value in data.items() for found in _paths(value, (*path, key))]
