"""The tables and keys that a GPU file and an ISA file may hold, with their types, units and ranges."""

from __future__ import annotations

from ppt_gpu.common.errors import did_you_mean
from ppt_gpu.common.policies import POLICIES
from ppt_gpu.spec.gpu import TASK_CLASSES
from ppt_gpu.spec.toml_reader import Flag, Keyed, Leaf, ListOf, Number, OneOf, Quantity, Table, Text

COALESCING = ("half_warp_1.0", "half_warp_1.2", "line", "sector", "segment")
LOCAL_LAYOUT = ("warp", "chip")
WRITE = ("write-back", "write-through", "write-evict")

_NONE: dict[str, object] = {"default": None}


def _count(minimum: int = 1, maximum: int | None = None, **more: object) -> Number:
    return Number(minimum=minimum, maximum=maximum, integer=True, **more)  # type: ignore[arg-type]


def _bytes(minimum: int = 0, **more: object) -> Quantity:
    return Quantity(dimension="bytes", plain=True, integer=True, minimum=minimum, **more)  # type: ignore[arg-type]


def _cycles(minimum: int = 0, **more: object) -> Quantity:
    return Quantity(dimension="cycles", plain=True, integer=True, minimum=minimum, **more)  # type: ignore[arg-type]


def _rate() -> Quantity:
    return Quantity(dimension="bytes/s", above=0)


def _per_cycle() -> Quantity:
    return Quantity(dimension="bytes/cycle", plain=True, above=0)


def _ratio(**more: object) -> OneOf:
    number = Number(above=0, maximum=1)
    percent = Quantity(dimension="ratio", above=0, maximum=1)
    return OneOf(leaves=(number, percent), expected='more than 0 and at most 1 (0.85 or "85 %")', **more)


_SM: dict[str, Leaf] = {
    "count": _count(1, 4096),
    "clock": Quantity(dimension="frequency", minimum=1e6, maximum=1e10),
    "schedulers": _count(1, 16),
    "issue_width": _count(1, 4),
    "policy": Text(choices=POLICIES),
    "max_warps": _count(1, 256),
    "max_blocks": _count(1, 256),
    "max_threads_per_block": _count(32, 65536),
    "registers": _count(256),
    "register_unit": _count(1),
    "register_granularity": Text(choices=("warp", "block")),
    "max_registers_per_thread": _count(1, 1024),
    "warp_granularity": _count(1, 16),
    "registers_per_block": _count(0, default=0),
    "turned": Flag(default=False),
}

_SHARED: dict[str, Leaf] = {
    "size": _bytes(),
    "per_block": _bytes(),
    "unit": _bytes(1),
    "reserved": _bytes(),
    "banks": _count(1, 64),
    "bank_width": _bytes(1),
    "latency": _cycles(1),
    "carveouts": ListOf(item=_bytes(), default=()),
    "atomics_share": Flag(default=False),
    "paired": Flag(default=True),
    "counts_lanes": Flag(default=False),
    "first_word": Flag(default=False),
}

_CACHE: dict[str, Leaf] = {
    "size": _bytes(),
    "line": _bytes(32),
    "sector": _bytes(32),
    "ways": _count(1),
    "latency": _cycles(1),
    "bandwidth": _per_cycle(),
    "mshrs": _count(1),
    "mshr_merges": _count(1),
    "write": Text(choices=WRITE),
    "write_allocate": Flag(),
    "replacement": Text(choices=("lru", "fifo")),
    "index": Text(choices=("linear", "hash")),
}

_SLICES: dict[str, Leaf] = {
    "partitions": _count(1, 16, default=1),
    "far_latency": _cycles(default=0),
    "partial_write": Number(minimum=1, maximum=16, default=1.0),
    "in_step": Number(minimum=0.1, maximum=16, default=1.0),
    "dirty_share": Number(minimum=0, maximum=1, default=0.0),
    "atomic_units": _count(0, 1024, default=0),
    "slices": _count(1, 1024, default=1),
    "slice_bandwidth": Quantity(dimension="bytes/cycle", plain=True, minimum=0, default=0.0),
    "interleave": _bytes(32, default=256),
    "waiting": _count(0, default=0),
    "slice_index": Text(choices=("linear", "hash", "polynomial"), default="linear"),
}

_INTERCONNECT: dict[str, Leaf] = {
    "bandwidth": _per_cycle(),
    "crossbar": Flag(default=False),
    "router": Flag(default=False),
    "port": _count(0, 1 << 16, default=0),
    "answers": _count(0, 1 << 16, default=0),
    "queue": _count(0, 1 << 16, default=0),
    "stops_after": _count(0, 200, default=0),
}

_DRAM: dict[str, Leaf] = {
    "size": _bytes(1),
    "bandwidth": _rate(),
    "efficiency": _ratio(),
    "latency": _cycles(1),
    "burst": _bytes(0, default=0),
    "channels": _count(1, 256, default=1),
    "turnaround": Number(minimum=0, maximum=10, default=0.0),
    "loaded_latency": _cycles(0, default=0),
    "rows_per_ns": Number(minimum=0, maximum=100, default=0.0),
    "row_bytes": _bytes(256, default=2048),
}

