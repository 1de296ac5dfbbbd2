"""Validation: reference cases, the prediction of each, and the error, printed on the spot."""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.errors import PptError, did_you_mean

SETS = ("gpgpusim",)


def validate(name: str, cases: Sequence[str] = (), *, as_json: bool = False) -> str:
    """Predict every case of set `name` whose name contains one of `cases` (all when empty) and report the errors.

    Raises PptError for an unknown set or when no case matches.
    """
    if name not in SETS:
        raise PptError(f"unknown validation set '{name}'", hint=did_you_mean(name, SETS))
    from ppt_gpu.validate import gpgpusim
    from ppt_gpu.validate.rows import to_json, to_text

    rows = gpgpusim.rows(cases)
    if not rows:
        raise PptError(f"no case of '{name}' has {' or '.join(cases)} in its name")
    return to_json(name, rows) if as_json else to_text(name, rows)
