"""Values and arrays of the chip models: their type, and the check that they are numbers in their range."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError

#: a number, or an array that broadcasts against the others of the equation
Values = float | NDArray[np.float64]


def require(
    name: str, value: Values, *, above: float | None = None, least: float | None = None, most: float | None = None
) -> NDArray[np.float64]:
    """`value` as an array. Raises PptError that names the first number that is not finite or out of its range."""
    found = np.asarray(value, dtype=float)
    good = np.isfinite(found)
    bounds: list[str] = []
    if above is not None:
        good, bounds = good & (found > above), [*bounds, f"more than {above:g}"]
    if least is not None:
        good, bounds = good & (found >= least), [*bounds, f"at least {least:g}"]
    if most is not None:
        good, bounds = good & (found <= most), [*bounds, f"at most {most:g}"]
    if not good.all():
        bad = float(found[~good].flat[0]) if found.ndim else float(found)
        raise PptError(f"{name} is {bad:g}", hint=f"expected {' and '.join(bounds) or 'a finite number'}")
    return found
