"""Blem's statements on S-core models and translation (chapters 4 and 5) beside ours, from the inputs that she prints.

Measured times stand in figures only, so errors against hardware cannot be found again. What can: how far translated
inputs move a prediction from native ones (Tables 5.3 and 5.4), and how the cores stand to each other.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from ppt_gpu.common.paths import data_dir
from ppt_gpu.multicore.base.core import SCore
from ppt_gpu.multicore.base.core_file import load_core
from ppt_gpu.multicore.core_models import m_core
from ppt_gpu.multicore.core_models.m_core import MInputs
from ppt_gpu.multicore.core_models.s_core import Options, predict
from ppt_gpu.multicore.core_models.s_inputs import USUAL_ILP, SInputs
from ppt_gpu.multicore.representation.ir_to_m import blocks_of
from ppt_gpu.multicore.representation.ir_to_s import MISPREDICTED
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.validate.papers.statements import Comparison, Sensitivity, Statement

COLUMNS = ("S->M mean", "S->M max", "M->S mean", "SNB/Atom", "Atom best")
#: warps of an SM of a compute capability 1.1 GPU, and transactions of a coalesced and of another access
RESIDENT, COALESCED, SCATTERED = 24, 2, 32


@dataclass(frozen=True)
class Assumed:
    """What the tables leave open: shares of the operations, dependent neighbours, overlapped misses, the GPU's ILP."""

    change: str = "as shipped"
    loads: float = 0.3
    stores: float = 0.1
    floats: float = 0.35
    ilp_w2: float = 1.5
    no_overlap: bool = False
    literal: bool = False
    keep_warps: bool = True  # the tables' errors in warps and blocks count as mended (section 5.4.1)


CHANGES = (
    Assumed(),
    Assumed("few accesses: 15 % loads, 5 % stores", loads=0.15, stores=0.05),
    Assumed("many accesses: 45 % loads, 15 % stores", loads=0.45, stores=0.15),
    Assumed("no floats", floats=0.0),
    Assumed("60 % floats", loads=0.2, stores=0.05, floats=0.6),
    Assumed("in order, 20 % of neighbours depend", ilp_w2=1.8),
    Assumed("in order, 80 % of neighbours depend", ilp_w2=1.2),
    Assumed("no miss overlaps another", no_overlap=True),
    Assumed("equations as printed", literal=True),
    Assumed("translated warps and blocks as printed", keep_warps=False),
)


def table(name: str) -> dict[str, dict[str, float]]:
    """Benchmark -> column -> number of one of the two tables."""
    path = data_dir("validation") / "blem" / f"{name}.csv"
    with path.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    return {row["benchmark"]: {key: float(value) for key, value in row.items() if key != "benchmark"} for row in rows}


@cache
def _core(name: str) -> SCore:
    return load_core(name)


@cache
def _gpu() -> Gpu:
    """The pre-Fermi GPU of chapters 4 and 5."""
    return load_gpu("fx580")


def s_inputs(name: str, row: Mapping[str, float], side: str, assumed: Assumed) -> SInputs:
    """The inputs of a benchmark on an S-core, `side` "n" or "t"; branches follow from their mispredicted share."""
    total = row[f"instructions_{side}"]
    branches = min(row["branch_misses_t"] / MISPREDICTED / row["instructions_t"], 0.2)
    rest = 1 - assumed.loads - assumed.stores - assumed.floats
    shares = {
        "load": assumed.loads, "store": assumed.stores, "branch": min(branches, rest),
        "fp_add": assumed.floats / 2, "fp_mul": assumed.floats / 2, "int_add": max(rest - branches, 0.0),
    }  # fmt: skip
    llc = row[f"llc_misses_{side}"]
    return SInputs(
        n_i={kind: share * total for kind, share in shares.items()},
        name=name,
        ILP=row[f"ilp_{side}"],
        ILP_w2=assumed.ilp_w2,
        N_mL1=row[f"l1_misses_{side}"],
        N_mL2=max(row[f"l2_misses_{side}"], llc),
        N_mL3=llc,
        N_mL3_o=0.0 if assumed.no_overlap else None,
        N_mbr=row[f"branch_misses_{side}"],
    )


def s_time(row: Mapping[str, float], side: str, core: str, assumed: Assumed) -> float:
    """Seconds of a row of Table 5.4 on a core. Where the core has no L3, the misses of the table's L2 go to memory."""
    return predict(s_inputs("", row, side, assumed), _core(core), Options(literal=assumed.literal)).time


def m_inputs(row: Mapping[str, float], side: str, assumed: Assumed) -> MInputs:
    """The inputs of a warp on an M-core; with `keep_warps` translated totals are spread over the native warps."""
    share = row["warps_t"] / row["warps_n"] if side == "t" and assumed.keep_warps else 1.0
    warps = row["warps_n"] if assumed.keep_warps else row[f"warps_{side}"]
    insts, sfu, mem = (row[f"{kind}_{side}"] * share for kind in ("insts", "sfu", "mem"))
    coalesced = row[f"coalesced_{side}"]
    rest = max(insts - sfu - mem, 1.0)
    return MInputs(
        warps=warps,
        n_i={"fp_add": rest, "fp_special": sfu, "load": mem},
        N_SFU=sfu,
        N_sync=row[f"syncs_{side}"],
        N_mem=mem,
        N_off_chip=mem,
        avg_trans_warp=coalesced * COALESCED + (1 - coalesced) * SCATTERED,
        transaction_bytes=64 if coalesced == 1 else 32,
    )


