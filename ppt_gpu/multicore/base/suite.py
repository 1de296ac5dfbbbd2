"""A suite of benchmarks for the upper-bound model: six numbers each, as arrays over them (Blem, table B.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.multicore.base.values import Values, require
from ppt_gpu.spec.files import find
from ppt_gpu.spec.toml_reader import Number, Table, TableList, Text, check, read_toml

_ALPHA = Number(minimum=1, maximum=100)
_BETA = Number(above=0)
_NUMBERS = {
    "parallel": Number(minimum=0, maximum=1),
    "loads": Number(above=0, maximum=1),
    "l1_alpha": _ALPHA,
    "l1_beta": _BETA,
    "l2_alpha": _ALPHA,
    "l2_beta": _BETA,
}
SCHEMA = Table(
    fields={
        "title": Text(),
        "source": Text(default=""),
        "benchmark": TableList(item=Table(fields={"name": Text(), **_NUMBERS}), min_items=1),
    }
)


def miss_rate(
    size: Values, alpha: Values, beta: Values, *, sharers: Values = 1.0, literal: bool = False
) -> NDArray[np.float64]:
    """Misses per access, 0 to 1, of a cache of `size` bytes that `sharers` threads share evenly; `beta` in bytes.

    m(S) = (S/beta + 1)^(1 - alpha), S/T bytes for each of T threads (Jacob et al.; parameters: Blem, table B.1).
    `literal` takes the sign as remembered from the ISCA'11 print, (1 - S/(T beta))^(1 - alpha); its base is negative
    as soon as the share exceeds beta. Raises PptError then, and for values out of range.
    """
    share = require("the cache size in bytes", size, least=0) / require("the number of sharers", sharers, above=0)
    ratio = share / require("beta of a miss-rate curve", beta, above=0)
    power = 1.0 - require("alpha of a miss-rate curve", alpha, least=1)
    if not literal:
        return np.asarray((ratio + 1.0) ** power)
    if np.any(ratio >= 1):
        worst = float(np.max(ratio))
        raise PptError(f"the printed miss rate has base 1 - S/(T beta) = {1 - worst:g}", hint="it needs S < T beta")
    return np.asarray((1.0 - ratio) ** power)


@dataclass(frozen=True)
class Suite:
    """Arrays over the benchmarks; alpha and beta (bytes) are those of `ppt_gpu.multicore.base.suite`."""

    title: str
    names: tuple[str, ...]
    parallel: NDArray[np.float64]  # f, share of the instructions that can run in parallel
    loads: NDArray[np.float64]  # r_ls, loads and stores per instruction
    l1_alpha: NDArray[np.float64]
    l1_beta: NDArray[np.float64]
    l2_alpha: NDArray[np.float64]
    l2_beta: NDArray[np.float64]

    def l1_misses(self, size: Values, sharers: Values = 1.0) -> NDArray[np.float64]:
        """Misses per access of an L1 of `size` bytes, one row a benchmark if `size` or `sharers` has axes."""
        return self._misses(self.l1_alpha, self.l1_beta, size, sharers)

    def l2_misses(self, size: Values, sharers: Values = 1.0) -> NDArray[np.float64]:
        """Misses per access of an L2 of `size` bytes, shared by `sharers` threads."""
        return self._misses(self.l2_alpha, self.l2_beta, size, sharers)

    @staticmethod
    def _misses(
        alpha: NDArray[np.float64], beta: NDArray[np.float64], size: Values, sharers: Values
    ) -> NDArray[np.float64]:
        axes = max(np.ndim(size), np.ndim(sharers))
        shape = (-1, *(1,) * axes)
        return miss_rate(size, alpha.reshape(shape), beta.reshape(shape), sharers=sharers)

    def only(self, name: str) -> Suite:
        """The suite of the one benchmark `name`. Raises PptError with the nearest name."""
        if name not in self.names:
            raise PptError(f"unknown benchmark '{name}'", hint=did_you_mean(name, self.names))
        at = self.names.index(name)
        return replace(self, names=(name,), **{key: getattr(self, key)[at : at + 1] for key in _NUMBERS})


def load_suite(name: str) -> Suite:
    """A shipped suite ("parsec") or a .toml file. Raises PptError or InputErrors with everything that is wrong."""
    checked = check(read_toml(find("suites", name)), SCHEMA)
    seen: set[str] = set()
    for index, row in enumerate(checked.get("benchmark") or []):
        if row["name"] in seen:
            checked.problem(("benchmark", index, "name"), f"a second benchmark '{row['name']}'")
        seen.add(row["name"])
    values = checked.finish()
    rows = values["benchmark"]
    columns = {key: np.array([row[key] for row in rows], dtype=float) for key in _NUMBERS}
    return Suite(values["title"], tuple(row["name"] for row in rows), **columns)
