"""A result as Python shows it: `str` is the report, notebooks get a summary."""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.report.html.notebook import summary
from ppt_gpu.report.result.result import Result
from ppt_gpu.report.text.text import render


@dataclass(frozen=True, repr=False)
class ShownResult(Result):
    """What predictions return."""

    def __str__(self) -> str:
        """The report, as `ppt-gpu predict` prints it."""
        return render(self)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return summary(self)
