"""The tables and keys that the files of a cluster may hold: machine, host, network, MPI and NCCL."""

from __future__ import annotations

import math
from typing import Any

from ppt_gpu.common.errors import did_you_mean
from ppt_gpu.spec.libraries import PATHS
from ppt_gpu.spec.toml_reader import Flag, Keyed, ListOf, Number, Quantity, Table, TableList, Text

TOPOLOGIES = ("single_switch", "fat_tree", "dragonfly", "torus", "edges")
CONTENTION = ("ports", "links", "fair")
NVLINK = ("none", "switch", "all", "edges")
VENDORS = ("intel", "amd", "arm", "ibm")
GENERATIONS = ("volta", "ampere", "hopper", "blackwell")
ALGORITHMS = ("tree", "ring", "nvls", "nvls_tree")


def _count(minimum: int = 1, maximum: int | None = None, **more: Any) -> Number:
    return Number(minimum=minimum, maximum=maximum, integer=True, **more)


def _time(**more: Any) -> Quantity:
    return Quantity(dimension="time", minimum=0, maximum=1, **more)


def _rate(**more: Any) -> Quantity:
    return Quantity(dimension="bytes/s", above=0, **more)


def _share(**more: Any) -> Number:
    return Number(above=0, maximum=1, **more)


_HEAD = {"base": Text(default=""), "title": Text(default=""), "notes": Text(default="")}

HOST = Table(
    fields=_HEAD
    | {
        "vendor": Text(choices=VENDORS),
        "sockets": _count(1, 64),
        "cores": _count(1, 65536),
        "memory_bandwidth": _rate(),
    }
)

_EDGE = Text(
    pattern=r"[\w.]+-[\w.]+(\*[1-9]\d*)?", expected='two names and, if more than one, the links: "n0-s0", "n0-s0*2"'
)

NETWORK = Table(
    fields=_HEAD
    | {
        "topology": Text(choices=TOPOLOGIES),
        "contention": Text(choices=CONTENTION, default="ports"),
        "bandwidth": _rate(),
        "efficiency": _share(default=1.0),
        "nic_latency": _time(),
        "link_latency": _time(),
        "switch_latency": _time(),
        "message_gap": _time(default=0.0),
        "collective_latency": _time(default=0.0),
        "fat_tree": Table(
            fields={"down": ListOf(item=_count(), min_items=1), "up": ListOf(item=_count(), default=())}, default=None
        ),
        "dragonfly": Table(fields={"routers": _count(), "nodes": _count(), "global_links": _count()}, default=None),
        "torus": Table(
            fields={"dims": ListOf(item=_count(), default=()), "dimensions": _count(1, 6, default=3)}, default=None
        ),
        "edges": ListOf(item=_EDGE, default=()),
    }
)

_TIER = Table(
    fields={
        "up_to": Quantity(dimension="bytes", plain=True, minimum=0, default=math.inf),
        "overhead": _time(),
        "receive_overhead": _time(default=0.0),
        "gap": _time(default=0.0),
        "latency": _time(default=0.0),
        "bandwidth": _rate(default=math.inf),
        "rendezvous": Flag(default=False),
        "staged": Flag(default=False),
    }
)
_PATH = Table(
    fields={
        "latency": _time(default=0.0),
        "loopback": Flag(default=False),
        "both_ways": _rate(default=math.inf),
        "tiers": TableList(item=_TIER, min_items=1),
    }
)
MPI = Table(fields=_HEAD | dict.fromkeys(PATHS, _PATH) | {"local_copy": _time()})

_TRIPLE = ListOf(item=_time(), min_items=3, max_items=3)
_BY_NODES = ListOf(item=_rate(), min_items=3, max_items=3)


def _one_of(names: tuple[str, ...], what: str) -> Any:
    return lambda name: None if name in names else (f'there is no {what} "{name}"', did_you_mean(name, names))


_BY_ALGORITHM = Keyed(item=_TRIPLE, key=_one_of(ALGORITHMS, "algorithm"))
_GENERATION = _one_of(GENERATIONS, "generation")

NCCL = Table(
    fields=_HEAD
    | {
        "base_latency": _BY_ALGORITHM,
        "nvlink_latency": _BY_ALGORITHM,
        "pcie_latency": _BY_ALGORITHM,
        "network_latency": _BY_ALGORITHM,
        "tree_efficiency": Table(
            fields=dict.fromkeys(("ll", "ll128", "simple"), ListOf(item=_share(), min_items=23, max_items=23))
        ),
        "plateau": Keyed(item=Number(minimum=1, maximum=10), key=_GENERATION),
        "ll_bandwidth": Keyed(item=_BY_NODES, key=_GENERATION),
        "ring_ll128_bandwidth": Keyed(item=_rate(), key=_GENERATION),
        "tree_bandwidth": Keyed(item=_BY_NODES, key=_GENERATION),
        "nvls_efficiency": Keyed(item=_share(), key=_GENERATION),
        "net_overhead": Keyed(item=_time(), key=_one_of(VENDORS, "vendor")),
        "channels": _count(1, 64),
    }
)

_GPUS = Table(fields={"model": Text(), "count": _count(1, 1024)})
_NIC = Table(fields={"count": _count(1, 1024), "gpu_direct": Flag(default=True)})
_NVLINK_EDGE = Text(
    pattern=r"\d+-\d+(\*[1-9]\d*)?", expected='two GPUs and, if more than one, the links: "0-1", "0-1*2"'
)
_NVLINK = Table(
    fields={
        "topology": Text(choices=NVLINK),
        "links": _count(0, 64, default=0),
        "bandwidth": _rate(default=math.inf),
        "efficiency": _share(default=1.0),
        "latency": _time(default=0.0),
        "multicast": Flag(default=False),
        "edges": ListOf(item=_NVLINK_EDGE, default=()),
    },
    default={"topology": "none", "links": 0, "bandwidth": math.inf, "efficiency": 1.0, "latency": 0.0}
    | {"multicast": False, "edges": ()},
)
_PCIE = Table(fields={"to_gpu": _rate(), "to_host": _rate(), "latency": _time(), "peer": Flag(default=True)})
_COLLECTIVES = Table(
    fields={
        "bandwidth": _rate(),
        "overhead": _time(default=0.0),
        "network_efficiency": _share(),
        "fill": _time(default=0.0),
        "fill_size": Quantity(dimension="bytes", plain=True, minimum=0, default=0.0),
    }
)

MACHINE = Table(
    fields=_HEAD
    | {
        "nodes": _count(1, 1_000_000, default=1),
        "host": Text(),
        "network": Text(),
        "mpi": Text(),
        "nccl": Text(default="nccl"),
        "gpus": TableList(item=_GPUS, min_items=1),
        "nic": _NIC,
        "nvlink": _NVLINK,
        "pcie": _PCIE,
        "collectives": _COLLECTIVES,
    }
)
