"""What of a GPU lowering and the SM simulation see, as plain values: equal views, equal results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from ppt_gpu.spec.gpu import Gpu

#: Fields that neither reads, by class: names and sources, what occupancy and the host's times are made of. Blocks,
#: resident blocks, active SMs and L1 bytes, which come from some of them, reach the SM as arguments of their own.
UNSEEN = {
    "Gpu": ("name", "chip", "notes", "title", "sources"),
    "Isa": ("name",),
    "Op": ("name", "source"),
    "Sm": (
        "count", "clock", "max_warps", "max_blocks", "max_threads_per_block", "registers", "register_unit",
        "register_granularity", "max_registers_per_thread", "warp_granularity",
    ),
    "SharedMemory": ("size", "per_block", "unit", "reserved", "carveouts"),
    "Cache": ("slices", "slice_bandwidth", "interleave", "slice_index"),
    "Dram": ("size", "bandwidth", "channels"),
    "Host": ("launch_overhead", "launch_gap", "graph_gap", "link_bandwidth", "pageable_bandwidth", "copy_latency"),
}  # fmt: skip


def seen_by_sm(gpu: Gpu) -> tuple[Any, ...]:
    """Nested tuples of plain values. Clock and DRAM bandwidth are seen as one number, bytes a cycle."""
    return gpu.dram_bytes_per_cycle, _plain(gpu)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        unseen = UNSEEN.get(type(value).__name__, ())
        return tuple(_plain(getattr(value, field.name)) for field in fields(value) if field.name not in unseen)
    if isinstance(value, Mapping):
        return tuple((key, _plain(held)) for key, held in value.items())
    return value
