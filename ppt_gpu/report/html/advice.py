"""Advice: what would make the launch faster, each suggestion with the time that its simulation gave."""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.common.units import format_time
from ppt_gpu.report.html.tags import Markup, table, tag
from ppt_gpu.report.result.result import Suggestion

NOTHING = "None of the changes that were simulated makes it faster by 2 % or more."


def advice(suggestions: Sequence[Suggestion]) -> Markup:
    """The suggestions, the best first."""
    if not suggestions:
        return tag("p", NOTHING)
    heads = (("gain", "nowrap"), ("time", "right"), ("by", "wide"))
    rows = [(f"{one.gain:.2f}x", format_time(one.time), _by(one)) for one in suggestions]
    return table(heads, rows, caption="Each of these changes was simulated.", class_="told")


def _by(one: Suggestion) -> str:
    return f"{one.text} ({one.remark})" if one.remark else one.text