_MEMORY: dict[str, Leaf] = {
    "coalescing": Text(choices=COALESCING),
    "queue": _count(1),
    "transactions_per_cycle": Number(above=0, maximum=64),
    "constant_latency": _cycles(1),
    "atomics_per_cycle": Number(above=0, default=1.0),
    "float_atomics_per_cycle": Number(minimum=0, default=0.0),
    "requests_per_cycle": Number(minimum=0, maximum=64, default=0.0),
    "request_queue": _count(1, 4096, default=16),
    "miss_latency": _cycles(0, default=0),
    "atomics_apart": Flag(default=False),
    "atomics_wait": Flag(default=False),
    "highest_first": Flag(default=False),
    "heap": _count(0, 1 << 48, default=0),
    "local_layout": Text(choices=LOCAL_LAYOUT, default="warp"),
    "constant_queued": Flag(default=False),
    "constant_cold": Flag(default=False),
    "store_ack": Flag(default=False),
    "store_latency": _cycles(default=0),
}

_CODE: dict[str, Leaf] = {
    "size": _bytes(default=0),
    "line": _bytes(8, default=128),
    "ways": _count(1, default=4),
    "instruction": _bytes(1, default=8),
}

_CONSTANTS: dict[str, Leaf] = {
    "size": _bytes(default=0),
    "line": _bytes(8, default=64),
    "ways": _count(1, default=4),
    "miss": _cycles(0, default=0),
    "fill": Number(minimum=0, maximum=1024, default=0.0),
    "caches": _count(1, 1024, default=1),
}

_COLLECTORS: dict[str, Leaf] = {
    "units": _count(0, 8, default=0),
    "scope": Text(choices=("scheduler", "sm"), default="scheduler"),
    "steps": _count(1, 8, default=1),
    "banks": _count(1, 16, default=4),
    "fetches": _count(1, 16, default=1),
    "order": ListOf(item=Text(), default=()),
    "results": _count(0, 64, default=0),
    "one_result": Flag(default=False),
}

_HOST: dict[str, Leaf] = {
    "launch_overhead": Quantity(dimension="time", minimum=0),
    "block_launch": _cycles(),
    "link_bandwidth": _rate(),
    "pageable_bandwidth": _rate(),
    "copy_latency": Quantity(dimension="time", minimum=0),
    "warp_launch": _cycles(default=0),
    "blocks_per_cycle": Number(minimum=0, maximum=1024, default=0.0),
    "launch_gap": Quantity(dimension="time", minimum=0, default=0.0),
    "graph_gap": Quantity(dimension="time", minimum=0, default=0.0),
}

_PIPE = Table(
    fields={
        "lanes": _count(1, 65536),
        "scope": Text(choices=("scheduler", "sm")),
        "units": _count(1, 64, **_NONE),
        "collectors": _count(0, 16, default=0),
        "queue": _count(0, 64, default=0),
        "ii": _cycles(1, **_NONE),
    }
)


def _op(required: bool) -> Table:
    more: dict[str, object] = {} if required else _NONE
    fields: dict[str, Leaf] = {
        "pipe": Text(**more),  # type: ignore[arg-type]
        "latency": _cycles(1, **more),
        "ii": _cycles(1, **_NONE),
        "source": Text(default=""),
    }
    return Table(fields=fields)


def _op_name(name: str) -> tuple[str, str | None] | None:
    """A machine operation is a task class, alone or with a variant behind it."""
    parts = name.split(".")
    if any(".".join(parts[:size]) in TASK_CLASSES for size in (1, 2)) or name in ("load", "store", "atomic"):
        return None
    return f'"{name}" does not begin with a task class', did_you_mean(parts[0], TASK_CLASSES)


GPU = Table(
    fields={
        "base": Text(default=""),
        "title": Text(default=""),
        "chip": Text(),
        "compute_capability": Text(pattern=r"\d+\.\d", expected='a compute capability such as "3.5"'),
        "isa": Text(default=""),
        "perfect_memory": Flag(default=False),
        "notes": Text(default=""),
        "sm": Table(fields=_SM),
        "pipes": Keyed(item=_PIPE),
        "op": Keyed(item=_op(required=False), key=_op_name, default={}),
        "shared": Table(fields=_SHARED),
        "l1": Table(
            fields=_CACHE
            | {"caches_global": Flag(default=True), "banked": Flag(default=False), "unified": _bytes(default=0)}
            | {
                "index": Text(choices=("linear", "hash", "fermi")),
                "sms": _count(1, 8, default=1),
                "tag_sets": _count(0, 64, default=0),
                "sector_banks": _count(0, 8, default=0),
                "reserves": Flag(default=False),
                "miss_queue": _count(0, 256, default=0),
                "sets": _count(0, 4096, default=0),
            }
        ),
        "l2": Table(fields=_CACHE | _SLICES),
        "dram": Table(fields=_DRAM),
        "interconnect": Table(fields=_INTERCONNECT),
        "memory": Table(fields=_MEMORY),
        "code": Table(fields=_CODE, default={}),
        "constants": Table(fields=_CONSTANTS, default={}),
        "collectors": Table(fields=_COLLECTORS, default={}),
        "host": Table(fields=_HOST),
    }
)

#: Machine operations of an expansion: one name, or a list; "name*3" stands for three of them; "" is free.
_EXPANSION = ListOf(item=Text(), single=True)

ISA = Table(
    fields={
        "base": Text(default=""),
        "name": Text(default=""),
        "notes": Text(default=""),
        "scheduled": Flag(default=False),
        "sm_registers": _count(0, default=0),
        "sm_threads": _count(0, default=0),
        "op": Keyed(item=_op(required=True), key=_op_name),
        "expand": Keyed(item=_EXPANSION, default={}),
        "fuse": Keyed(item=_EXPANSION, default={}),
        "unnamed": Keyed(item=_EXPANSION, default={}),
    }
)
