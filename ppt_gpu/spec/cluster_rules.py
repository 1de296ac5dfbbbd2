"""Rules between the values of a machine's files. Each broken rule is one more error of the file."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from ppt_gpu.common.units import format_bytes
from ppt_gpu.spec.toml_reader import Checked


def check_network(checked: Checked) -> None:
    """A topology needs its own table, a fat tree matching levels, an edge list one connected graph."""
    topology = checked.get("topology")
    if topology in ("fat_tree", "dragonfly") and checked.document.data.get(topology) is None:
        checked.problem(("topology",), f'topology = "{topology}" needs the table [{topology}]')
    if topology == "fat_tree":
        _fat_tree(checked)
    if topology == "edges":
        _edges(checked)
    if topology and topology != "edges" and checked.get("edges"):
        checked.contradiction([("edges",), ("topology",)], f'edges need topology = "edges", not "{topology}"')


def _fat_tree(checked: Checked) -> None:
    down, up = checked.get("fat_tree", "down"), checked.get("fat_tree", "up")
    if down and up is not None and len(up) != len(down) - 1:
        text = f"fat_tree.up has {len(up)} levels, expected {len(down) - 1}: all of fat_tree.down but the last"
        checked.contradiction([("fat_tree", "up"), ("fat_tree", "down")], text)


def _edges(checked: Checked) -> None:
    edges = checked.get("edges")
    if not edges:
        if edges is not None:
            checked.problem(("topology",), 'topology = "edges" needs the list edges')
        return
    near: dict[str, set[str]] = defaultdict(set)
    for text in edges:
        first, _, second = text.partition("*")[0].partition("-")
        if first == second:
            checked.problem(("edges",), f'edges: "{text}" joins {first} to itself')
        elif is_node(first) and is_node(second):
            checked.problem(("edges",), f'edges: "{text}" joins two nodes', "put a switch between them")
        near[first].add(second)
        near[second].add(first)
    nodes = [name for name in near if is_node(name)]
    if not nodes:
        hint = "a node's name is n and a number: n0, n1, ...; every other name is a switch"
        checked.problem(("edges",), "edges: there is no node among the names", hint)
        return
    expected = {f"n{number}" for number in range(len(nodes))}
    if set(nodes) != expected:
        missing = min(expected - set(nodes), key=lambda name: int(name[1:]))
        checked.problem(("edges",), f"edges: {len(nodes)} nodes, but none is named {missing}")
        return
    reached = _reached(near, min(near["n0"])) | {"n0"}
    cut = sorted((name for name in near if name not in reached), key=lambda name: (not is_node(name), len(name), name))
    if cut:
        shown = ", ".join(cut[:4]) + (", ..." if len(cut) > 4 else "")
        text = f"edges: the network is not connected: no way from n0 to {len(cut)} of {len(near)} places: {shown}"
        checked.problem(("edges",), text)


def is_node(name: str) -> bool:
    """Whether a name of an edge list is a node's: n and a number."""
    return name[:1] == "n" and name[1:].isdecimal()


def _reached(near: dict[str, set[str]], start: str) -> set[str]:
    """What a switch reaches through switches."""
    reached, todo = {start}, [start]
    while todo:
        for name in near[todo.pop()] - reached:
            reached.add(name)
            if not is_node(name):
                todo.append(name)
    return reached


def check_mpi(checked: Checked) -> None:
    """Every path has one tier without limit of size, and no two with the same."""
    for path in ("host_node", "host_network", "gpu_node", "gpu_network"):
        tiers = checked.get(path, "tiers")
        if not tiers or any(tier["up_to"] is None for tier in tiers):
            continue
        limits = sorted(tier["up_to"] for tier in tiers)
        if limits[-1] != float("inf"):
            checked.problem((path, "tiers"), f"{path}.tiers: none is for messages above {format_bytes(limits[-1])}")
        twice = [low for low, high in pairwise(limits) if low == high]
        if twice:
            size = "without up_to" if twice[0] == float("inf") else f"up to {format_bytes(twice[0])}"
            checked.problem((path, "tiers"), f"{path}.tiers: two are {size}")


def check_machine(checked: Checked) -> None:
    """NVLink between GPUs that are there, with links enough; NCCL's bandwidth within the links'."""
    slots = checked.get("gpus") or ()
    if any(slot["count"] is None for slot in slots):
        return
    count = sum(slot["count"] for slot in slots)
    topology, links = checked.get("nvlink", "topology"), checked.get("nvlink", "links")
    if topology in ("switch", "all") and links == 0:
        checked.contradiction([("nvlink", "topology"), ("nvlink", "links")], f'nvlink.links is 0 with "{topology}"')
    if topology == "edges":
        _nvlink_edges(checked, count)
    if topology not in (None, "none") and checked.get("nvlink", "bandwidth") == float("inf"):
        checked.problem(("nvlink",), "missing key nvlink.bandwidth")


def _nvlink_edges(checked: Checked, count: int) -> None:
    for text in checked.get("nvlink", "edges") or ():
        ends = text.partition("*")[0].split("-")
        outside = [end for end in ends if int(end) >= count]
        if outside:
            text = f'nvlink.edges: "{text}" names GPU {outside[0]}, but a node has {count}: 0 to {count - 1}'
            checked.problem(("nvlink", "edges"), text)
        elif ends[0] == ends[1]:
            checked.problem(("nvlink", "edges"), f'nvlink.edges: "{text}" joins GPU {ends[0]} to itself')
