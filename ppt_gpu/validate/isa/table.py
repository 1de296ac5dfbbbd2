"""The comparison of expansions with machine code as text and JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from statistics import fmean

from ppt_gpu.sass.latencies import Distance
from ppt_gpu.validate.isa.expansions import Comparison, by_pipe, kind, regrouped
from ppt_gpu.validate.tables.rows import summaries, summary_lines, to_text

#: registers of a thread that never limit occupancy
FEW = 24

COUNTED = (
    "Counted: each instruction once, in all blocks. Of the machine code, without NOPs, padding, the branch to itself",
    "at the end, subroutines for rare operands (slowpath, mediumpath), the blocks that call them, and where warps go",
    "whose lanes are apart at a shuffle (BRA.DIV); other subroutines of the compiler at each call. Compiled with the",
    "pragma nounroll, so that loops are those of the PTX.",
)

LATENCIES = (
    "Results of fixed latency only, within basic blocks. Where readers are never close, the code leaves more than the",
    "latency; half of a 64-bit result may be there before the whole.",
)


def _share(ours: int, theirs: int) -> str:
    return f"{ours / theirs - 1:+8.1%}" if theirs else f"{'':8}" if ours == theirs else f"{'new':>8}"


def _lines(comparison: Comparison) -> list[str]:
    c = comparison
    lines = [f"{c.kernel} on sm_{c.arch} ({c.tools})"]
    if (c.unrolled, c.ours_unrolled) != (c.theirs.total(), c.ours.total()):
        lines.append(f"with loops unrolled: {c.unrolled} instructions by ptxas, {c.ours_unrolled} by us")
    lines.append(f"registers of a thread: {c.registers} by ptxas, {c.ours_registers} by us, as they are allocated")
    lines += ["", f"{'pipe, operation':24} {'ours':>7} {'machine':>8} {'error':>8}"]
    ours, theirs = by_pipe(c.ours, c.isa), by_pipe(c.theirs, c.isa)
    for pipe in sorted({*ours, *theirs}):
        lines.append(f"{pipe:24} {ours[pipe]:7} {theirs[pipe]:8} {_share(ours[pipe], theirs[pipe])}")
        mine, real = (_kinds(each, c, pipe) for each in (c.ours, c.theirs))
        for name in sorted({*mine, *real}):
            lines.append(f"  {name:22} {mine[name]:7} {real[name]:8} {_share(mine[name], real[name])}")
    total = (c.ours.total(), c.theirs.total())
    return [*lines, f"{'all':24} {total[0]:7} {total[1]:8} {_share(*total)}", ""]


def _kinds(counts: Counter[str], comparison: Comparison, pipe: str) -> Counter[str]:
    on_pipe = {name: count for name, count in counts.items() if comparison.isa.op(name).pipe == pipe}
    return regrouped(Counter(on_pipe), kind)


def kernels_text(found: Sequence[Comparison]) -> str:
    """One table for each kernel, by pipe and operation."""
    return "\n".join([*(line for each in found for line in _lines(each)), *COUNTED, ""])


def latencies_text(found: Sequence[Distance]) -> str:
    """Latencies beside what stall counts leave; "less" where the code shows a shorter one."""
    lines = ["Cycles from a result to its nearest reader, by the stall counts of the machine code", ""]
    lines.append(f"{'operation':24} {'ours':>6} {'code':>6}  {'reader':16} {'pairs':>6}")
    for each in found:
        less = "  less" if each.least < each.latency else ""
        row = f"{each.operation:24} {each.latency:6} {each.least:6}  {each.reader:16} {each.count:6}{less}"
        lines.append(row)
    return "\n".join([*lines, "", *LATENCIES, ""])


def set_text(name: str, found: Sequence[Comparison]) -> str:
    """A line for each kernel and architecture, their errors, and the sums by pipe."""
    lines = [to_text(name, [each.row for each in found])]
    archs = list(dict.fromkeys(each.arch for each in found))
    for label, split in (("pipe", False), ("operation", True)):
        lines.append(f"{label:16}" + "".join(f" {'ours':>7} {'sm_' + arch:>7} {'error':>8}" for arch in archs))
        sums = {arch: _sums(found, arch, split) for arch in archs}
        names = {each for ours, theirs in sums.values() for each in (*ours, *theirs)}
        for each in sorted(names):
            cells = [(sums[arch][0][each], sums[arch][1][each]) for arch in archs]
            lines.append(f"{each:16}" + "".join(f" {a:7} {b:7} {_share(a, b)}" for a, b in cells))
        lines.append("")
    lines += [*_register_lines(found, archs), ""]
    lines += ["with loops unrolled, by ptxas and by us", "", *summary_lines([each.unrolled_row for each in found]), ""]
    theirs, ours = (
        sum(unrolled != rolled for unrolled, rolled in pairs)
        for pairs in (
            [(each.unrolled, each.theirs.total()) for each in found],
            [(each.ours_unrolled, each.ours.total()) for each in found],
        )
    )
    lines.append(f"ptxas unrolls loops of {theirs} of {len(found)}, we of {ours}. In the other tables nobody does.")
    return "\n".join([*lines, *COUNTED, ""])


def _register_lines(found: Sequence[Comparison], archs: Sequence[str]) -> list[str]:
    """How far our registers of a thread are from ptxas's, where there are enough of them to matter."""
    lines = [f"{'registers of a thread, loops unrolled':42}" + "".join(f" {'sm_' + arch:>8}" for arch in archs)]
    rows: dict[str, list[str]] = {
        "kernels": [], "same occupancy by them": [], f"kernels of more than {FEW}": [],
        "  mean difference, as allocated": [], "  largest": [],
    }  # fmt: skip
    for arch in archs:
        here = [each for each in found if each.arch == arch]
        large = [abs(each.register_difference) for each in here if each.registers > FEW]
        same = sum(ours == theirs for ours, theirs in (each.resident_warps for each in here))
        mean, most = (f"{fmean(large):.1f}", str(max(large))) if large else ("none", "none")
        for row, value in zip(rows.values(), (len(here), same, len(large), mean, most), strict=True):
            row.append(str(value))
    return lines + [f"{label:42}" + "".join(f" {value:>8}" for value in row) for label, row in rows.items()]


