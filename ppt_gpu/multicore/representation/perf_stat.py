"""Counters from the output of Linux `perf stat`: the table that it prints, and the lines of `perf stat -x,`.

Form (perf-stat manual, "CSV FORMAT"): value, unit, event, run time, share of the time counted, metric, its unit.
Modifiers of an event (":u") and its pmu ("cpu_core/instructions/") are left out of its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.multicore.representation.counters import Counters

#: event -> counters that it adds to. Several events may add to one counter.
EVENTS: Mapping[str, tuple[str, ...]] = {
    "instructions": ("instructions",),
    "inst_retired.any": ("instructions",),
    "cycles": ("cycles",),
    "cpu-cycles": ("cycles",),
    "cpu_clk_unhalted.thread": ("cycles",),
    "branches": ("branches",),
    "branch-instructions": ("branches",),
    "br_inst_retired.all_branches": ("branches",),
    "branch-misses": ("branch_misses",),
    "br_misp_retired.all_branches": ("branch_misses",),
    "fp_arith_inst_retired.scalar": ("fp_operations",),
    "fp_arith_inst_retired.vector": ("fp_operations",),
    "fp_arith_inst_retired.scalar_single": ("fp_operations",),
    "fp_arith_inst_retired.128b_packed_single": ("fp_operations",),
    "fp_arith_inst_retired.256b_packed_single": ("fp_operations",),
    "uops_retired.all": ("uops",),
    "uops_retired.slots": ("uops",),
    "uops_issued.any": ("uops",),
    "L1-dcache-loads": ("l1_accesses", "loads"),
    "mem_inst_retired.all_loads": ("l1_accesses", "loads"),
    "mem_uops_retired.all_loads": ("l1_accesses", "loads"),
    "L1-dcache-stores": ("l1_accesses", "stores"),
    "mem_inst_retired.all_stores": ("l1_accesses", "stores"),
    "mem_uops_retired.all_stores": ("l1_accesses", "stores"),
    "L1-dcache-load-misses": ("l1_misses",),
    "L1-dcache-store-misses": ("l1_misses",),
    "l2_rqsts.references": ("l2_accesses",),
    "l2_rqsts.miss": ("l2_misses",),
    "cache-references": ("l3_accesses", "l2_misses"),
    "cache-misses": ("l3_misses",),
    "LLC-loads": ("l3_accesses", "l2_misses"),
    "LLC-stores": ("l3_accesses", "l2_misses"),
    "LLC-load-misses": ("l3_misses",),
    "LLC-store-misses": ("l3_misses",),
    "dTLB-loads": ("dtlb_accesses",),
    "dTLB-stores": ("dtlb_accesses",),
    "dTLB-load-misses": ("dtlb_misses",),
    "dTLB-store-misses": ("dtlb_misses",),
    "iTLB-load-misses": ("itlb_misses",),
}
#: events that are known and not used; patterns
UNUSED = (
    "task-clock", "cpu-clock", "context-switches", "cs", "cpu-migrations", "migrations", "page-faults", "faults",
    "minor-faults", "major-faults", "alignment-faults", "emulation-faults", "dummy", "bpf-output", "cgroup-switches",
    "stalled-cycles-*", "ref-cycles", "bus-cycles", "slots", "topdown-*", "L1-icache-*", "iTLB-loads", "branch-load*",
    "dTLB-prefetch*", "LLC-prefetch*", "L1-dcache-prefetch*", "node-*", "msr/*", "power/*", "user_time", "system_time",
)  # fmt: skip
#: of two events for one counter, only the first that the file has counts: they measure the same in two ways
_EITHER = {"cache-references": ("LLC-loads", "LLC-stores"), "cache-misses": ("LLC-load-misses", "LLC-store-misses")}

_PLAIN = re.compile(
    r"\s*(?P<value><not counted>|<not supported>|[\d.,'\u00a0\u202f]+)\s+(?P<unit>msec|ns|Joules|MiB|%)?\s*"
    r"(?P<event>[A-Za-z_][\w.:/=,-]*)\s*(?:#.*|\(.*)?"
)
_TIME = re.compile(r"\s*(?P<value>[\d.,]+)\s*(?:\+-\s*[\d.,]+\s*)?seconds time elapsed.*")
_HEAD = "Performance counter stats for"


def is_perf(text: str) -> bool:
    """Whether `text` is the output of perf stat, in either form."""
    return _HEAD in text or _separator(text) is not None


def _separator(text: str) -> str | None:
    """The separator of perf stat -x, None where no line has its form."""
    for line in text.splitlines():
        found = re.match(r"(?:[\d.]+|<not counted>|<not supported>)([,;:|\t])(?:[A-Za-z%]*)\1[A-Za-z_]", line)
        found = found or re.match(r"\s*(?:[\d.]+|CPU\d+|S\d+[-\w]*)([,;|\t])[\d.]+\1.*\1[A-Za-z]", line)
        if found:
            return found[1]
    return None


def read_perf(text: str, path: str | Path) -> Counters:
    """The counters in the output `text` of perf stat; mistakes stand in its errors. Raises PptError for a cut table."""
    counters = Counters(str(path))
    separator = None if _HEAD in text else _separator(text)
    rows = _separated(text, separator, counters) if separator else _table(text, counters)
    names = {event for _, event, _ in rows}
    sums: dict[str, tuple[float, int]] = {}
    for line, event, value in rows:
        if any(event in others and first in names for first, others in _EITHER.items()):
            counters.ignored.append(event)
            continue
        for counter in EVENTS[event]:
            total, first_line = sums.get(counter, (0.0, line))
            sums[counter] = (total + value, first_line)
    for counter, (total, line) in sums.items():
        counters.add(counter, repr(total), line, replace=True)
    return counters


def _separated(text: str, separator: str, counters: Counters) -> list[tuple[int, str, float]]:
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = line.split(separator)
        if len(cells) < 5:
            message = f"'{line.strip()}' has {len(cells)} fields, perf stat -x writes at least 5: cut off?"
            counters.errors.append(PptError(message, path=counters.path, line=number))
            continue
        if not re.match("[A-Za-z]", cells[2]):
            message = f"'{cells[2]}' is no event: output by interval, CPU or core (-I, -A, --per-core) is not read"
            raise PptError(message, path=counters.path, line=number, hint="run perf stat without these options")
        rows += _row(number, cells[0], cells[2], counters)
    return rows


def _table(text: str, counters: Counters) -> list[tuple[int, str, float]]:
    rows, began, ended = [], False, False
    for number, line in enumerate(text.splitlines(), 1):
        began = began or _HEAD in line
        if not began or not line.strip() or _HEAD in line:
            continue
        elapsed = _TIME.fullmatch(line)
        if elapsed:
            counters.add("time", elapsed["value"].replace(",", ".") + " s", number)
            ended = True
        elif not ended:
            match = _PLAIN.fullmatch(line)
            if match:
                rows += _row(number, match["value"], match["event"], counters)
            elif not line.lstrip().startswith(("#", "(")):
                message = f"'{line.strip()}' is no line of perf stat: expected a value and an event"
                counters.errors.append(PptError(message, path=counters.path, line=number))
    if not ended:
        message = "the output of perf stat ends before 'seconds time elapsed': cut off?"
        counters.errors.append(PptError(message, path=counters.path, line=len(text.splitlines()) or None))
    return rows


def _row(line: int, value: str, event: str, counters: Counters) -> list[tuple[int, str, float]]:
    """[(line, event, value)] of a row; [] for one that is not counted, not used, or wrong."""
    name = _event_name(event)
    if any(fnmatchcase(name, pattern) for pattern in UNUSED):
        counters.ignored.append(name)
        return []
    if name not in EVENTS:
        hint = did_you_mean(name, EVENTS) or "leave the line out, or write the counters as a CSV file (docs/port.md)"
        counters.errors.append(PptError(f"unknown event '{event}'", path=counters.path, line=line, hint=hint))
        return []
    if value.startswith("<"):
        counters.ignored.append(f"{name} {value}")
        return []
    digits = re.sub(r"[,'\u00a0\u202f]", "", value)
    try:
        return [(line, name, float(digits))]
    except ValueError:
        counters.errors.append(PptError(f"'{value}' is not a number", path=counters.path, line=line))
        return []


def _event_name(event: str) -> str:
    """ "cpu_core/instructions/u" and "instructions:u" -> "instructions"."""
    inside = re.fullmatch(r"cpu\w*/([^/=,]+)/\w*", event)
    return inside[1] if inside else event.partition(":")[0]
