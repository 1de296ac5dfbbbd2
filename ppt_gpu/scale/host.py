"""From kernel times to the time of an application: launches, repeats and host copies on one stream.

A copy of b bytes takes latency + b / bandwidth, with the bandwidth of pinned or of pageable memory. The host enqueues
launches asynchronously, one every `launch_overhead`; a kernel starts when it has been enqueued and `launch_gap` after
its predecessor has ended, however long that ran: the GPU waits until all of it is done and visible before it starts
the next kernel of a stream. The overhead shows before the first kernel, and between kernels that are shorter than it by
more than the gap. The kernels of a CUDA graph are enqueued at once, and follow one another after `graph_gap`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ppt_gpu.common.errors import PptError
from ppt_gpu.spec.gpu import Host
from ppt_gpu.workload.workload import Copy


@dataclass(frozen=True)
class LaunchTime:
    """One launch, run `repeat` times in a row."""

    name: str
    seconds: float  # s on the GPU, one run, without overhead
    repeat: int = 1


@dataclass(frozen=True)
class Span:
    """A part of the application on the time axis."""

    name: str
    start: float  # s
    end: float  # s


@dataclass(frozen=True)
class ApplicationTime:
    """An application on one stream. total = kernels + copies + overhead."""

    total: float  # s
    kernels: float  # s, sum of all kernel runs
    copies: float  # s, sum of all host copies
    overhead: float  # s, launch overhead that nothing hides
    copy_times: tuple[tuple[str, float], ...]  # name, s
    spans: tuple[Span, ...]  # copies and launches in time order


def copy_seconds(copy: Copy, host: Host) -> float:
    """Seconds of one host copy: latency + bytes / bandwidth."""
    bandwidth = host.link_bandwidth if copy.pinned else host.pageable_bandwidth
    return host.copy_latency + copy.bytes / bandwidth


def application_time(
    launches: Sequence[LaunchTime], copies: Sequence[Copy], host: Host, *, graph: bool = False
) -> ApplicationTime:
    """Copies in, then all launches in order, in a stream or as one `graph`, then copies out; copies are synchronous.

    PptError for a negative time or size, a repeat below 1, or an unknown copy direction.
    """
    _check(launches, copies)
    spans: list[Span] = []
    now = _copy_all([copy for copy in copies if copy.direction == "in"], host, spans, 0.0)
    enqueued = now + host.launch_overhead  # when the host has enqueued the next run
    between, gap = (0.0, host.graph_gap) if graph else (host.launch_overhead, host.launch_gap)
    free = now  # when the next kernel may start
    for launch in launches:
        start = max(free, enqueued)
        last = enqueued + (launch.repeat - 1) * between
        # The last of n runs ends when all n ran one after another, or one run after it was enqueued.
        now = max(start + launch.repeat * (launch.seconds + gap) - gap, last + launch.seconds)
        spans.append(Span(launch.name, start, now))
        enqueued, free = last + between, now + gap
    now = _copy_all([copy for copy in copies if copy.direction == "out"], host, spans, now)
    times = tuple((_copy_name(copy), copy_seconds(copy, host)) for copy in copies)
    kernels = sum(launch.seconds * launch.repeat for launch in launches)
    copied = sum(seconds for _, seconds in times)
    return ApplicationTime(
        total=now,
        kernels=kernels,
        copies=copied,
        overhead=max(now - kernels - copied, 0.0),
        copy_times=times,
        spans=tuple(spans),
    )


def _copy_all(copies: Sequence[Copy], host: Host, spans: list[Span], now: float) -> float:
    for copy in copies:
        end = now + copy_seconds(copy, host)
        spans.append(Span(_copy_name(copy), now, end))
        now = end
    return now


def _copy_name(copy: Copy) -> str:
    return f"copy {copy.direction} {copy.name}".rstrip()


def _check(launches: Sequence[LaunchTime], copies: Sequence[Copy]) -> None:
    for launch in launches:
        if launch.seconds < 0 or launch.repeat < 1:
            raise PptError(
                f"launch '{launch.name}' of {launch.seconds} s, {launch.repeat} times",
                hint="a launch takes 0 s or more and runs at least once",
            )
    for copy in copies:
        if copy.direction not in ("in", "out"):
            raise PptError(f"copy '{copy.name}' with direction '{copy.direction}'", hint='expected "in" or "out"')
        if copy.bytes < 0:
            raise PptError(f"copy '{copy.name}' of {copy.bytes} B", hint="0 B or more")
