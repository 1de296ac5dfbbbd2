"""Validation: reference cases, the prediction of each, and the error, printed on the spot."""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.errors import PptError, did_you_mean

SETS = ("gpgpusim", "coverage", "darksilicon")


def validate(name: str, cases: Sequence[str] = (), *, as_json: bool = False) -> str:
    """Predict every case of set `name` whose name contains one of `cases` (all when empty) and report the errors.

    Raises PptError for an unknown set or when no case matches.
    """
    if name not in SETS:
        raise PptError(f"unknown validation set '{name}'", hint=did_you_mean(name, SETS))
    if name == "coverage":
        return _coverage(cases, as_json)
    if name == "darksilicon":
        return _dark_silicon(cases, as_json)
    from ppt_gpu.validate import gpgpusim
    from ppt_gpu.validate.rows import to_json, to_text

    rows = gpgpusim.rows(cases)
    if not rows:
        raise PptError(f"no case of '{name}' has {' or '.join(cases)} in its name")
    return to_json(name, rows) if as_json else to_text(name, rows)


def _coverage(texts: Sequence[str], as_json: bool) -> str:
    """The table of opcodes executed and timed, from running every kernel of the corpus."""
    from ppt_gpu.validate.coverage import cases, table
    from ppt_gpu.validate.coverage.run import outcome

    chosen = cases(texts)
    if not chosen:
        raise PptError(f"no case of 'coverage' has {' or '.join(texts)} in its name")
    outcomes = [outcome(case) for case in chosen]
    return table.to_json(outcomes) if as_json else table.to_text(outcomes)


def _dark_silicon(texts: Sequence[str], as_json: bool) -> str:
    """Blem's statements beside ours; the sensitivities too unless only some statements are wanted."""
    from ppt_gpu.validate.dark_silicon import COLUMNS, comparisons, sensitivities
    from ppt_gpu.validate.statements import to_json, to_text, with_text

    groups = with_text(comparisons(), texts)
    if not groups:
        raise PptError(f"no statement of 'darksilicon' has {' or '.join(texts)} in its text")
    moved = [] if texts else sensitivities()
    return to_json("darksilicon", groups, COLUMNS, moved) if as_json else to_text(groups, COLUMNS, moved)
