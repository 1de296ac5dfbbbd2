"""Which numbers of a hardware file the capture kit's micro-benchmarks determine, in the order in which to find them.

Latencies first, as chains of dependent operations depend on nothing else; then intervals and bandwidths. Each number
rests on the difference of two lengths of the same kernel, which is free of launch overhead and cold starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ppt_gpu.calibrate.solve import Number
from ppt_gpu.spec.gpu import Gpu


@dataclass(frozen=True)
class Rests:
    """A number, those that take the same value, and the kernels of a group that it rests on."""

    number: Number
    group: str
    kernels: tuple[str, ...]
    also: tuple[str, ...] = ()
    unit: str = ""


#: kernel of a chain without its "_1" or "_8" -> the operations whose latency it measures; the first for its interval
CHAINS: dict[str, tuple[str, ...]] = {
    "ffma": ("fp32.fma",),
    "fadd": ("fp32.add",),
    "fmul": ("fp32.mul",),
    "dfma": ("fp64.fma",),
    "dadd": ("fp64.add",),
    "hfma2": ("fp16.fma",),
    "imad": ("int32.mad",),
    "logic": ("int32.add", "int32.logic"),
    "ex2": ("sfu",),
    "rsqrt": ("sfu",),
    "popc": ("int32.popc",),
    "shuffle": ("shuffle",),
    "cvt": ("fp32.cvt",),
    "mma": ("tensor.mma.f16.m16n8k16",),
}

MEMORY = (
    Rests(Number("shared.latency", 1, 400), "shared_latency", ("chase_shared",)),
    Rests(Number("l1.latency", 1, 600), "l1_latency", ("chase",)),
    Rests(Number("l2.latency", 1, 2000), "l2_latency", ("chase",)),
    Rests(Number("dram.latency", 1, 4000), "dram_latency", ("chase",)),
    Rests(Number("memory.transactions_per_cycle", 0.25, 16, step=0.25), "l1_scatter", ("scatter_l1",)),
    Rests(Number("interconnect.bandwidth", 4, 512, step=0.5), "sm_bandwidth", ("read_l2",), unit="B/cycle"),
    Rests(Number("l2.bandwidth", 32, 32768, step=16), "l2_bandwidth", ("read_l2",), unit="B/cycle"),
    Rests(Number("dram.efficiency", 0.05, 1, step=0.004), "dram_bandwidth", ("stream_read",)),
    Rests(Number("memory.atomics_per_cycle", 0.01, 64, step=0.01), "atomics", ("atomics",)),
    Rests(Number("op.barrier.latency", 1, 400), "barriers", ("barriers",)),
)


def rests(gpu: Gpu) -> Iterator[Rests]:
    """Those of a GPU: operations that its ISA has one entry for are one number."""
    yield from _by_entry(gpu, "latency", "latency", "_1", Number("", 1, 2000))
    yield from (one for one in MEMORY if one.number.path.endswith("latency"))
    yield from _by_entry(gpu, "throughput", "ii", "_8", Number("", 1, 512))
    yield from (one for one in MEMORY if not one.number.path.endswith("latency"))


def _by_entry(gpu: Gpu, group: str, field: str, ending: str, like: Number) -> Iterator[Rests]:
    kernels: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for kernel, operations in CHAINS.items():
        names = list(dict.fromkeys(gpu.isa.op(name).name for name in operations))
        kernels.setdefault(names[0], []).append(kernel + ending)
        others.setdefault(names[0], []).extend(names[1:])
    for name, members in kernels.items():
        number = Number(_op(name, field), like.least, like.most)
        yield Rests(number, group, tuple(members), tuple(_op(one, field) for one in others[name]))


def _op(name: str, field: str) -> str:
    return f'op."{name}".{field}'
