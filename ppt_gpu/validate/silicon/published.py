"""The set `published`: times of kernels that nothing here was made from, each held against our prediction.

From validation/published, whose files are all alike (PROVENANCE.md there). No value of a hardware file was chosen with
their times in view, but for rows that validation/measured/chosen.csv names; mechanisms were, since, and facts that the
same sources state are in hardware files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ppt_gpu.validate.silicon.measured import predicted_rows
from ppt_gpu.validate.silicon.measured_cases import Case, folder, lines, with_chosen
from ppt_gpu.validate.tables.rows import Row, is_asked
from ppt_gpu.workload.workload import Dim3


def cases(texts: Sequence[str] = ()) -> list[Case]:
    """All cases whose "SET GPU NAME" contains one of `texts`; a set is a file."""
    return [case for case in with_chosen(_cases()) if is_asked(case.title, texts)]


def rows(texts: Sequence[str] = ()) -> list[Row]:
    """Predict the cases that `cases` chooses."""
    return predicted_rows(cases(texts))


def _cases() -> Iterator[Case]:
    """A set a file. A line without a time is a further launch of the line above, which the time there covers."""
    for path in sorted(folder("published").glob("*.csv")):
        launches = [(row, _launch(path.stem, row)) for row in lines(path)]
        firsts = [number for number, (row, _) in enumerate(launches) if row["time_us"]]
        for first, end in zip(firsts, [*firsts[1:], len(launches)], strict=True):
            yield replace(launches[first][1], then=tuple(one for _, one in launches[first + 1 : end]))


def _launch(name: str, row: dict[str, str]) -> Case:
    """The launch of a line of the file `name`, whose columns PROVENANCE.md of the folder names."""
    return Case(
        name=f"{row['kernel']} {row['case']}",
        set=name,
        gpu=row["gpu"],
        overrides=_parts(row.get("set")),
        module=name,
        kernel=row["entry"],
        form_of=row.get("form_of") or "",
        again=bool(row.get("again")),
        grid=_sides(row["grid"]),
        block=_sides(row["block"]),
        args=_parts(row["args"]),
        registers=int(row["registers"]) if row.get("registers") else None,
        time=float(row["time_us"] or 0),
        launched=False,
        shared=int(row.get("shared") or 0),
        folder="published",
    )


def _parts(text: str | None) -> tuple[str, ...]:
    return tuple(text.split(";")) if text else ()


def _sides(text: str) -> Dim3:
    """ "32x8" -> (32, 8, 1)"""
    x, y, z = (*(int(side) for side in text.split("x")), 1, 1)[:3]
    return x, y, z
