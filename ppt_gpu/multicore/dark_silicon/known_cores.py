"""Chips of cores that exist (Blem, chapters 4 and 5): which, how large and how hot, and how many fit at each node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.multicore.base.core_file import load_core
from ppt_gpu.multicore.base.device_scaling import DeviceScaling
from ppt_gpu.multicore.dark_silicon.chip import Budget, cores_within
from ppt_gpu.spec.files import find
from ppt_gpu.spec.toml_reader import Checked, Number, Quantity, Table, TableList, Text, check, read_toml

KINDS = ("s", "m")
_SHARE = Number(minimum=0, maximum=1)
_AREA = Quantity(dimension="area", above=0)
_POWER = Quantity(dimension="power", above=0)
_OWN_AREA = Quantity(dimension="area", above=0, default=None)
_OWN_POWER = Quantity(dimension="power", above=0, default=None)
_CORE = Table(
    fields={"name": Text(), "file": Text(), "kind": Text(choices=KINDS), "area": _OWN_AREA, "power": _OWN_POWER}
)
SCHEMA = Table(
    fields={
        "title": Text(),
        "budget": Table(fields={"area": _AREA, "power": _POWER, "bandwidth": Quantity(dimension="bytes/s", above=0)}),
        "baseline": Table(fields={"core": Text(), "cores": Number(minimum=1, maximum=4096, integer=True)}),
        "parallel": Table(fields={"s": _SHARE, "m": _SHARE}),
        "core": TableList(item=_CORE, min_items=1),
    }
)


@dataclass(frozen=True)
class KnownCore:
    """One core at 45 nm: an S-core of hardware/cores, or an M-core, one SM of a GPU of hardware/gpus."""

    name: str
    file: str
    kind: str
    area: float  # mm²
    power: float  # W


@dataclass(frozen=True)
class KnownCores:
    """Cores to choose from, the budget of a chip, and the chip that speedups are over."""

    title: str
    budget: Budget
    bandwidth: float  # B/s of the chip
    baseline: KnownCore
    baseline_cores: int
    parallel: Mapping[str, float]  # kind of core -> f
    cores: tuple[KnownCore, ...]

    def of(self, kind: str) -> tuple[KnownCore, ...]:
        """The cores of one kind, "s" or "m"."""
        return tuple(core for core in self.cores if core.kind == kind)


def load_known_cores(name: str) -> KnownCores:
    """A shipped set ("blem") or a .toml file. S-cores without area or power take those of their file.

    Raises PptError or InputErrors with everything that is wrong.
    """
    checked = check(read_toml(find("chips", name)), SCHEMA)
    cores = [_core(checked, index, row) for index, row in enumerate(checked.get("core") or [])]
    named = {core.name: core for core in cores if core is not None}
    base = checked.get("baseline", "core")
    if base is not None and base not in named:
        checked.problem(("baseline", "core"), f"baseline.core: no core is named '{base}'", did_you_mean(base, named))
    values = checked.finish()
    return KnownCores(
        values["title"],
        Budget(values["budget"]["area"], values["budget"]["power"]),
        values["budget"]["bandwidth"],
        named[base],
        values["baseline"]["cores"],
        values["parallel"],
        tuple(named.values()),
    )


def _core(checked: Checked, index: int, row: dict[str, object]) -> KnownCore | None:
    name, file, kind = row["name"], row["file"], row["kind"]
    if name is None or file is None or kind is None:
        return None
    path = ("core", index)
    if any(checked.get("core", before, "name") == name for before in range(index)):
        checked.problem((*path, "name"), f"a second core '{name}'")
    sizes = {"area": row["area"], "power": row["power"]}
    try:
        if kind == "s":
            known = load_core(str(file))
            sizes = {key: getattr(known, key) if value is None else value for key, value in sizes.items()}
        else:
            find("gpus", str(file))
    except PptError as error:
        checked.problem((*path, "file"), f"{'.'.join(('core', 'file'))}: {error.message or error}", error.hint)
        return None
    for key, value in sizes.items():
        if value is None:
            checked.problem(
                path, f"an SM needs its {key}", f'such as {key} = "{"8.1 mm2" if key == "area" else "2.4 W"}"'
            )
    if None in sizes.values():
        return None
    return KnownCore(str(name), str(file), str(kind), float(str(sizes["area"])), float(str(sizes["power"])))


@dataclass(frozen=True)
class Fit:
    """A symmetric chip of one core at one node."""

    node: str
    core: KnownCore
    count: int  # 0: not one fits
    power_limited: bool
    dark: float  # share of the area


def fits(known: KnownCores, scaling: DeviceScaling, kind: str = "") -> list[Fit]:
    """How many of each core fit at each node, rounded to the nearest whole number as figure 4.16 does.

    The nodes in order, in each the cores in order. Raises PptError where not one core of all fits.
    """
    found = []
    for node in scaling.nodes:
        cores = known.of(kind) if kind else known.cores
        here = []
        for core in cores:
            room = cores_within(
                known.budget, "symmetric", area=core.area * node.area, power=core.power * node.power, rounding="round"
            )
            here.append(Fit(node.name, core, int(room.count), bool(room.power_limited), _dark(room.dark)))
        if not any(fit.count for fit in here):
            smallest = min(cores, key=lambda core: core.area)
            watts, room_taken = smallest.power * node.power, smallest.area * node.area
            raise PptError(
                f"not one core fits the budget of {known.budget} at {node.name}",
                hint=f"{smallest.name} takes {watts:.3g} W and {room_taken:.3g} mm2",
            )
        found += here
    return found


def _dark(share: object) -> float:
    """Rounding up may take a little more than the area: then nothing is dark."""
    return float(np.clip(np.asarray(share, dtype=float), 0.0, 1.0))
