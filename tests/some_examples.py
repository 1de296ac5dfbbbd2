"""How many cases a property has: few by default and many with `-m slow` or a seed, or as many as it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis.strategies import SearchStrategy

#: what `until` draws at most: where one round finds some of what is wanted, so many find enough
ROUNDS = 50


def cases(count: int) -> int:
    """`count` cases of a test that holds compiled code against its slow reference; half of them where they are the same
    in every run. With a seed, which draws others, it has them all."""
    return -(-count // 2) if settings.default.derandomize else count


def one_in(number: int, values: Iterable[Any]) -> list[Any]:
    """`values` for parametrize: the first of each `number` by default, the others with `-m slow`."""
    slow = pytest.mark.slow
    return [value if place % number == 0 else pytest.param(value, marks=slow) for place, value in enumerate(values)]


def examples(few: int, many: int, *strategies: SearchStrategy[Any]) -> Callable[[Callable[..., None]], Any]:
    """Makes a test of a property whose arguments are drawn from `strategies`.

    It has `few` cases, and a slow variant with `many`.
    """

    def decorate(check: Callable[..., None]) -> Any:
        @pytest.mark.parametrize("count", [few, pytest.param(many, marks=pytest.mark.slow)])
        def test(count: int) -> None:
            settings(max_examples=count)(given(*strategies)(check))()

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        return test

    return decorate


def until(
    enough: Callable[[], bool], check: Callable[..., None], count: int, config: pytest.Config, **strategies: Any
) -> None:
    """Check a property of `count` cases at a time, other ones each time, until `enough()`."""
    relaxed = settings(max_examples=count, suppress_health_check=list(HealthCheck))
    for number in range(ROUNDS):
        seed(f"{config.getoption('--hypothesis-seed')} {number}")(relaxed(given(**strategies)(check)))()
        if enough():
            return
    pytest.fail(f"not enough of what is wanted in {ROUNDS} times {count} cases")
