"""Rows of the [op] tables that make_isa.py writes, and what several generations share.

A row is an operation with its pipe, its latency, its initiation interval (None: the pipe's) and the source. Latencies
that ptxas's stall counts fix are looked up in sass_latency_ii.csv by the SASS opcode; the others carry their source in
timings_*.py. Source ids (PPT19, WONG, ADA4070, ...) are those of hardware/SOURCES.md.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    name: str
    pipe: str
    latency: int
    ii: int | None
    source: str


class Stalls:
    """Fixed latencies read from the control codes that ptxas emits."""

    def __init__(self, path: Path) -> None:
        with path.open() as file:
            self.rows = {(row["arch"], row["sass_op"]): row for row in csv.DictReader(file)}

    def fixed(self, arch: str, sass: str) -> tuple[int, str] | None:
        """Cycles from an instruction to a dependent one, with the source text."""
        row = self.rows.get((arch, sass))
        for column in ("raw_same_op", "raw_min_other_consumer") if row else ():
            if row and row[column]:
                return int(row[column]), f"ptxas stall count {sass} {arch} (PTXAS)"
        return None

    def column(self, arch: str, sass: str, column: str) -> int | None:
        """A cell of the table as a number, None where it is empty."""
        text = self.rows.get((arch, sass), {}).get(column, "")
        return int(text) if text else None

    def predicate(self, arch: str, sass: str) -> tuple[int, str] | None:
        """Cycles from a comparison to an instruction that it guards."""
        row = self.rows.get((arch, sass))
        if row and row["pred_to_guard"]:
            return int(row["pred_to_guard"]), f"ptxas stall count {sass} to guard {arch} (PTXAS)"
        return None


_MEMORY = "not used: the memory tables of the GPU decide"


def memory_rows(constants: Row | None = None) -> list[Row]:
    """Loads, stores and atomics: only the pipe matters, but for loads of constants where they are given."""
    names = [f"{access}.{space}" for access in ("load", "store", "atomic")
             for space in ("global", "shared", "local", "constant")]  # fmt: skip
    rows = [Row(name, "lsu", 1, None, _MEMORY) for name in [*names, "load", "store", "atomic"]]
    return [constants if constants and row.name == constants.name else row for row in rows]


def twins(rows: list[Row], shares: dict[str, int]) -> list[Row]:
    """64-bit integer operations as `count` dependent 32-bit ones, for opcodes that [expand] does not list."""
    by_name = {row.name: row for row in rows}
    result = []
    for name, count in shares.items():
        row = by_name.get(f"int32.{name}", by_name["int32"])
        ii = None if row.ii is None else row.ii * count
        text = f"derived: {count} x int32.{name} (opcodes not listed in [expand])"
        result.append(Row(f"int32.{name}64", row.pipe, row.latency * count, ii, text))
    return result


#: 64-bit forms that are more than one instruction even where [expand] has no entry
SHARES = {"add": 2, "mul": 4, "mad": 4, "logic": 2, "shift": 3, "setp": 2, "selp": 2, "minmax": 4, "mov": 2, "div": 4}
