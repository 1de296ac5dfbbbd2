"""CPU time of a computation by its parts, for benches: functions are watched while it runs, then as they were."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

#: part -> the functions that it is made of, as (module or class, their names)
Parts = Mapping[str, Sequence[tuple[Any, Sequence[str]]]]
REST = "rest"


class Stopwatch:
    """CPU seconds by part; what is in none of them is the rest. Time in a part within another counts for the inner."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._stack = [REST]
        self._since = time.process_time()

    def _turn(self) -> None:
        now = time.process_time()
        self.seconds[self._stack[-1]] += now - self._since
        self._since = now

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            self._turn()
            self._stack.append(part)
            try:
                return function(*arguments, **options)
            finally:
                self._turn()
                self._stack.pop()

        return call

    def stop(self) -> dict[str, float]:
        self._turn()
        return dict(self.seconds)


@contextmanager
def watched(parts: Parts) -> Iterator[Stopwatch]:
    """Time the functions of these parts."""
    watch = Stopwatch()
    replaced = []
    for part, functions in parts.items():
        for owner, names in functions:
            for name in names:
                replaced.append((owner, name, getattr(owner, name)))
                setattr(owner, name, watch.timed(part, getattr(owner, name)))
    try:
        yield watch
    finally:
        for owner, name, function in replaced:
            setattr(owner, name, function)
