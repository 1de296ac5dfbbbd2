"""Blem's statements on dark silicon (chapters 3 to 5) and ours, and how ours move with what she leaves open."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.multicore.base.device_scaling import load_scaling
from ppt_gpu.multicore.base.suite import load_suite
from ppt_gpu.multicore.dark_silicon.known_cores import fits, load_known_cores
from ppt_gpu.multicore.dark_silicon.known_projection import KnownProjection
from ppt_gpu.multicore.dark_silicon.projection import Projection, geomean, project
from ppt_gpu.multicore.dark_silicon.search import Chips
from ppt_gpu.multicore.dark_silicon.study import Study, load_study
from ppt_gpu.multicore.dark_silicon.sweeps import Swept, run_sweep
from ppt_gpu.programs import KERNELS, programs_of, project_figure
from ppt_gpu.validate.papers.statements import Comparison, Sensitivity, Statement

TABLES = ("conservative", "itrs")
#: of the sensitivity table: geometric means of the fastest chips and of symmetric CPU chips, dark share of the latter
COLUMNS = tuple(f"{what} {short}" for short in ("cons", "ITRS") for what in ("best", "cpu sym", "dark 22", "dark 8"))
#: what the documents do not say, or say twice; each is a change of the study
CHANGES: tuple[tuple[str, ...], ...] = (
    (),
    ("memory.l2=2 MiB",),
    ("memory.l2=18 MiB",),
    ("memory.l2_growth=2",),
    ("memory.latency=200",),
    ("memory.bandwidth=100 GB/s",),
    ("memory.bandwidth=400 GB/s",),
    ("s_core.cpi=0.5",),
    ("s_core.cpi=2",),
    ("s_core.slowest=1.66 GHz",),
    ("s_core.l1=32 KiB",),
    ("m_core.cpi=4",),
    ("m_core.l1=64 KiB",),
    ("composed.overhead=0",),
    ("composed.overhead=0.25",),
    ("frontier.points=16",),
    ("frontier.points=123",),
    ("method.rounding=floor",),
    ("method.clock_gain=performance",),
    ("method.sharing=none",),
    ("method.speedup=literal",),
    ("memory.l2=2 MiB", "memory.bandwidth=25 GB/s"),
)


def _projections(study: Study) -> list[Projection]:
    return [project(study, load_suite("parsec"), load_scaling(name), nodes=("22nm", "8nm")) for name in TABLES]


def _chips(projection: Projection, node: str, organisation: str, topology: str) -> Chips:
    return next(c for c in projection.at(node) if (c.organisation, c.topology) == (organisation, topology))


def best(projection: Projection, node: str = "8nm") -> float:
    """Geometric mean of the fastest chip of each benchmark."""
    return geomean([each.speedup for each in projection.best(node)])


def speedups() -> Comparison:
    """Section 3.3, bullets; the abstract of ISCA'11 for the dark shares."""
    found = _projections(load_study())
    rows: list[Statement] = []
    for projection, short, all_chips, cpu in zip(found, ("conservative", "ITRS"), (3.7, 7.9), (3.1, 6.4), strict=True):
        symmetric = geomean(_chips(projection, "8nm", "cpu", "symmetric").speedup)
        rows += [
            Statement(f"fastest chips at 8 nm, {short}", "3.3, 1.4", all_chips, best(projection), "x"),
            Statement(f"chapter 3 as 4.5.2 quotes it (CPU symmetric?), {short}", "4.5.2", cpu, symmetric, "x"),
        ]
    for projection, short in zip(found, ("conservative", "ITRS"), strict=True):
        symmetric = geomean(_chips(projection, "8nm", "cpu", "symmetric").speedup)
        for topology in ("dynamic", "composed"):
            gain = geomean(_chips(projection, "8nm", "cpu", topology).speedup) / symmetric
            rows.append(Statement(f"{topology} over symmetric CPU chips at 8 nm, {short}", "3.3", 1.10, gain, "x"))
    for projection, short in zip(found, ("conservative", "ITRS"), strict=True):
        for node, printed in (("22nm", 21.0), ("8nm", 50.0)):
            dark = 100 * float(np.mean(_chips(projection, node, "cpu", "symmetric").dark))
            label = f"dark share of symmetric CPU chips at {node.removesuffix('nm')} nm, {short}"
            rows.append(Statement(label, "ISCA'11" if node == "22nm" else "ISCA'11, >", printed, dark, "%"))
    return Comparison("PARSEC, upper-bound model, all organisations and topologies", tuple(rows))


def sweeps() -> Comparison:
    """Section 3.3: L2 share and SMT of symmetric CPU chips, bandwidth of symmetric GPU chips, at 45 nm."""
    study, suite, table = load_study(), load_suite("parsec"), load_scaling("itrs")

    def swept(name: str, organisation: str = "cpu") -> Swept:
        return run_sweep(name, study, suite, table, "45nm", organisation, "symmetric")

    cache, wide, threads = swept("l2-share"), swept("bandwidth", "gpu"), swept("smt")
    at_best = np.array(cache.values)[np.nanargmax(cache.speedup, axis=1)]
    gain = np.nanmax(cache.speedup, axis=1) / cache.speedup[:, cache.values.index(0.3)]
    more = wide.speedup[:, -1] / wide.speedup[:, wide.values.index(200)]
    smt = threads.speedup / threads.speedup[:, :1]
    rows = (
        Statement("smallest of the best L2 shares", "3.3", 20, 100 * float(at_best.min()), "%"),
        Statement("largest of the best L2 shares", "3.3", 50, 100 * float(at_best.max()), "%"),
        Statement("best L2 share over 30 %, most", "3.3", 1.20, float(gain.max()), "x"),
        Statement("benchmarks of 12 that 200 GB/s holds within 2x", "3.3", 10, float((more <= 2).sum()), ""),
        Statement("2-way SMT, best", "3.3", 1.5, float(smt[:, 1].max()), "x"),
        Statement("2-way SMT, worst", "3.3", 0.6, float(smt[:, 1].min()), "x"),
        Statement("8-way SMT, best", "3.3", 2.5, float(smt[:, 3].max()), "x"),
        Statement("8-way SMT, worst", "3.3", 0.3, float(smt[:, 3].min()), "x"),
    )
    return Comparison("PARSEC, sweeps at 45 nm", rows)