def m_time(row: Mapping[str, float], side: str, assumed: Assumed) -> float:
    """Seconds of a row of Table 5.3 on the Quadro FX 580, with the native blocks where they are kept."""
    which = "n" if assumed.keep_warps else side
    per_block = max(1, round(row[f"warps_{which}"] / row[f"blocks_{which}"]))
    inputs = m_inputs(row, side, assumed)
    return m_core.predict(inputs, _gpu(), 32 * per_block, max(1, RESIDENT // per_block), literal=assumed.literal).time


def s_to_m(assumed: Assumed) -> dict[str, float]:
    """Benchmark -> how far the translated speedup lies from the one of native inputs, a share of it."""
    return {name: m_time(row, "n", assumed) / m_time(row, "t", assumed) - 1 for name, row in table("s_to_m").items()}


def m_to_s(assumed: Assumed) -> dict[str, float]:
    """The same for translations to an S-core."""
    return {
        name: s_time(row, "n", "sandybridge", assumed) / s_time(row, "t", "sandybridge", assumed) - 1
        for name, row in table("m_to_s").items()
    }


def over_atom(assumed: Assumed) -> np.ndarray:
    """Atom's time over Sandybridge's, of each benchmark, from native inputs."""
    rows = table("m_to_s").values()
    return np.array([s_time(row, "n", "atom", assumed) / s_time(row, "n", "sandybridge", assumed) for row in rows])


def geomean(values: Any) -> float:
    return float(np.exp(np.log(np.asarray(values, float)).mean()))


def translations() -> Comparison:
    """Section 5.4: the errors that translated inputs cause, and those of all predictions."""
    to_m, to_s = np.array(list(s_to_m(Assumed()).values())), np.array(list(m_to_s(Assumed()).values()))
    rows = (
        Statement("pre-Fermi from Sandybridge: input error, least", "Fig 5.2", 0, 100 * np.abs(to_m).min(), "%"),
        Statement("pre-Fermi from Sandybridge: input error, most", "Fig 5.2", 671, 100 * np.abs(to_m).max(), "%"),
        Statement("pre-Fermi from Sandybridge: input error, mean", "Fig 5.2", 122, 100 * np.abs(to_m).mean(), "%"),
        Statement("Sandybridge from pre-Fermi: lowest (printed with model error)", "5.4.2", -71, 100 * to_s.min(), "%"),
        Statement(
            "Sandybridge from pre-Fermi: highest (printed with model error)", "5.4.2", 476, 100 * to_s.max(), "%"
        ),
    )
    return Comparison("Translated inputs against native ones in the same model (Tables 5.3 and 5.4)", rows)


def cores() -> Comparison:
    """Sections 2.4 and 4.3: how the cores stand to each other; SPECmark where no speedups are printed."""
    ratios = over_atom(Assumed())
    rows = [
        Statement("Sandybridge over Atom, mean; printed: SPECmark", "Table 2.4a", 47.1 / 6, geomean(ratios), "x"),
        Statement("fastest on Atom over Sandybridge (scalar there)", "4.3.1", 0.5, 1 / float(ratios.min()), "x"),
    ]
    for name, score in (("a8", 1.19), ("xeon", 26.0), ("nehalem", 36.5)):
        native = [
            s_time(row, "n", name, Assumed()) / s_time(row, "n", "sandybridge", Assumed())
            for row in table("m_to_s").values()
        ]
        title = f"Sandybridge over {_core(name).title.partition(' (')[0]}, mean; printed: SPECmark"
        rows.append(Statement(title, "Table 2.4a", 47.1 / score, geomean(native), "x"))
    return Comparison("Native inputs of Sandybridge (Table 5.4) in the models of all cores", tuple(rows))


def text_against_tables() -> Comparison:
    """What the text says and what its own tables give."""
    counts, warps = table("m_to_s"), table("s_to_m")
    outside = sum(not 0.5 <= row["instructions_t"] / row["instructions_n"] <= 2 for row in counts.values())
    branches = counts["lbm"]["branch_misses_t"] / counts["lbm"]["branch_misses_n"]
    return Comparison(
        "The dissertation's text and its tables",
        (
            Statement("mean ILP of the out-of-order cores", "5.3.2", USUAL_ILP, _mean(counts, "ilp_n"), "x"),
            Statement("instruction counts off by more than a factor of 2", "5.3.2", 1, outside, ""),
            Statement("lbm, mispredicted branches translated over native", "5.3.2", 1.0, branches, "x"),
            Statement("lbm, blocks of eight warps", "Table 5.3", 3906, blocks_of(warps["lbm"]["warps_t"], 8), ""),
            Statement("benchmarks with the right number of warps", "5.3.1", 2, _same(warps, "warps"), ""),
        ),
    )


def _mean(rows: Mapping[str, Mapping[str, float]], column: str) -> float:
    return sum(row[column] for row in rows.values()) / len(rows)


def _same(rows: Mapping[str, Mapping[str, float]], kind: str) -> int:
    return sum(row[f"{kind}_n"] == row[f"{kind}_t"] for row in rows.values())


def comparisons() -> list[Comparison]:
    """All groups of statements."""
    return [translations(), cores(), text_against_tables()]


def sensitivities() -> list[Sensitivity]:
    """The figures of COLUMNS under each change of what the tables leave open."""
    return [Sensitivity(assumed.change, figures(replace(assumed))) for assumed in CHANGES]


def figures(assumed: Assumed) -> tuple[float, ...]:
    to_m = np.abs(list(s_to_m(assumed).values()))
    to_s = np.abs(list(m_to_s(assumed).values()))
    ratios = over_atom(assumed)
    return (float(to_m.mean()), float(to_m.max()), float(to_s.mean()), geomean(ratios), 1 / float(ratios.min()))
