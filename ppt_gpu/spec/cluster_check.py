"""`check` of the files of a cluster: which kind a TOML file is, and what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ppt_gpu.spec.cluster_parts import PARTS, read_part
from ppt_gpu.spec.files import WHAT, loose, shipped
from ppt_gpu.spec.libraries import PATHS
from ppt_gpu.spec.load_cluster import load_machine_spec
from ppt_gpu.spec.toml_reader import read_toml

#: keys that only files of a kind have
_KEYS = {
    "machine": {"gpus", "nic", "nvlink", "pcie", "collectives", "mpi", "nccl", "network"},
    "network": {"topology", "nic_latency", "link_latency", "switch_latency", "fat_tree", "dragonfly", "torus", "edges"},
    "host": {"vendor", "sockets", "memory_bandwidth"},
    "mpi": {*PATHS, "local_copy"},
    "nccl": {"base_latency", "nvlink_latency", "network_latency", "tree_efficiency"},
}


def kind(path: Path, seen: tuple[Path, ...] = ()) -> str | None:
    """The kind of cluster file by its keys, else by its base; None: it is none. Raises PptError if it is not TOML."""
    data = read_toml(path).data
    for name, keys in _KEYS.items():
        if keys & data.keys() and not {"sm", "chip", "isa"} & data.keys():
            return name
    base: Any = data.get("base")
    if not isinstance(base, str) or path.resolve() in seen:
        return None
    folders = {"machine": "machines"} | {key: part.folder for key, part in PARTS.items()}
    near = path.parent / base
    if base.endswith(".toml"):
        return kind(near, (*seen, path.resolve())) if near.is_file() else None
    names = (key for key, folder in folders.items() if loose(base) in map(loose, shipped(folder)))
    return next(names, None)


def check_file(path: Path, what: str) -> list[str]:
    """What a cluster file of a kind holds, a line each. Raises PptError or InputErrors with all that is wrong."""
    if what == "machine":
        spec = load_machine_spec(path)
        gpus = " + ".join(f"{slot.count} {slot.model}" for slot in spec.gpus)
        return [f"{path}: machine '{spec.name}', nodes of {gpus}, network '{spec.network.name}'"]
    found = read_part(what, str(path))
    more = f", {len(found.edges)} links listed" if what == "network" and found.edges else ""
    return [f"{path}: {WHAT[PARTS[what].folder]} '{found.name}'{more}"]
