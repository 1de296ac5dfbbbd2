"""Cells of measured tables (CSV), read strictly."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ppt_gpu.common.errors import PptError


def positive_number(row: Mapping[str, str], name: str) -> float:
    """The number in column `name` of a row. PptError where it is none, not finite, or not above zero."""
    try:
        value = float(row[name])
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise PptError(f"{name} is '{row[name]}', expected a positive number")
    return value
