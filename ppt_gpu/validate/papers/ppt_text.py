"""The PPT paper redone, as text and JSON: a table for each of figures 6 to 8, and the projection of figure 9."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from ppt_gpu.common.units import format_bytes
from ppt_gpu.validate.papers.ppt import GPUS, PROJECTED, REFERENCE, Case, Speedup, speedups

FIGURES = {"m2090": "figure 6", "k40": "figure 7", "k6000": "figure 8", "pascal_ppt": "figure 9"}
#: what the paper says in words of each GPU (section 4.3): there are no numbers behind the figures to compare with
SAID = {
    "m2090": "predicted too fast: SGEMM, OPT_STENCIL (20 % at 512); a little too slow: STENCIL; OPT_STENCIL of 1024 "
    "did not fit its 6 GB",
    "k40": "predicted too slow: SGEMM, STENCIL; too fast: OPT_STENCIL (about 20 % at the largest)",
    "k6000": "predicted closely: SGEMM; too slow: STENCIL; too fast: OPT_STENCIL",
    "pascal_ppt": "nearly 2.5x of the K6000 on SGEMM and OPT_STENCIL, nearly 1.5x on STENCIL",
}


def to_text(cases: Sequence[Case]) -> str:
    """Seconds of 1000 runs with both copies, by GPU; then the projection."""
    lines: list[str] = []
    for gpu in GPUS:
        own = [case for case in cases if case.gpu == gpu]
        if own:
            lines += _table(gpu, own)
    lines += _projection(speedups(cases))
    lines.append(
        "The paper prints no times: its figures 6 to 9 have no numbers, so errors against its measurements cannot be "
        "given here."
    )
    return "\n".join(lines) + "\n"


def _table(gpu: str, cases: Sequence[Case]) -> list[str]:
    lines = [f"{gpu} ({FIGURES[gpu]}): seconds of 1000 runs and both copies"]
    lines.append(
        f"  {'application':12} {'size':>6} {'memory':>10} {'simulation':>11} {'PPT module':>11} {'one run':>10}"
    )
    for case in cases:
        head = f"  {case.application:12} {case.size:6} {format_bytes(case.needed):>10} "
        if case.simulation is None or case.module is None or case.kernel is None:
            lines.append(head + f"refused: out of memory, the GPU has {format_bytes(case.memory)}")
        else:
            times = f"{case.simulation:11.4g} {case.module:11.4g} {1e3 * case.kernel:8.4g} ms"
            limiter = case.limiter.partition(" (")[0]
            lines.append(f"{head}{times}  {limiter}")
    return [*lines, f"  the paper: {SAID[gpu]}", ""]


def _projection(found: Sequence[Speedup]) -> list[str]:
    if not found:
        return []
    lines = [f"Figure 9: {PROJECTED} over {REFERENCE}, at the largest size and over all sizes"]
    lines.append(
        f"  {'application':12} {'printed':>8} {'simulation':>11} {'all sizes':>14} {'PPT module':>11} {'all sizes':>14}"
    )
    for one in found:
        parts = [f"  {one.application:12} {one.printed:7.1f}x"]
        for ratios in (one.simulation, one.module):
            last = ratios[max(ratios)]
            span = f"{min(ratios.values()):.2f} to {max(ratios.values()):.2f}"
            parts.append(f"{last:10.2f}x {span:>14}")
        lines.append(" ".join(parts))
    return [*lines, ""]


def to_json(cases: Sequence[Case]) -> str:
    """The same as one JSON document."""
    projection = [asdict(one) for one in speedups(cases)]
    document = {"schema": 1, "set": "ppt", "rows": [asdict(case) for case in cases], "projection": projection}
    return json.dumps(document, indent=2) + "\n"
