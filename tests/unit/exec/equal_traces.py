"""Whether two traces, or two tables of accesses, are the same, array for array."""

import dataclasses

import numpy as np


def assert_equal(found, expected):
    for field in dataclasses.fields(expected):
        left, right = getattr(found, field.name), getattr(expected, field.name)
        if isinstance(right, np.ndarray):
            assert left.dtype == right.dtype and np.array_equal(left, right), field.name
        else:
            assert left == right, field.name