def core_counts() -> Comparison:
    """Section 4.5.1: figure 4.16's end points, and which cores power limits."""
    known = load_known_cores("blem")
    rows: list[Statement] = []
    limited: list[NDArray[np.bool_]] = []
    for name, short, least in zip(TABLES, ("conservative", "ITRS"), (16, 29), strict=True):
        table = load_scaling(name)
        found = [fit for fit in fits(known, table, "s") if fit.node == "8nm"]
        rows += [
            Statement(f"fewest S-cores at 8 nm, {short}", "4.5.1", least, min(fit.count for fit in found), "cores"),
            Statement(f"most S-cores at 8 nm, {short}", "4.5.1", 480, max(fit.count for fit in found), "cores"),
        ]
        at_16 = [fit for fit in fits(known, table) if fit.node == "16nm"]
        limited.append(np.array([fit.power_limited for fit in at_16]))
    free = float(np.mean([np.sum(~each) for each in limited]))
    rows.append(Statement("cores of eight that area limits at 16 nm (text: S1 alone)", "4.5.1", 1, free, ""))
    return Comparison("Figure 4.16, cores that fit", tuple(rows))


#: figure -> per kind of core: section, speedups at 8 nm (conservative, ITRS), cores, dark shares in percent
PRINTED = {
    "4.17": (("s", "4.5.2", (5.2, 20.4), (37, 39), (81, 72)), ("m", "4.5.2", (10.3, 24.0), (19, 42), (72, 52))),
    "4.18": (("s", "4.5.3", (6.0, 20.0), None, None), ("m", "4.5.3", (2.5, 3.0), None, None)),
    "5.6": (("s", "5.5", (3.2, 22.0), None, None), ("m", "5.5", (2.4, 6.3), None, None)),
}


def kernels() -> list[Comparison]:
    """Figures 4.17, 4.18 and 5.6: our kernels of the same kinds in the place of Blem's, which are not published."""
    programs, known = programs_of(KERNELS), load_known_cores("blem")
    tables = [load_scaling(name) for name in TABLES]
    found = []
    for figure, printed in PRINTED.items():
        rows: list[Statement] = []
        projections = project_figure(figure, known, tables, programs)
        for kind, where, speedup, cores, dark in printed:
            for place, short in enumerate(("conservative", "ITRS")):
                chips = projections[place].at("8nm", kind)
                label = f"{kind.upper()}-cores at 8 nm, {short}"
                rows.append(Statement(f"{figure}: speedup of {label}", where, speedup[place], chips.geomean, "x"))
                if cores:
                    count = float(np.median(chips.count))
                    rows.append(Statement(f"{figure}: number of {label}", where, cores[place], count, "cores"))
                if dark:
                    share = 100 * float(np.mean(chips.dark))
                    rows.append(Statement(f"{figure}: dark share, {label}", where, dark[place], share, "%"))
        rows += _in_words(figure, projections)
        title = f"Figure {figure}, {projections[0].model}, {', '.join(KERNELS)}"
        found.append(Comparison(title, tuple(rows)))
    return found


def _in_words(figure: str, projections: Sequence[KnownProjection]) -> list[Statement]:
    """What the text says of the chosen cores at 8 nm beside the speedups."""
    rows: list[Statement] = []
    last = [(projection.at("8nm", "s"), projection.at("8nm", "m")) for projection in projections]
    if figure == "4.17":
        for (s, m), short, faster in zip(last, ("conservative", "ITRS"), (8, 5), strict=True):
            share = 100 * float(np.mean(m.speedup > s.speedup))
            rows.append(Statement(f"4.17: kernels faster on M-cores, {short}", "4.5.2", 100 * faster / 9, share, "%"))
        small = [core in ("S1", "S2") for s, _ in last for core in s.cores]
        rows.append(Statement("4.17: kernels that choose S1 or S2", "4.5.2", 0, 100 * float(np.mean(small)), "%"))
    if figure == "5.6":
        counts = [geomean(chips.count) for pair in last for chips in pair]
        dark = [100 * float(np.mean(chips.dark)) for pair in last for chips in pair]
        rows += [
            Statement("5.6: fewest cores of a kind and scaling", "5.5", 35, min(counts), "cores"),
            Statement("5.6: most cores of a kind and scaling", "5.5", 119, max(counts), "cores"),
            Statement("5.6: least dark share", "5.5", 19, min(dark), "%"),
            Statement("5.6: largest dark share", "5.5", 81, max(dark), "%"),
        ]
    return rows


def sensitivities() -> list[Sensitivity]:
    """One row for each of CHANGES, with the figures of COLUMNS."""
    rows = []
    for change in CHANGES:
        figures: list[float] = []
        for projection in _projections(load_study(overrides=change)):
            symmetric = [_chips(projection, node, "cpu", "symmetric") for node in ("22nm", "8nm")]
            dark = [float(np.mean(chips.dark)) for chips in symmetric]
            figures += [best(projection), geomean(symmetric[1].speedup), *dark]
        rows.append(Sensitivity(", ".join(change) or "as shipped", tuple(figures)))
    return rows


def comparisons() -> list[Comparison]:
    """All groups of statements."""
    return [speedups(), sweeps(), core_counts(), *kernels()]
