"""check(): every error in an input file of any kind.

`check` of the files of a cluster: which kind a TOML file is, and what is in it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.units import format_bytes
from ppt_gpu.emulator.cache.recorded import describe, load_trace
from ppt_gpu.emulator.trace.trace_file import MAGIC
from ppt_gpu.frontends.machine_code import check_code, check_run
from ppt_gpu.frontends.prepare import prepare, read_module
from ppt_gpu.inputs import CODE, CUDA, MACHINE, TRACE, must_exist
from ppt_gpu.machine.registers import compiled_registers
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.ptx.linking.mangling import source_name
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.cluster_parts import PARTS, read_part
from ppt_gpu.spec.files import WHAT, loose, shipped
from ppt_gpu.spec.isa import isa_of
from ppt_gpu.spec.libraries import PATHS
from ppt_gpu.spec.load_cluster import load_machine_spec
from ppt_gpu.spec.toml_reader import read_toml
from ppt_gpu.tasklist.flat import flatten
from ppt_gpu.tasklist.text import read_tasklist
from ppt_gpu.workload.reader import load_workload
from ppt_gpu.workload.workload import Workload

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


def check(path: str | Path) -> list[str]:
    """Read any input file strictly, by its suffix and its keys. Returns what was found, a line each.

    Raises PptError or InputErrors with everything that is wrong with it.
    """
    path = Path(path)
    must_exist(path)
    readers: dict[str, Callable[[Path], list[str]]] = {".tl": _check_tasklist, ".toml": _check_toml}
    readers |= dict.fromkeys((".ptx", *CUDA), _check_kernels)
    if path.suffix == TRACE or (path.suffix not in readers and _is_trace(path)):
        return _check_trace(path)
    if path.name.endswith(MACHINE):
        return check_run(path)
    if path.name.endswith(CODE):
        return check_code(path)
    if path.suffix not in readers:
        kinds = "expected .ptx, .cu, .tl, .toml, .trace, .traceg, .g, .sass or .cubin"
        raise PptError(f"cannot check a '{path.suffix}' file", path=path, hint=kinds)
    return readers[path.suffix](path)


def _is_trace(path: Path) -> bool:
    try:
        with open(path, "rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def _check_trace(path: Path) -> list[str]:
    records = load_trace(path)
    return [
        f"{path}: trace file, {len(records)} records, {format_bytes(path.stat().st_size)}",
        *(f"  {line}" for line in describe(records)),
    ]


def _check_kernels(path: Path) -> list[str]:
    module = read_module(Workload(path.stem, str(path), str(path), ())).module
    version, isa = ".".join(str(part) for part in module.version), isa_of(module.target)
    lines = [f"{path}: PTX {version} for {module.target}, {len(module.kernels)} kernels"]
    for kernel in module.kernels.values():
        source = source_name(kernel.name)
        name = kernel.name if source == kernel.name else f"{source} ({kernel.name})"
        lines.append(
            f"  {name}: {len(kernel.instructions)} instructions, {len(kernel.params)} parameters, "
            f"about {compiled_registers(link(kernel, module), isa).count} registers"
        )
    return lines


def _check_tasklist(path: Path) -> list[str]:
    tasklist = read_tasklist(path)
    flat = flatten(tasklist)
    return [f"{path}: task list '{tasklist.name}', {len(flat.path)} tasks a warp when its loops are unrolled"]


def _check_toml(path: Path) -> list[str]:
    if {"ptx", "tasklist"} & read_toml(path).data.keys():
        workload = load_workload(path)
        if workload.ptx_path:
            workload = prepare(workload).workload
        return [f"{path}: workload '{workload.name}', {len(workload.launches)} launches", *workload.warnings]
    what = kind(path)
    if what:
        return check_file(path, what)
    gpu = load_gpu(str(path))
    return [f"{path}: GPU '{gpu.name}', {gpu.sm.count} SMs, {len(gpu.sources)} numbers"]
