"""Instructions by pipes: how much of each execution pipe each source line occupies."""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.report.result.detail import Detail


@dataclass(frozen=True)
class Pressure:
    """One executed line. `shares`: of the unit cycles of each of `Detail.pipes` while the SM has blocks."""

    line: int
    text: str
    issued: int
    shares: tuple[float, ...]


def pressures(detail: Detail) -> list[Pressure]:
    """The executed lines in the order of the source."""
    return [
        Pressure(
            line.line,
            line.text,
            line.issued,
            tuple(
                busy / (pipe.units * detail.sm_cycles) if detail.sm_cycles else 0.0
                for busy, pipe in zip(line.pipes, detail.pipes, strict=True)
            ),
        )
        for line in detail.source
        if line.issued
    ]
