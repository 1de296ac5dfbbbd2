"""Little's law: how much must be in flight to keep a resource busy (Little 1961; Volkov 2016, chapter 4)."""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.common.errors import PptError


@dataclass(frozen=True)
class Little:
    """concurrency = latency x throughput. s and B/s give B, cycles and operations/cycle give operations."""

    latency: float
    throughput: float
    unit: str = ""  # of the concurrency, for the report

    @property
    def concurrency(self) -> float:
        """What is in flight on average when the resource delivers `throughput`."""
        return self.latency * self.throughput

    def lines(self) -> list[str]:
        """The equation, its numbers and the result."""
        value = f"{self.concurrency:.6g} {self.unit}".rstrip()
        return [f"concurrency = latency x throughput = {self.latency:.6g} x {self.throughput:.6g} = {value}"]


def little(latency: float, throughput: float, unit: str = "") -> Little:
    """Little's law for a resource. Raises PptError for a negative latency or throughput."""
    if not (latency >= 0 and throughput >= 0):
        raise PptError(f"Little's law needs latency and throughput of 0 or more, not {latency:g} and {throughput:g}")
    return Little(latency, throughput, unit)


def sustained_throughput(concurrency: float, latency: float) -> float:
    """The throughput that `concurrency` in flight sustains: concurrency / latency. PptError unless latency > 0."""
    if not (concurrency >= 0 and latency > 0):
        raise PptError(f"a concurrency of {concurrency:g} over a latency of {latency:g} has no throughput")
    return concurrency / latency
