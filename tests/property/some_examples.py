"""Properties with few random cases in the default run and many with `-m slow`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy


def examples(few: int, many: int, *strategies: SearchStrategy[Any]) -> Callable[[Callable[..., None]], Any]:
    """Makes a test of a property whose arguments are drawn from `strategies`.

    It has `few` cases, always the same ones, and a slow variant with `many` that differ from run to run.
    """

    def decorate(check: Callable[..., None]) -> Any:
        @pytest.mark.parametrize("count", [few, pytest.param(many, marks=pytest.mark.slow)])
        def test(count: int) -> None:
            chosen = settings(
                max_examples=count,
                deadline=None,
                derandomize=count == few,
                suppress_health_check=[HealthCheck.too_slow],
            )
            chosen(given(*strategies)(check))()

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        return test

    return decorate
