"""How many cores fit a chip's budget of area and power, and how much of it is dark (ISCA'11; Blem, section 2.2.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.common.units import parse_quantity
from ppt_gpu.multicore.base.values import Values, require
from ppt_gpu.multicore.dark_silicon.topology import topology_named

ROUNDINGS = ("none", "floor", "round")
#: additional area of each light core that can fuse with others (ISCA'11, from memory)
FUSING = 0.10


@dataclass(frozen=True)
class Budget:
    """What the cores of a chip may take: mm² and W."""

    area: float
    power: float

    def __post_init__(self) -> None:
        require("the area budget in mm2", self.area, above=0)
        require("the power budget in W", self.power, above=0)

    def __str__(self) -> str:
        return f"{self.power:g} W, {self.area:g} mm2"


def parse_budget(text: str, default: Budget) -> Budget:
    """The budget "125 W,111 mm2", in any order; what is not said is as in `default`.

    Raises PptError for a part that is neither an area nor a power and for one that is given twice.
    """
    found: dict[str, float] = {}
    for part in text.split(","):
        kind = "power" if part.strip().endswith("W") else "area"
        try:
            value = parse_quantity(part, kind)
        except ValueError as error:
            raise PptError(f"--budget {text}: {error}", hint='expected for example "125 W,111 mm2"') from None
        if kind in found:
            raise PptError(f"--budget {text}: two values of {kind}")
        found[kind] = value
    return Budget(found.get("area", default.area), found.get("power", default.power))


@dataclass(frozen=True)
class Cores:
    """Light cores beside the heavy one (if any), what limits their number, and the share of the area that is dark."""

    count: NDArray[np.float64]  # 0 where not one fits
    power_limited: NDArray[np.bool_]
    dark: NDArray[np.float64]


def cores_within(
    budget: Budget,
    topology: str,
    *,
    area: Values,
    power: Values,
    heavy_area: Values = 0.0,
    heavy_power: Values = 0.0,
    rounding: str = "none",
    fusing: float = FUSING,
) -> Cores:
    """The number of light cores of `area` (mm²) and `power` (W) beside a heavy core of `heavy_area` and `heavy_power`.

        symmetric   min(A / a,             P / p)
        asymmetric  min((A - a_H) / a,     (P - p_H) / p)
        dynamic     min((A - a_H) / a,     P / p)             the heavy core is off while the light ones run
        composed    min(A / ((1 + t) a),   P / p)             the heavy core is made of light ones, t = `fusing`

    Not even one fits where fewer than one light core does, where the heavy core alone takes more than the power
    budget, or where a composed chip has less area than its heavy core. dark = 1 - area of all cores / A.
    Raises PptError for an unknown topology or rounding.
    """
    topology = topology_named(topology)
    if rounding not in ROUNDINGS:
        raise PptError(f"unknown rounding '{rounding}'", hint=did_you_mean(rounding, ROUNDINGS))
    area, power = (
        require("the area of a core in mm2", area, above=0),
        require("the power of a core in W", power, above=0),
    )
    if topology == "symmetric":
        heavy_area = heavy_power = 0.0
    beside = 0.0 if topology == "composed" else heavy_area
    footprint = (1.0 + fusing) * area if topology == "composed" else area
    by_area = (budget.area - beside) / footprint
    by_power = (budget.power - (heavy_power if topology == "asymmetric" else 0.0)) / power
    count = np.minimum(by_area, by_power)
    if rounding != "none":
        count = np.floor(count + 1e-9) if rounding == "floor" else np.round(count)
    fits = (count >= 1) & (np.asarray(heavy_power) <= budget.power)
    if topology == "composed":
        fits &= count * footprint >= np.asarray(heavy_area)
    count = np.where(fits, count, 0.0)
    return Cores(count, np.asarray(by_power < by_area), 1.0 - (beside + count * footprint) / budget.area)
