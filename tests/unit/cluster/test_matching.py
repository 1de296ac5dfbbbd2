"""Messages and receives of one sender and tag pair up in their orders, however they come."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ppt_gpu.cluster.engine.matching import Message, Receive, take_message, take_receive, waiting
from ppt_gpu.cluster.model.machine import Transfer


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, 1)), max_size=40))
def test_first_to_first(steps: list[tuple[bool, int, int]]) -> None:
    rank: Any = SimpleNamespace(queues={}, number=9)
    kept: dict[tuple[bool, int, int], list[Any]] = {}
    for is_message, source, tag in steps:
        new: Any
        if is_message:
            new = Message(None, source, 9, tag, "gpu", Transfer(8, 1, 1), 0)
            found: Any = take_receive(rank, new)
        else:
            new = Receive(source, tag, 8, 0, None)
            found = take_message(rank, new)
        others = kept.setdefault((not is_message, source, tag), [])
        if others:
            assert found is others.pop(0)
        else:
            assert found is None
            kept.setdefault((is_message, source, tag), []).append(new)
    assert {id(entry) for entry in waiting(rank.queues)} == {id(entry) for left in kept.values() for entry in left}
    assert len(rank.queues) == len({key[1:] for key, left in kept.items() if left}), "no empty queues are kept"
