"""What each set of `validate` predicts, and how it is reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ppt_gpu.common.outputs import check_outputs
from ppt_gpu.common.progress import parts
from ppt_gpu.report.figures.common import check_target
from ppt_gpu.validate import coverage
from ppt_gpu.validate.cluster import sets as clusters
from ppt_gpu.validate.coverage import table as opcodes
from ppt_gpu.validate.coverage.run import outcome
from ppt_gpu.validate.gpgpusim import launches, speed
from ppt_gpu.validate.isa import expansions
from ppt_gpu.validate.isa import table as isa_table
from ppt_gpu.validate.models import cache_models, study
from ppt_gpu.validate.models import text as models_text
from ppt_gpu.validate.mwp import machines
from ppt_gpu.validate.papers import dark_silicon, port, ppt, ppt_figures, ppt_text, statements
from ppt_gpu.validate.silicon import captured, curves, levels, measured, micro, published
from ppt_gpu.validate.tables import figures, rows


@dataclass(frozen=True)
class Wanted:
    """What is asked of a set."""

    name: str
    texts: Sequence[str] = ()  # only cases whose name contains one of these; all when empty
    as_json: bool = False
    plot: str = ""  # a file to draw to
    captures: Sequence[str] = ()  # CSV files of the capture kit beside those shipped
    level: str = "steady"
    speed: bool = False  # CPU seconds too


def outcome_of(wanted: Wanted) -> str | None:
    """The report; None when no case has such a text. PptError for a file that cannot be drawn to."""
    if wanted.plot:
        check_target(wanted.plot)
        check_outputs([wanted.plot], lambda: wanted.captures)
    return _REPORTS[wanted.name](wanted)


def _printed(
    found: Sequence[Any], wanted: Wanted, to_json: Callable[[Any], str], to_text: Callable[[Any], str]
) -> str | None:
    """What was found in the form that is asked for; None where nothing was."""
    if not found:
        return None
    return to_json(found) if wanted.as_json else to_text(found)


def _told(found: list[rows.Row], wanted: Wanted) -> str | None:
    """Rows as asked for, and drawn where that is asked."""
    if found and wanted.plot:
        figures.draw(found, wanted.plot)
    return _printed(found, wanted, partial(rows.to_json, wanted.name), partial(rows.to_text, wanted.name))


def _gpgpusim(wanted: Wanted) -> str | None:
    """Cycles of a cycle-accurate simulator, and its CPU seconds where those are wanted."""
    if not wanted.speed:
        return _told(launches.rows(wanted.texts, level=wanted.level), wanted)
    timed = speed.timed(wanted.texts, wanted.level)
    return _printed(timed, wanted, partial(speed.to_json, wanted.name), partial(speed.to_text, wanted.name))


def _measured(wanted: Wanted) -> str | None:
    """Times measured on real GPUs: by others, and by the capture kit. Given captures alone where there are any."""
    found = [] if wanted.captures else measured.rows(wanted.texts)
    return _told(found + captured.rows(wanted.texts, wanted.captures), wanted)


def _published(wanted: Wanted) -> str | None:
    """Times of kernels that nothing here was made from."""
    return _told(published.rows(wanted.texts), wanted)


def _curves(wanted: Wanted) -> str | None:
    """Latency, cache bandwidth and small kernels, as measured on real GPUs."""
    return _told(curves.rows(wanted.texts), wanted)


def _micro(wanted: Wanted) -> str | None:
    """Bandwidths, latencies and rates as published for many GPUs."""
    return _printed(micro.pairs(wanted.texts), wanted, micro.to_json, micro.to_text)


def _coverage(wanted: Wanted) -> str | None:
    """The table of opcodes executed and timed, from running every kernel of the corpus."""
    outcomes = [outcome(case) for case in parts(coverage.cases(wanted.texts), "cases")]
    return _printed(outcomes, wanted, opcodes.to_json, opcodes.to_text)


def _models(wanted: Wanted) -> str | None:
    """The analytical models beside the simulation, on GPUMech's machine."""
    found = study.accuracy(wanted.texts)
    return models_text.accuracy_json(found) if wanted.as_json else models_text.accuracy_text(found)


def _mwp(wanted: Wanted) -> str | None:
    """Hong and Kim's model, GPUPerf and the M-core on the paper's GPUs, beside the simulation."""
    return _told(machines.rows(wanted.texts), wanted)


def _caches(wanted: Wanted) -> str | None:
    """Hit rates of the cache models beside those of the simulation."""
    return _printed(list(cache_models.rows(wanted.texts)), wanted, cache_models.to_json, cache_models.to_text)


def _statements(wanted: Wanted) -> str | None:
    """Blem's statements beside ours; the sensitivities too unless only some statements are wanted."""
    source = dark_silicon if wanted.name == "darksilicon" else port
    groups = statements.with_text(source.comparisons(), wanted.texts)
    if not groups:
        return None
    moved = [] if wanted.texts else source.sensitivities()
    if wanted.as_json:
        return statements.to_json(wanted.name, groups, source.COLUMNS, moved)
    return statements.to_text(groups, source.COLUMNS, moved)


def _cluster(wanted: Wanted) -> str | None:
    """Collectives and messages on clusters, with geometric mean errors by group and machine."""
    as_json = partial(clusters.to_json, limits=clusters.LIMITS)
    return _printed(clusters.rows(wanted.texts), wanted, as_json, partial(clusters.to_text, limits=clusters.LIMITS))


def _ppt(wanted: Wanted) -> str | None:
    """The PPT paper redone: times by application, GPU and size, and its projection."""
    found = ppt.cases(wanted.texts)
    if found and wanted.plot:
        ppt_figures.draw(found, wanted.plot)
    return _printed(found, wanted, ppt_text.to_json, ppt_text.to_text)


def _isa(wanted: Wanted) -> str | None:
    """Our machine instructions of every shipped kernel beside those of its machine code."""
    found = expansions.comparisons(wanted.texts)
    return _printed(found, wanted, partial(isa_table.to_json, wanted.name), partial(isa_table.set_text, wanted.name))


def _levels(wanted: Wanted) -> str | None:
    """Level steady beside level grid."""
    return _told(levels.rows(wanted.texts), wanted)


#: set -> what predicts and reports its cases; None when no case has such a text
_REPORTS: dict[str, Callable[[Wanted], str | None]] = {
    "gpgpusim": _gpgpusim,
    "measured": _measured,
    "published": _published,
    "curves": _curves,
    "micro": _micro,
    "coverage": _coverage,
    "models": _models,
    "mwp": _mwp,
    "caches": _caches,
    "darksilicon": _statements,
    "port": _statements,
    "cluster": _cluster,
    "ppt": _ppt,
    "isa": _isa,
    "levels": _levels,
}