def _sums(found: Sequence[Comparison], arch: str, split: bool) -> tuple[Counter[str], Counter[str]]:
    ours: Counter[str] = Counter()
    theirs: Counter[str] = Counter()
    for each in found:
        if each.arch == arch:
            for total, counts in ((ours, each.ours), (theirs, each.theirs)):
                total.update(regrouped(counts, kind) if split else by_pipe(counts, each.isa))
    return ours, theirs


def to_json(name: str, found: Sequence[Comparison], latencies: Sequence[Distance] = ()) -> str:
    """All comparisons as data, by pipe and by operation, and latencies if there are any."""
    rows = [
        {
            "kernel": each.kernel,
            "arch": f"sm_{each.arch}",
            "group": each.group,
            "tools": each.tools,
            "instructions": {
                "ours": each.ours.total(),
                "machine": each.theirs.total(),
                "unrolled": each.unrolled,
                "ours_unrolled": each.ours_unrolled,
            },
            "registers": {"ours": each.ours_registers, "machine": each.registers},
            "error": each.row.error,
            "pipes": {"ours": by_pipe(each.ours, each.isa), "machine": by_pipe(each.theirs, each.isa)},
            "operations": {"ours": regrouped(each.ours, kind), "machine": regrouped(each.theirs, kind)},
        }
        for each in found
    ]
    summary = [asdict(each) for each in summaries([each.row for each in found])]
    document = {"schema": 1, "set": name, "rows": rows, "summary": summary}
    document |= {"latencies": [asdict(each) for each in latencies]} if latencies else {}
    return json.dumps(document, indent=2, sort_keys=True) + "\n"
