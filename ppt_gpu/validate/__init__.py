"""Validation: reference cases, the prediction of each, and the error, printed on the spot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

from ppt_gpu.errors import PptError, did_you_mean


def validate(name: str, cases: Sequence[str] = (), *, as_json: bool = False) -> str:
    """Predict every case of set `name` whose name contains one of `cases` (all when empty) and report the errors.

    Raises PptError for an unknown set or when no case matches.
    """
    if name not in SETS:
        raise PptError(f"unknown validation set '{name}'", hint=did_you_mean(name, SETS))
    found = SETS[name](name, cases, as_json)
    if found is None:
        raise PptError(f"no case of '{name}' has {' or '.join(cases)} in its name")
    return found


def _rows(name: str, texts: Sequence[str], as_json: bool) -> str | None:
    """Times, one a row; the module of the set's name makes them."""
    from ppt_gpu.validate.rows import to_json, to_text

    rows = import_module(f"ppt_gpu.validate.{name}").rows(texts)
    if not rows:
        return None
    return to_json(name, rows) if as_json else to_text(name, rows)


def _coverage(name: str, texts: Sequence[str], as_json: bool) -> str | None:
    """The table of opcodes executed and timed, from running every kernel of the corpus."""
    from ppt_gpu.validate.coverage import cases, table
    from ppt_gpu.validate.coverage.run import outcome

    outcomes = [outcome(case) for case in cases(texts)]
    if not outcomes:
        return None
    return table.to_json(outcomes) if as_json else table.to_text(outcomes)


def _caches(name: str, texts: Sequence[str], as_json: bool) -> str | None:
    """Hit rates of the cache models beside those of the simulation."""
    from ppt_gpu.validate.cache_models import rows, to_json, to_text

    found = list(rows(texts))
    if not found:
        return None
    return to_json(found) if as_json else to_text(found)


def _statements(name: str, texts: Sequence[str], as_json: bool) -> str | None:
    """Blem's statements beside ours; the sensitivities too unless only some statements are wanted."""
    from ppt_gpu.validate import dark_silicon, port
    from ppt_gpu.validate.statements import to_json, to_text, with_text

    source = dark_silicon if name == "darksilicon" else port
    groups = with_text(source.comparisons(), texts)
    if not groups:
        return None
    moved = [] if texts else source.sensitivities()
    return to_json(name, groups, source.COLUMNS, moved) if as_json else to_text(groups, source.COLUMNS, moved)


def _cluster(name: str, texts: Sequence[str], as_json: bool) -> str | None:
    """Collectives and messages on clusters, with geometric mean errors by group and machine."""
    from ppt_gpu.validate import cluster
    from ppt_gpu.validate.cluster_table import to_json, to_text

    rows = cluster.rows(texts)
    if not rows:
        return None
    return to_json(rows, cluster.LIMITS) if as_json else to_text(rows, cluster.LIMITS)


def _models(name: str, texts: Sequence[str], as_json: bool) -> str | None:
    """The analytical models beside the simulation, on GPUMech's machine."""
    from ppt_gpu.validate.model_study import accuracy
    from ppt_gpu.validate.model_text import accuracy_json, accuracy_text

    rows = accuracy(texts)
    return accuracy_json(rows) if as_json else accuracy_text(rows)


#: set -> what predicts and reports its cases: (name, texts, as JSON?) -> the report, None when no case has such a text
SETS: dict[str, Callable[[str, Sequence[str], bool], str | None]] = {
    "gpgpusim": _rows,
    "measured": _rows,
    "coverage": _coverage,
    "models": _models,
    "mwp": _rows,
    "caches": _caches,
    "darksilicon": _statements,
    "port": _statements,
    "cluster": _cluster,
}
