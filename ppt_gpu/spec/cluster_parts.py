"""The files that a machine names: hosts, networks, MPI libraries and NCCL versions, each read and checked by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ppt_gpu.spec import cluster_schema as schema
from ppt_gpu.spec.cluster import Dragonfly, FatTree, HostSpec, NetworkSpec, Torus
from ppt_gpu.spec.cluster_rules import check_mpi, check_network
from ppt_gpu.spec.files import find, read_with_base
from ppt_gpu.spec.libraries import PATHS, MpiPath, MpiSpec, NcclSpec, Tier
from ppt_gpu.spec.toml_reader import Checked, Document, Table, check


@dataclass(frozen=True)
class Part:
    """A kind of file: its folder in hardware/, its schema, the rules between its values, what is made of them."""

    folder: str
    schema: Table
    rules: Callable[[Checked], None]
    make: Callable[[str, dict[str, Any]], Any]


def read_part(key: str, name: str) -> Any:
    """A host, network, MPI library or NCCL version by itself: `read_part("network", "my_network.toml")`.

    Raises PptError for an unknown name or a file that cannot be read, InputErrors with every error of its values.
    """
    path = find(PARTS[key].folder, name)
    return PARTS[key].make(path.stem, check_part(key, path).finish())


def check_part(key: str, path: Path, overrides: Sequence[Document] = ()) -> Checked:
    """The checked values of a file with `overrides` laid over it. Raises PptError for a file that cannot be read."""
    document = read_with_base(path, PARTS[key].folder)
    for override in overrides:
        document = document.merged(override)
    checked = check(document, PARTS[key].schema)
    PARTS[key].rules(checked)
    return checked


def titled(name: str, values: dict[str, Any]) -> dict[str, Any]:
    """The values of a file with its name, and a title if it has none; without what only says how it is written."""
    rest = {key: value for key, value in values.items() if key not in ("base", "title", "notes")}
    return {"name": name, "title": values["title"] or name} | rest


def _host(name: str, values: dict[str, Any]) -> HostSpec:
    return HostSpec(**titled(name, values))


def _network(name: str, values: dict[str, Any]) -> NetworkSpec:
    found = titled(name, values)
    for key, kind in (("fat_tree", FatTree), ("dragonfly", Dragonfly), ("torus", Torus)):
        own = key == found["topology"]
        found[key] = kind(**(found[key] or {"dims": (), "dimensions": 3})) if own else None
    edges: list[tuple[str, str]] = []
    for text in found["edges"]:
        ends, _, links = text.partition("*")
        first, _, second = ends.partition("-")
        edges += [(first, second)] * int(links or 1)
    return NetworkSpec(**found | {"edges": tuple(edges)})


def _mpi(name: str, values: dict[str, Any]) -> MpiSpec:
    found = titled(name, values)
    for key in PATHS:
        tiers = tuple(Tier(**tier) for tier in sorted(found[key]["tiers"], key=lambda tier: tier["up_to"]))
        found[key] = MpiPath(**found[key] | {"tiers": tiers})
    return MpiSpec(**found)


def _nccl(name: str, values: dict[str, Any]) -> NcclSpec:
    found = titled(name, values)
    rows = found["tree_efficiency"]
    return NcclSpec(**found | {"tree_efficiency": (rows["ll"], rows["ll128"], rows["simple"])})


def _no_rules(checked: Checked) -> None:
    """Nothing binds the values of these files to each other."""


PARTS = {
    "host": Part("hosts", schema.HOST, _no_rules, _host),
    "network": Part("networks", schema.NETWORK, check_network, _network),
    "mpi": Part("mpi", schema.MPI, check_mpi, _mpi),
    "nccl": Part("nccl", schema.NCCL, _no_rules, _nccl),
}
