"""Validation: reference cases, the prediction of each, and the error, printed on the spot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.common.progress import parts

if TYPE_CHECKING:
    from ppt_gpu.validate.rows import Row


@dataclass(frozen=True)
class Wanted:
    """What is asked of a set."""

    texts: Sequence[str] = ()  # only cases whose name contains one of these; all when empty
    as_json: bool = False
    plot: str = ""  # a file to draw to
    captures: Sequence[str] = ()  # CSV files of the capture kit beside those shipped
    level: str = "steady"
    speed: bool = False  # CPU seconds too


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
    if plot:
        from ppt_gpu.common.outputs import check_outputs
        from ppt_gpu.report.figures.common import check_target

        check_target(plot)
        check_outputs([plot], lambda: captures)
    found = SETS[name](name, Wanted(cases, as_json, plot, captures, level, speed))
    if found is None:
        raise PptError(f"no case of '{name}' has {' or '.join(cases)} in its name")
    return found


def _rows(name: str, wanted: Wanted) -> str | None:
    """Times, one a row; the module of the set's name makes them."""
    module = import_module(f"ppt_gpu.validate.{name}")
    rows = module.rows(wanted.texts, level=wanted.level) if name in LEVELLED else module.rows(wanted.texts)
    return _told(name, wanted, rows)


def _gpgpusim(name: str, wanted: Wanted) -> str | None:
    """Cycles of a cycle-accurate simulator, and its CPU seconds where those are wanted."""
    if not wanted.speed:
        return _rows(name, wanted)
    from ppt_gpu.validate.gpgpusim.speed import timed, to_json, to_text

    return _printed(timed(wanted.texts, wanted.level), wanted, partial(to_json, name), partial(to_text, name))


def _measured(name: str, wanted: Wanted) -> str | None:
    """Times measured on real GPUs: by others, and by the capture kit. Given captures alone where there are any."""
    from ppt_gpu.validate.silicon import captured, measured

    found = [] if wanted.captures else measured.rows(wanted.texts)
    return _told(name, wanted, found + captured.rows(wanted.texts, wanted.captures))


def _curves(name: str, wanted: Wanted) -> str | None:
    """Latency, cache bandwidth and small kernels, as measured on real GPUs."""
    from ppt_gpu.validate.silicon.curves import rows

    return _told(name, wanted, rows(wanted.texts))


def _micro(name: str, wanted: Wanted) -> str | None:
    """Bandwidths, latencies and rates as published for many GPUs."""
    from ppt_gpu.validate.silicon.micro import pairs, to_json, to_text

    return _printed(pairs(wanted.texts), wanted, to_json, to_text)


def _printed(
    found: Sequence[Any], wanted: Wanted, to_json: Callable[[Any], str], to_text: Callable[[Any], str]
) -> str | None:
    """What was found in the form that is asked for; None where nothing was."""
    if not found:
        return None
    return to_json(found) if wanted.as_json else to_text(found)


def _told(name: str, wanted: Wanted, found: list[Row]) -> str | None:
    """Rows as asked for, and drawn where that is asked."""
    from ppt_gpu.validate.rows import to_json, to_text

    if found and wanted.plot:
        from ppt_gpu.validate.rows_figures import draw

        draw(found, wanted.plot)
    return _printed(found, wanted, partial(to_json, name), partial(to_text, name))


def _coverage(name: str, wanted: Wanted) -> str | None:
    """The table of opcodes executed and timed, from running every kernel of the corpus."""
    from ppt_gpu.validate.coverage import cases, table
    from ppt_gpu.validate.coverage.run import outcome

    outcomes = [outcome(case) for case in parts(cases(wanted.texts), "cases")]
    return _printed(outcomes, wanted, table.to_json, table.to_text)


def _caches(name: str, wanted: Wanted) -> str | None:
    """Hit rates of the cache models beside those of the simulation."""
    from ppt_gpu.validate.models.cache_models import rows, to_json, to_text

    return _printed(list(rows(wanted.texts)), wanted, to_json, to_text)


def _statements(name: str, wanted: Wanted) -> str | None:
    """Blem's statements beside ours; the sensitivities too unless only some statements are wanted."""
    from ppt_gpu.validate.papers import dark_silicon, port
    from ppt_gpu.validate.papers.statements import to_json, to_text, with_text

    source = dark_silicon if name == "darksilicon" else port
    groups = with_text(source.comparisons(), wanted.texts)
    if not groups:
        return None
    moved = [] if wanted.texts else source.sensitivities()
    return to_json(name, groups, source.COLUMNS, moved) if wanted.as_json else to_text(groups, source.COLUMNS, moved)


def _cluster(name: str, wanted: Wanted) -> str | None:
    """Collectives and messages on clusters, with geometric mean errors by group and machine."""
    from ppt_gpu.validate.cluster import sets as cluster
    from ppt_gpu.validate.cluster.table import to_json, to_text

    limits = cluster.LIMITS
    return _printed(
        cluster.rows(wanted.texts), wanted, partial(to_json, limits=limits), partial(to_text, limits=limits)
    )


def _models(name: str, wanted: Wanted) -> str | None:
    """The analytical models beside the simulation, on GPUMech's machine."""
    from ppt_gpu.validate.models.study import accuracy
    from ppt_gpu.validate.models.text import accuracy_json, accuracy_text

    rows = accuracy(wanted.texts)
    return accuracy_json(rows) if wanted.as_json else accuracy_text(rows)


def _ppt(name: str, wanted: Wanted) -> str | None:
    """The PPT paper redone: times by application, GPU and size, and its projection."""
    from ppt_gpu.validate.papers.ppt import cases
    from ppt_gpu.validate.papers.ppt_text import to_json, to_text

    found = cases(wanted.texts)
    if found and wanted.plot:
        from ppt_gpu.validate.papers.ppt_figures import draw

        draw(found, wanted.plot)
    return _printed(found, wanted, to_json, to_text)


def _isa(name: str, wanted: Wanted) -> str | None:
    """Our machine instructions of every shipped kernel beside those of its machine code."""
    from ppt_gpu.validate.isa.expansions import comparisons
    from ppt_gpu.validate.isa.table import set_text, to_json

    return _printed(comparisons(wanted.texts), wanted, partial(to_json, name), partial(set_text, name))


#: set -> what predicts and reports its cases: (name, what is wanted) -> the report, None when no case has such a text
SETS: dict[str, Callable[[str, Wanted], str | None]] = {
    "gpgpusim": _gpgpusim,
    "measured": _measured,
    "published": _rows,
    "curves": _curves,
    "micro": _micro,
    "coverage": _coverage,
    "models": _models,
    "mwp": _rows,
    "caches": _caches,
    "darksilicon": _statements,
    "port": _statements,
    "cluster": _cluster,
    "ppt": _ppt,
    "isa": _isa,
    "levels": _rows,
}
#: sets with a figure, that take files of the capture kit, with a choice of the level, and whose reference has times
DRAWN = ("measured", "published", "curves", "ppt")
CAPTURED = ("measured",)
LEVELLED = ("gpgpusim",)
TIMED = ("gpgpusim",)
