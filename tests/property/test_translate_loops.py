"""Loops found in a stream: unfolding gives the stream back, and regular programs come back as written."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ppt_gpu.translation.loops import Node, Repeat, Run, find_loops, unfold


@settings(max_examples=400, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=80))
def test_any_stream(stream: list[int]) -> None:
    path = np.array(stream, np.int32)
    assert unfold(find_loops(path)).tolist() == stream


@st.composite
def programs(draw: st.DrawFn, pc: int = 0, depth: int = 0) -> tuple[Node, ...]:
    """Structured loops with their own instructions before and after every inner loop."""
    found: list[Node] = [Run(pc, pc + draw(st.integers(0, 3)))]
    for _ in range(draw(st.integers(0, 2)) if depth < 3 else 0):
        last = found[-1]
        assert isinstance(last, Run)
        inner = draw(programs(last.last + 1, depth + 1))
        end = inner[-1]
        assert isinstance(end, Run)
        found.append(Repeat(draw(st.integers(2, 4)), inner))
        found.append(Run(end.last + 1, end.last + 1 + draw(st.integers(0, 2))))
    return tuple(found)


@settings(max_examples=200, deadline=None)
@given(programs())
def test_structured_programs_come_back_as_written(program: tuple[Node, ...]) -> None:
    assert find_loops(unfold(program)) == program


def test_sizes() -> None:
    """A million entries fold to a handful of nodes; the number of iterations costs no memory in the structure."""
    body = np.arange(2, 12, dtype=np.int32)
    path = np.concatenate([[0, 1], np.tile(body, 100_000), [12]]).astype(np.int32)
    assert find_loops(path) == (Run(0, 1), Repeat(100_000, (Run(2, 11),)), Run(12, 12))
    assert find_loops(np.zeros(0, np.int32)) == ()
