"""What of a GPU lowering sees, and lowering and the SM simulation together: equal views, equal results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

from ppt_gpu.emulator.trace.identity import digest
from ppt_gpu.sm.l2_sharing.camping import has_slices, may_camp
from ppt_gpu.sm.l2_sharing.dram_rows import opens_rows
from ppt_gpu.spec.gpu import Gpu, Isa

T = TypeVar("T")

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
    "Dram": ("size", "bandwidth", "channels"),
    "Host": ("launch_overhead", "launch_gap", "graph_gap", "link_bandwidth", "pageable_bandwidth", "copy_latency"),
}  # fmt: skip


def seen_by_sm(gpu: Gpu) -> tuple[Any, ...]:
    """Nested tuples of plain values. Clock and DRAM bandwidth are seen as one number, bytes a cycle, but for rows."""
    return gpu.dram_bytes_per_cycle, _rows(gpu), _plain(gpu)


def seen_by_lowering(gpu: Gpu) -> tuple[Any, ...]:
    """Nested tuples of plain values: all that making a Program of a trace reads of the GPU."""
    from ppt_gpu.sm.accesses.access import geometry

    return (
        _plain(geometry(gpu)), gpu.sm.issue_width, gpu.l2.size, gpu.l2.in_step,
        gpu.shared.latency,
        gpu.shared.counts_lanes, gpu.l1.sms, gpu.sm.count,
        gpu.memory.constant_latency, gpu.memory.constant_queued, gpu.memory.atomics_wait, gpu.perfect_memory,
        gpu.memory.local_layout, gpu.memory.heap,
        _plain(gpu.pipes), _plain(gpu.isa),
        _plain(gpu.collectors), gpu.constants.size, gpu.constants.line, _plain(gpu.l2) if has_slices(gpu) else None,
        _plain(gpu.l1) if may_camp(gpu) else None, _rows(gpu),
    )  # fmt: skip


def _rows(gpu: Gpu) -> tuple[float, ...]:
    """What decides whether opening rows takes longer than moving their bytes."""
    dram = gpu.dram
    return (dram.rows_per_ns, dram.row_bytes, dram.bandwidth, dram.efficiency) if opens_rows(gpu) else ()


def digest_of(view: Callable[[T], tuple[Any, ...]], of: T) -> str:
    """The digest of one of these views of a GPU, or of a part; equal digests, equal views."""
    known, found = _latest.get(view, (None, ""))
    if known is not of:
        found = digest(view(of))
        _latest[view] = of, found
    return found


#: what was last asked for, by view: a prediction asks for the same a few times, and many GPUs have one ISA
_latest: dict[Callable[[Any], tuple[Any, ...]], tuple[Any, str]] = {}


def _plain(value: Any) -> Any:
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    if kind is Isa:  # by far the most of a GPU, which both views have
        return digest_of(_fields, value)
    if _seen_fields(kind) is not None:
        return _fields(value)
    if isinstance(value, Mapping):
        return tuple([(key, _plain(held)) for key, held in value.items()])
    return value


def _fields(value: Any) -> tuple[Any, ...]:
    """What of a dataclass is seen."""
    kind: Any = type(value)
    held = [getattr(value, name) for name in _seen_fields(kind) or ()]
    return tuple([one if type(one) in _PLAIN else _plain(one) for one in held])


#: what most fields hold
_PLAIN = frozenset((int, float, str, bool, type(None)))


@cache
def _seen_fields(kind: type[Any]) -> tuple[str, ...] | None:
    """The fields of a dataclass that are not UNSEEN; None for any other class."""
    if not is_dataclass(kind):
        return None
    unseen = UNSEEN.get(kind.__name__, ())
    return tuple(field.name for field in fields(kind) if field.name not in unseen)
