"""Validation: reference cases, the prediction of each, and the error, printed on the spot."""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.common.errors import PptError, did_you_mean

SETS = (
    "gpgpusim", "measured", "published", "curves", "micro", "coverage", "models", "mwp", "caches",
    "darksilicon", "port", "cluster", "ppt", "isa", "levels",
)  # fmt: skip
#: sets with a figure, that take files of the capture kit, with a choice of the level, and whose reference has times
DRAWN = ("measured", "published", "curves", "ppt")
CAPTURED = ("measured",)
LEVELLED = ("gpgpusim",)
TIMED = ("gpgpusim",)


def validate(
    name: str,
    cases: Sequence[str] = (),
    *,
    as_json: bool = False,
    plot: str = "",
    captures: Sequence[str] = (),
    level: str = "steady",
    speed: bool = False,
) -> str:
    """Predict every case of set `name` whose name contains one of `cases` (all when empty) and report the errors.

    `plot`: a file to draw the set's figure to; `captures`: files of the capture kit, for the sets that take them.
    `level`: of the predictions, for sets that have a choice; `speed`: CPU seconds too, where the reference has them.
    Raises PptError for an unknown set, an option that the set does not take, or when no case matches.
    """
    if name not in SETS:
        raise PptError(f"unknown validation set '{name}'", hint=did_you_mean(name, SETS))
    if plot and name not in DRAWN:
        raise PptError(f"--plot: set '{name}' has no figure", hint=f"sets with one: {', '.join(DRAWN)}")
    if captures and name not in CAPTURED:
        raise PptError(f"--capture: set '{name}' takes none", hint=f"sets that do: {', '.join(CAPTURED)}")
    if level != "steady" and name not in LEVELLED:
        raise PptError(f"--level: set '{name}' has no choice", hint=f"sets with one: {', '.join(LEVELLED)}")
    if speed and name not in TIMED:
        raise PptError(f"--speed: set '{name}' has no times", hint=f"sets with some: {', '.join(TIMED)}")
    from ppt_gpu.validate.sets import Wanted, outcome_of  # all sets: the command line asks for their names only

    found = outcome_of(Wanted(name, cases, as_json, plot, captures, level, speed))
    if found is None:
        raise PptError(f"no case of '{name}' has {' or '.join(cases)} in its name")
    return found
