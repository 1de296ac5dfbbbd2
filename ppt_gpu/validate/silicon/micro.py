"""The set `micro`: bandwidths, latencies and rates of many GPUs as published, each held against the simulation.

What is published stands in validation/micro/published.csv, with its source and what it is worth: measured by others,
a vendor's document, or recalled (from memory).

The kernels are those of validation/micro, of the capture kit and of the measured curves. A rate or a latency is the
difference of a long and a short run, so that launch overhead and what is cold are in neither.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.common.paths import data_dir
from ppt_gpu.common.progress import parts
from ppt_gpu.inputs import open_workload
from ppt_gpu.pipeline import predict
from ppt_gpu.report.text.columns import columns
from ppt_gpu.scale.host import copy_seconds
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.validate.silicon.capture_runs import csv_rows
from ppt_gpu.validate.tables.rows import Row, is_asked, positive_number, summaries

THREADS = 1024  # of a block that fills an SM
STREAM_BYTES = 512 << 20  # of an array in DRAM
STREAM_THREADS = 256


@dataclass(frozen=True)
class Target:
    """A GPU, at the clock of the measurement where it is known."""

    name: str
    clock: float = 0.0  # MHz; 0: that of its file

    @property
    def overrides(self) -> tuple[str, ...]:
        return (f"sm.clock={self.clock:g} MHz",) if self.clock else ()

    @property
    def gpu(self) -> Gpu:
        return load_gpu(self.name, self.overrides)


@dataclass(frozen=True)
class Quantity:
    unit: str
    predict: Callable[[Target], float]


def cycles(target: Target, module: str, kernel: str, grid: int, block: int, arguments: Sequence[str]) -> float:
    """Cycles of a launch. `module`: below validation/. PptError for what the GPU cannot run."""
    path = data_dir("validation") / f"{module}.ptx"
    workload = open_workload(path, kernel=kernel, grid=(grid, 1, 1), block=(block, 1, 1), args=arguments)
    return float(predict(workload, target.name, overrides=target.overrides).main.value("kernel.cycles"))


# --- arithmetic ------------------------------------------------------------------------------------------------------


def _rate(kernel: str, letter: str, target: Target) -> float:
    """Results of chains of instructions in a cycle and SM: 1024 threads with eight chains each."""
    return _rounds(target, "micro/kernels", f"rate_{kernel}", 128 * THREADS, _numbers(letter))


def _mma_rate(target: Target) -> float:
    """Multiply-adds of matrix instructions 16 x 8 x 16 of f16, with sums in f32, in a cycle and SM."""
    return _rounds(target, "capture/tensor", "mma_8", 8 * THREADS // 32 * 16 * 8 * 16, ("f32[{threads}]",))


def _rounds(
    target: Target, module: str, kernel: str, amount: float, arguments: Sequence[str], rounds: int = 8
) -> float:
    """What a block does in a cycle that does `amount` a round, on every SM. The rounds are the last argument."""
    sms = target.gpu.sm.count
    given = [text.format(threads=sms * THREADS) for text in arguments]
    short, long = (cycles(target, module, kernel, sms, THREADS, (*given, f"i32={n}")) for n in (rounds, 3 * rounds))
    return amount * 2 * rounds / (long - short)


def _numbers(letter: str) -> tuple[str, ...]:
    first, second = ("3", "5") if letter == "u32" else ("0.5", "1")
    return f"{letter}[{{threads}}]", f"{letter}={first}", f"{letter}={second}"


def _chain(kernel: str, letter: str, target: Target) -> float:
    """Cycles from an instruction to the next one that needs its result."""
    given = [text.format(threads=32) for text in _numbers(letter)]
    short, long = (cycles(target, "capture/micro", f"{kernel}_1", 1, 32, (*given, f"i32={n}")) for n in (256, 1024))
    return (long - short) / (768 * 16)


def _barrier(warps: int, target: Target) -> float:
    """Cycles from a barrier of a block of `warps` warps to the next one."""
    threads = 32 * warps
    short, long = (
        cycles(target, "micro/kernels", "barriers", 1, threads, (f"s32[{threads}]", f"i32={n}")) for n in (8, 24)
    )
    return (long - short) / 256


# --- memory ----------------------------------------------------------------------------------------------------------


def _chase(words: int, steps: int, target: Target) -> float:
    """Cycles of a load whose address is the last one's result, in a ring of words that is passed at least once."""
    from ppt_gpu.validate.silicon.curve_kernels import chain_latency

    return chain_latency(target.name, 4 * words, target.gpu.sm.clock / 1e6) if steps == 0 else _cold(steps, target)


