"""A measured GPU: the numbers of its hardware file from a capture, each with its confidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median

from ppt_gpu.calibrate.capture_rests import Rests, rests
from ppt_gpu.calibrate.report import Calibrated, value_of
from ppt_gpu.calibrate.solve import calibrated
from ppt_gpu.common.errors import PptError
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.validate.silicon.capture import Capture, Time, at_row
from ppt_gpu.validate.silicon.capture_runs import HOST, kernel_time

#: host copies up to the first show their latency, from the other on their bandwidth
_SMALL, _LARGE = 1 << 16, 1 << 24


def calibrate_capture(capture: Capture, base: str | Path, groups: Sequence[str] = ()) -> list[Calibrated]:
    """Every number that the rows of `capture` determine; the others are those of `base`. `groups`: only these.

    Raises PptError when the base is another kind of GPU, or no number can be found.
    """
    gpu = load_gpu(base)
    if gpu.compute_capability != capture.capability:
        major, minor = gpu.compute_capability
        message = (
            f"a capture of compute capability {capture.facts['compute_capability']}, {gpu.name} has {major}.{minor}"
        )
        raise PptError(message, path=capture.path, hint="--base: a GPU of the same capability, or a file over one")
    found = list(_facts(capture, gpu))
    if not groups or HOST in groups:
        found += _host(capture, gpu)
    overrides = [_override(one) for one in found]
    for one in rests(gpu):
        if not groups or one.group in groups:
            for number in _found(capture, base, one, overrides):
                found.append(number)
                if number.determined:
                    overrides.append(_override(number))
    if not any(one.rests_on[0].startswith(one_of.group) for one in found for one_of in rests(gpu)):
        raise PptError(
            "no row that a number rests on", path=capture.path, hint="the rows of run.sh, of which each kernel has two"
        )
    return found


def _override(number: Calibrated) -> str:
    unit = f" {number.unit}" if number.unit else ""
    return f"{number.path}={number.value:.10g}{unit}"


def _facts(capture: Capture, gpu: Gpu) -> Iterator[Calibrated]:
    """What the driver says, and the clock that the launches ran at."""
    clocks = sorted(time.clock for time in capture.times)
    tenth = len(clocks) // 10
    low, high = clocks[tenth], clocks[-1 - tenth]
    yield Calibrated("sm.clock", median(clocks), "MHz", gpu.sm.clock / 1e6, low, high, 0.0, ("clock_mhz of all rows",))
    sms = _count(capture, "sms")
    yield Calibrated("sm.count", sms, "", gpu.sm.count, sms, sms, 0.0, ("the driver",))


def _count(capture: Capture, name: str) -> int:
    text = capture.facts[name]
    if not text.isdecimal() or not int(text):
        raise PptError(f"{name} is '{text}', expected a positive number", path=capture.path)
    return int(text)


# --- the host --------------------------------------------------------------------------------------------------------


def _host(capture: Capture, gpu: Gpu) -> Iterator[Calibrated]:
    by_kernel: dict[str, list[Time]] = {}
    for time in capture.of(HOST):
        by_kernel.setdefault(time.run.kernel, []).append(time)
    for time in by_kernel.get("launch", []):
        before = 1e6 * gpu.host.launch_overhead
        yield Calibrated("host.launch_overhead", time.median, "us", before, time.low, time.high, 0.0, ("host launch",))
    rates = (
        ("pinned", "link_bandwidth", gpu.host.link_bandwidth),
        ("pageable", "pageable_bandwidth", gpu.host.pageable_bandwidth),
    )
    for memory, field, before in rates:
        names = [
            f"copy_{direction}_{memory}" for direction in ("in", "out") if f"copy_{direction}_{memory}" in by_kernel
        ]
        found = [rate for name in names if (rate := _bandwidth(by_kernel[name])) is not None]
        if found:
            value = fmean(found)  # the file has one number for both directions
            residual = fmean(abs(rate / value - 1.0) for rate in found)
            rows = tuple(f"host {name}" for name in names)
            yield Calibrated(f"host.{field}", value, "GB/s", before / 1e9, min(found), max(found), residual, rows)
    yield from _copy_latency(by_kernel, gpu)


def _bytes(time: Time) -> int:
    return int(time.run.args[0].partition("=")[2])


def _bandwidth(times: Sequence[Time]) -> float | None:
    """GB/s from the two largest copies; None where there are not two large ones."""
    large = sorted((time for time in times if _bytes(time) >= _LARGE), key=_bytes)
    if len(large) < 2 or large[-1].median <= large[-2].median:
        return None
    return (_bytes(large[-1]) - _bytes(large[-2])) / (large[-1].median - large[-2].median) / 1e3


def _copy_latency(by_kernel: Mapping[str, Sequence[Time]], gpu: Gpu) -> Iterator[Calibrated]:
    """What of the smallest pinned copies their bytes do not explain."""
    found: dict[str, float] = {}
    for kernel, times in by_kernel.items():
        if kernel.endswith("_pinned"):
            least = min(times, key=_bytes)
            rate = _bandwidth(times) or gpu.host.link_bandwidth / 1e9
            if _bytes(least) <= _SMALL:
                found[f"host {kernel}"] = max(least.median - _bytes(least) / rate / 1e3, 0.0)
    if found:
        value, before = fmean(found.values()), 1e6 * gpu.host.copy_latency
        yield Calibrated(
            "host.copy_latency", value, "us", before, min(found.values()), max(found.values()), 0.0, tuple(found)
        )


# --- kernels ---------------------------------------------------------------------------------------------------------


def _found(capture: Capture, base: str | Path, one: Rests, overrides: Sequence[str]) -> Iterator[Calibrated]:
    """Nothing where the capture lacks the rows."""
    pairs = [pair for kernel in one.kernels for pair in _pairs(capture, one.group, kernel)]
    if not pairs:
        return
    # Cycles, by the clock of each row: it may have moved between rows.
    measured = [long.median * long.clock - short.median * short.clock for short, long in pairs]
    spread = [_spread(*pair) / cycles if cycles > 0 else 1.0 for pair, cycles in zip(pairs, measured, strict=True)]
    if min(measured) <= 0:
        raise PptError(
            f"{one.group}: the longer run of {one.kernels[0]} took no longer than the shorter one",
            path=capture.path,
            hint="was the GPU busy with something else? Run the kit again",
        )

    def predicted(value: float) -> list[float]:
        unit = f" {one.unit}" if one.unit else ""
        values = [f"{path}={value:.10g}{unit}" for path in (one.number.path, *one.also)]
        gpu = load_gpu(base, [*overrides, *values])
        return [_cycles(capture, long, gpu) - _cycles(capture, short, gpu) for short, long in pairs]

    before = value_of(load_gpu(base), one.number.path)
    names = [f"{one.group} {long.run.name}" for _, long in pairs]
    found = calibrated(one.number, one.unit, before, measured, predicted, names, spread)
    yield found
    for path in one.also:
        yield Calibrated(**{**vars(found), "path": path, "before": value_of(load_gpu(base), path)})


def _cycles(capture: Capture, time: Time, gpu: Gpu) -> float:
    with at_row(capture, time):
        return kernel_time(time.run, gpu, time.registers) * gpu.sm.clock / 1e6


def _pairs(capture: Capture, group: str, kernel: str) -> Iterator[tuple[Time, Time]]:
    """(shorter, longer) runs of a kernel that differ in its last scalar; of several, those like the first."""
    own = [time for time in capture.of(group) if time.run.kernel == kernel]
    if own:
        like = [time for time in own if _but_the_length(time) == _but_the_length(own[0])]
        shortest, longest = min(like, key=_length), max(like, key=_length)
        if longest is not shortest:
            yield shortest, longest


def _length(time: Time) -> float:
    """The last scalar: steps, rounds, passes or words."""
    scalars = [text.partition("=")[2] for text in time.run.args if "[" not in text]
    return float(scalars[-1]) if scalars else 0.0


def _but_the_length(time: Time) -> tuple[object, ...]:
    scalars = [text for text in time.run.args if "[" not in text]
    return time.run.grid, time.run.block, *scalars[:-1]


def _spread(short: Time, long: Time) -> float:
    """Cycles by which the difference of two medians may be off: half of both ranges of the repeats."""
    return (long.high - long.low) * long.clock / 2 + (short.high - short.low) * short.clock / 2
