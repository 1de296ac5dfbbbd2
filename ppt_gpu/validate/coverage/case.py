"""A case: one kernel of the corpus, its launch, its arguments and what it must leave in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.paths import data_dir

#: what a kernel leaves: content of an argument, by its position, or of a module variable, by its name
Expected = Mapping[int | str, NDArray]


@dataclass(frozen=True)
class Data:
    """Arguments of a launch and the exact or nearly exact results. `variables`: content of module variables."""

    args: Sequence[Any]
    expected: Expected
    variables: Mapping[str, NDArray] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    name: str
    module: str  # PTX file of the corpus, without its suffix
    kernel: str
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    make: Callable[[], Data]
    dynamic_shared: int = 0  # B; 0: what the header of the file says
    tolerance: float = 0.0  # relative, where functions are approximate or sums are in another order
    absolute: float = 0.0

    @property
    def path(self) -> Path:
        """The PTX file."""
        return corpus() / f"{self.module}.ptx"

    def differs(self, got: NDArray, expected: NDArray) -> str | None:
        """How `got` differs from `expected`, or None. NaN equals NaN."""
        got = got.reshape(-1)[: expected.size] if got.size > expected.size else got.reshape(-1)
        want = expected.reshape(-1)
        if self.tolerance or self.absolute:
            wrong = ~np.isclose(got, want, rtol=self.tolerance, atol=self.absolute, equal_nan=True)
        else:
            both_nan = (got != got) & (want != want)
            wrong = (got != want) & ~both_nan
        if not wrong.any():
            return None
        first = int(np.flatnonzero(wrong)[0])
        return (
            f"{int(wrong.sum())} of {want.size} elements differ, first [{first}]: {got[first]} instead of {want[first]}"
        )


def corpus() -> Path:
    """The folder of the corpus' PTX files."""
    return data_dir("validation") / "coverage" / "ptx"


CASES: list[Case] = []


def case(module: str, grid: int | tuple[int, ...] = 1, block: int | tuple[int, ...] = 32, **more: Any) -> Callable:
    """Registers the function below it, which makes the data, as the case of the kernel of its own name."""

    def register(make: Callable[[], Data]) -> Callable[[], Data]:
        kernel = more.pop("kernel", make.__name__)
        CASES.append(Case(f"{module}/{make.__name__}", module, kernel, grid, block, make, **more))
        return make

    return register


def rng(seed: int) -> np.random.Generator:
    """Random numbers that are the same on every machine."""
    return np.random.Generator(np.random.PCG64(seed))