def _cold(steps: int, target: Target) -> float:
    """Cycles of a load that misses everywhere, with the multiplication that makes its address."""
    ring = ("u32[16777216]=ring:1056", "u32[1]")
    short, long = (cycles(target, "capture/micro", "chase", 1, 1, (*ring, f"i32={n}")) for n in (steps, 2 * steps))
    return (long - short) / steps


def _shared_chase(target: Target) -> float:
    """Cycles of a load from shared memory whose address is the last one's result."""
    short, long = (cycles(target, "micro/kernels", "shared_chase", 1, 32, ("u32[32]", f"i32={n}")) for n in (64, 192))
    return (long - short) / 2048


def _l2(target: Target) -> float:
    """GB/s of all SMs that read data that the L2 holds, past the L1."""
    gpu = target.gpu
    words = max(1 << max((gpu.l2.size // 16).bit_length() - 1, 0), 32768)
    passes = max(1, (8 << 20) // words)
    given = (f"f32[{words}]", f"f32[{gpu.sm.count * THREADS}]", f"i32={words}")
    short, long = (
        cycles(target, "capture/micro", "read_l2", gpu.sm.count, THREADS, (*given, f"i32={n}"))
        for n in (passes, 2 * passes)
    )
    return gpu.sm.count * 4 * words * passes / ((long - short) / gpu.sm.clock) / 1e9


def _dram(kernel: str, arrays: int, target: Target) -> float:
    """GB/s of a kernel that goes over `arrays` arrays, 16 B a thread; what stays in the L2 is no part of it."""
    buffers = [f"f32[{STREAM_BYTES // 2}]"] * max(arrays, 2 if kernel == "read" else 1)
    given = [*buffers, *["f32=3"] * (kernel in ("write", "triad"))]
    short, long = (
        cycles(target, "micro/kernels", kernel, size // 16 // STREAM_THREADS, STREAM_THREADS, given)
        for size in (STREAM_BYTES, 2 * STREAM_BYTES)
    )
    return arrays * STREAM_BYTES / ((long - short) / target.gpu.sm.clock) / 1e9


def _atomics(stride: int, target: Target) -> float:
    """Additions to global memory in a cycle by all SMs: to one word, or each thread to its own."""
    blocks, mask = 4 * target.gpu.sm.count, (1 << 20) - 1 if stride else 0
    given = ("u32[1048576]", f"i32={stride}", f"i32={mask}")
    short, long = (cycles(target, "capture/micro", "atomics", blocks, 256, (*given, f"i32={n}")) for n in (16, 48))
    return blocks * 256 * 32 / (long - short)


# --- the host --------------------------------------------------------------------------------------------------------


def _launch(target: Target) -> float:
    return 1e6 * target.gpu.host.launch_overhead


def _copy(target: Target) -> float:
    from ppt_gpu.workload.workload import Copy

    amount = 256 << 20
    return amount / copy_seconds(Copy(amount, "in", pinned=True), target.gpu.host) / 1e9


_SHARED = 64 * THREADS  # loads of a round
#: name -> unit, and its prediction
QUANTITIES: dict[str, Quantity] = {
    **{
        f"{name} rate": Quantity("a cycle and SM", partial(_rate, name, letter))
        for name, letter in (("ffma", "f32"), ("dfma", "f64"), ("hfma2", "u32"), ("imad", "u32"), ("ex2", "f32"),
                             ("popc", "u32"), ("shuffle", "u32"))
    },
    "mma rate": Quantity("multiply-adds a cycle and SM", _mma_rate),
    **{
        f"{name} latency": Quantity("cycles", partial(_chain, name, letter))
        for name, letter in (("ffma", "f32"), ("dfma", "f64"), ("hfma2", "u32"))
    },
    "barrier, 1 warp": Quantity("cycles", partial(_barrier, 1)),
    "barrier, 32 warps": Quantity("cycles", partial(_barrier, 32)),
    "shared latency": Quantity("cycles", _shared_chase),
    "L1 latency": Quantity("cycles", partial(_chase, 2048, 0)),
    "L2 latency": Quantity("cycles", partial(_chase, 1 << 17, 0)),
    "DRAM latency": Quantity("cycles", partial(_chase, 0, 1024)),
    "shared read, 4 B": Quantity(
        "B a cycle and SM",
        lambda t: _rounds(t, "micro/kernels", "shared_32", 4 * _SHARED, ("f32[{threads}]",), 16),
    ),
    "shared read, 16 B": Quantity(
        "B a cycle and SM",
        lambda t: _rounds(t, "micro/kernels", "shared_128", 16 * _SHARED, ("f32[{threads}]",), 16),
    ),
    "L1 read, 16 B": Quantity(
        "B a cycle and SM",
        lambda t: _rounds(t, "capture/micro", "read_l1", 8 * 16 * THREADS, ("f32[4096]", "f32[{threads}]"), 32),
    ),
    "L2 read": Quantity("GB/s", _l2),
    "DRAM read": Quantity("GB/s", partial(_dram, "read", 1)),
    "DRAM write": Quantity("GB/s", partial(_dram, "write", 1)),
    "DRAM copy": Quantity("GB/s", partial(_dram, "copy", 2)),
    "DRAM triad": Quantity("GB/s", partial(_dram, "triad", 3)),
    "atomics, one word": Quantity("a cycle", partial(_atomics, 0)),
    "atomics, own words": Quantity("a cycle", partial(_atomics, 1)),
    "launch": Quantity("us", _launch),
    "copy from pinned memory": Quantity("GB/s", _copy),
}  # fmt: skip


COLUMNS = ("quantity", "gpu", "clock_mhz", "value", "quality", "source", "note")
QUALITIES = ("measured", "vendor", "recalled")


@dataclass(frozen=True)
class Published:
    """A number that others give for a GPU."""

    quantity: str
    target: Target
    value: float  # in the unit of the quantity
    quality: str
    source: str  # id of hardware/SOURCES.md
    note: str


def published(texts: Sequence[str] = ()) -> list[Published]:
    """All, or those whose "GPU QUANTITY" contains one of `texts`. PptError for a line that makes no sense."""
    path = data_dir("validation") / "micro" / "published.csv"
    found = []
    for number, row in csv_rows(path.read_text(encoding="utf-8").splitlines(), str(path), COLUMNS):
        try:
            for name, known in (("quantity", tuple(QUANTITIES)), ("quality", QUALITIES)):
                if row[name] not in known:
                    raise PptError(f"unknown {name} '{row[name]}'", hint=did_you_mean(row[name], known))
            clock = positive_number(row, "clock_mhz") if row["clock_mhz"] else 0.0
            target, value = Target(row["gpu"], clock), positive_number(row, "value")
        except PptError as error:
            raise PptError(error.message, path=str(path), line=number, hint=error.hint) from error
        found.append(Published(row["quantity"], target, value, row["quality"], row["source"], row["note"]))
    return [one for one in found if is_asked(f"{one.target.name} {one.quantity}", texts)]


@cache
def predicted(quantity: str, target: Target) -> float:
    """What the simulation has for it. PptError for what the GPU cannot run."""
    return QUANTITIES[quantity].predict(target)


def pairs(texts: Sequence[str] = ()) -> list[tuple[Published, Row]]:
    """Every published number that `texts` choose, beside the prediction. PptError for an unknown GPU."""
    chosen = published(texts)
    for one in chosen:
        load_gpu(one.target.name)
    return [
        (
            one,
            Row(
                one.quantity, one.target.name, one.quality, "steady", one.value,
                predicted(one.quantity, one.target), QUANTITIES[one.quantity].unit,
            ),
        )
        for one in parts(chosen, "quantities")
    ]  # fmt: skip


def to_text(found: Sequence[tuple[Published, Row]]) -> str:
    """A table of all, and the errors by quality."""
    table = [("quantity", "gpu", "published", "predicted", "error", "unit", "source")]
    for one, row in found:
        source = one.source if one.quality == "measured" else f"{one.source}, {one.quality}"
        table.append(
            (row.case, row.gpu, f"{row.reference:.4g}", f"{row.predicted:.4g}", f"{row.error:+.1%}", row.unit, source)
        )
    errors = [("quality", "numbers", "mean |e|", "median", "worst", "bias")]
    by_quality = sorted((Row(**asdict(row) | {"gpu": ""}) for _, row in found), key=lambda r: QUALITIES.index(r.mode))
    for s in summaries(by_quality):
        shares = (f"{s.mean:.1%}", f"{s.median:.1%}", f"{s.worst:.1%}", f"{s.bias:+.1%}")
        errors.append((s.mode, str(s.cases), *shares))
    return "\n".join([*columns(table, left=2), "", *columns(errors, left=1)]) + "\n"


def to_json(found: Sequence[tuple[Published, Row]]) -> str:
    """The same, with the notes."""
    rows = [
        asdict(row) | {"error": row.error, "source": one.source, "clock_mhz": one.target.clock, "note": one.note}
        for one, row in found
    ]
    return json.dumps({"schema": 1, "set": "micro", "rows": rows}, indent=2) + "\n"
