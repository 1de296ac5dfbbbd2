"""machines: the shipped clusters, or everything about one."""

from __future__ import annotations

import argparse
import json
from textwrap import indent

from ppt_gpu.commands.options.arguments import terminal
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.units import format_rate
from ppt_gpu.report.text.listing import listing as listing_of
from ppt_gpu.spec.cluster import MachineSpec
from ppt_gpu.spec.load_cluster import load_machine_spec

WIDEST = (30, 20)  # columns of keys and values


def listing(*, as_json: bool = False, width: int = 120) -> str:
    """Name and title of each machine, for so many columns."""
    from ppt_gpu.spec.load_cluster import list_machines

    entries = list_machines()
    if as_json:
        rows = [{"name": name, "title": title} for name, title in entries]
        return json.dumps({"schema": 1, "machines": rows}, indent=2, ensure_ascii=False) + "\n"
    return listing_of(entries, width)


def sheet(spec: MachineSpec, *, as_json: bool = False, width: int = 120) -> str:
    """A machine's parts, then every number as written in its files, with its source, for so many columns."""
    if as_json:
        numbers = [{"key": s.path, "value": s.text, "source": s.source} for s in spec.sources.values()]
        head = {"schema": 1, "name": spec.name, "title": spec.title, "gpus_per_node": spec.gpus_per_node}
        parts = {key: getattr(spec, key).name for key in ("host", "network", "mpi", "nccl")}
        return json.dumps(head | parts | {"numbers": numbers}, indent=2, ensure_ascii=False) + "\n"
    net, nvlink = spec.network, spec.nvlink
    lines = [f"{spec.name}: {spec.title}"]
    lines += [f"  {spec.notes}"] if spec.notes else []
    lines += [
        f"  node: {' + '.join(f'{slot.count} x {slot.model}' for slot in spec.gpus)}, host {spec.host.title}",
        f"  between GPUs: {_nvlink(spec)}" if nvlink.topology != "none" else "  between GPUs: PCIe",
        f"  network: {spec.nic.count} x {format_rate(net.bandwidth)}, {net.title}",
        f"  libraries: {spec.mpi.title}; {spec.nccl.title}",
        "",
    ]
    rows = [(key, item.text, item.source) for key, item in spec.sources.items()]
    return "\n".join(lines) + "\n" + indent(listing_of(rows, width - 2, WIDEST), "  ")


def _nvlink(spec: MachineSpec) -> str:
    nvlink = spec.nvlink
    shapes = {"switch": "through switches", "all": "each with each", "edges": "as listed"}
    links = f"{nvlink.links} x " if nvlink.links else ""
    return f"NVLink {links}{format_rate(nvlink.bandwidth)}, {shapes[nvlink.topology]}"


def run(arguments: argparse.Namespace) -> str:
    if arguments.name is None:
        if arguments.set:
            raise PptError("--set needs the name of a machine", hint="ppt-gpu machines dgx_h100 --set nic.count=4")
        return listing(as_json=arguments.json, width=terminal()["width"])

    spec = load_machine_spec(arguments.name, arguments.set)
    return sheet(spec, as_json=arguments.json, width=terminal()["width"])
