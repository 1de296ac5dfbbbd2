"""Whether two objects of a dataclass (traces, tables of accesses, results) are the same, field by field."""

import dataclasses
from collections.abc import Container

import numpy as np


def assert_equal(found: object, expected: object, besides: Container[str] = (), about: str = "") -> None:
    """Arrays with their types; but for the fields `besides`. `about` is told where they differ."""
    for field in dataclasses.fields(expected):  # type: ignore[arg-type]
        if field.name in besides:
            continue
        left, right = getattr(found, field.name), getattr(expected, field.name)
        if isinstance(right, np.ndarray):
            same = left.dtype == right.dtype and np.array_equal(left, right)
        else:
            same = left == right
        assert same, f"{field.name}: {left}, expected {right}\n{about}"
