"""How clock, power and area of a core change from one technology node to the next: tables in TOML or CSV."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path

from ppt_gpu.common.errors import InputErrors, PptError, did_you_mean
from ppt_gpu.spec.files import find
from ppt_gpu.spec.toml_reader import Checked, ListOf, Number, Table, TableList, Text, check, read_toml

_FACTOR = Number(above=0, maximum=1000)
_NODE = Table(
    fields={
        "name": Text(pattern=r"\S+", expected="a name without spaces"),
        "clock": _FACTOR,
        "power": _FACTOR,
        "area": _FACTOR,
        "voltage": Number(above=0, maximum=1000, default=math.nan),
        "source": Text(default=""),
    }
)
SCHEMA = Table(
    fields={
        "title": Text(),
        "notes": ListOf(item=Text(), default=(), single=True),
        "node": TableList(item=_NODE, min_items=1),
    }
)
_COLUMNS = ("name", "clock", "power", "area")


@dataclass(frozen=True)
class Node:
    """Factors of a core's clock, power and area over the first node of the table (45 nm in the shipped ones)."""

    name: str
    clock: float
    power: float
    area: float
    voltage: float = math.nan
    source: str = ""

    @property
    def capacitance(self) -> float:
        """Factor of the switched capacitance, from power = C V² f; not a number where the voltage is not given."""
        return self.power / (self.clock * self.voltage**2)


@dataclass(frozen=True)
class DeviceScaling:
    """A table of nodes, oldest first."""

    name: str
    title: str
    nodes: tuple[Node, ...]

    def node(self, name: str) -> Node:
        """The node `name` ("22", "22nm" or "22 nm"). Raises PptError with the names there are."""
        wanted = name.replace(" ", "").removesuffix("nm")
        for node in self.nodes:
            if node.name.removesuffix("nm") == wanted:
                return node
        names = [node.name for node in self.nodes]
        raise PptError(f"unknown technology node '{name}'", hint=did_you_mean(wanted, names) or ", ".join(names))


def load_scaling(name: str) -> DeviceScaling:
    """A shipped table by name ("itrs", "conservative", "foundry"), or a .toml or .csv file of one's own.

    A CSV has the columns name, clock, power, area. Raises PptError or InputErrors with everything that is wrong.
    """
    path = Path(name).expanduser() if name.endswith(".csv") else find("scaling", name)
    if path.suffix == ".csv":
        return DeviceScaling(path.stem, path.stem, _read_csv(path))
    checked = check(read_toml(path), SCHEMA)
    _check_names(checked)
    values = checked.finish()
    return DeviceScaling(path.stem, values["title"], tuple(Node(**node) for node in values["node"]))


def _check_names(checked: Checked) -> None:
    seen: set[str] = set()
    for index, node in enumerate(checked.get("node") or []):
        if node["name"] in seen:
            checked.problem(("node", index, "name"), f"a second node '{node['name']}'")
        seen.add(node["name"])


def _read_csv(path: Path) -> tuple[Node, ...]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise PptError(f"cannot read the file: {error.strerror}", path=path) from None
    except UnicodeDecodeError:
        raise PptError("the file is not UTF-8 text", path=path) from None
    rows = [(number, [cell.strip() for cell in row]) for number, row in enumerate(csv.reader(lines), 1) if any(row)]
    if not rows or sorted(rows[0][1]) != sorted(_COLUMNS):
        raise PptError(f"expected the columns {', '.join(_COLUMNS)}", path=path, line=1)
    if len(rows) == 1:
        raise PptError("the table has no node", path=path, line=1)
    nodes: list[Node] = []
    errors: list[PptError] = []
    for number, cells in rows[1:]:
        try:
            nodes.append(_csv_node(dict(zip(rows[0][1], cells, strict=False)), [node.name for node in nodes]))
        except PptError as error:
            errors.append(PptError(error.message, path=path, line=number, hint=error.hint))
    if errors:
        raise InputErrors(errors)
    return tuple(nodes)


def _csv_node(cells: dict[str, str], before: list[str]) -> Node:
    if len(cells) < len(_COLUMNS):
        raise PptError(f"{len(cells)} of {len(_COLUMNS)} columns")
    if cells["name"] in before or not cells["name"]:
        raise PptError(f"a second node '{cells['name']}'" if cells["name"] else "a node without a name")
    factors: dict[str, float] = {}
    for key in _COLUMNS[1:]:
        try:
            factors[key] = float(cells[key])
        except ValueError:
            raise PptError(f"{key} of node '{cells['name']}' is '{cells[key]}'", hint="expected a number") from None
        if not 0 < factors[key] <= 1000:
            raise PptError(
                f"{key} of node '{cells['name']}' is {cells[key]}", hint="expected more than 0, at most 1000"
            )
    return Node(cells["name"], factors["clock"], factors["power"], factors["area"])
