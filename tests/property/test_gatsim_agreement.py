"""GATSim's compiled loop against Algorithm 1 in plain Python, on random warps, accesses, blocks and machines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.gatsim import gatsim_time_reference

from ppt_gpu.models.gatsim.loop import gatsim_time
from ppt_gpu.models.gatsim.work import ACCESS, POLICIES, GatsimMachine, GatsimTime, GatsimWork, TagStore

ENTRY = st.tuples(st.integers(0, ACCESS), st.integers(1, 9))  # kind, delay
ACCESSES = st.tuples(
    st.integers(0, 4), st.integers(0, 4), st.booleans(), st.lists(st.integers(-2, 9), max_size=4, unique=True)
)  # fixed cycles, tag store, write, lines
STORES = st.builds(TagStore, st.integers(0, 3), st.integers(1, 3))
MACHINES = st.builds(
    GatsimMachine,
    schedulers=st.integers(1, 3),
    resident=st.integers(1, 3),
    memory_units=st.integers(1, 3),
    sfus=st.integers(1, 2),
    policy=st.sampled_from(POLICIES),
    hit=st.integers(1, 3),
    miss=st.integers(1, 20),
    l1=STORES,
    constant=STORES,
)


@st.composite
def works(draw: st.DrawFn) -> GatsimWork:
    paths = draw(st.lists(st.lists(ENTRY, max_size=8), min_size=1, max_size=3))
    blocks = draw(st.lists(st.lists(st.integers(0, len(paths) - 1), max_size=3), max_size=5))
    warps = [path for block in blocks for path in block]
    counts = [sum(kind == ACCESS for kind, _ in paths[path]) for path in warps]
    accesses = [draw(ACCESSES) for _ in range(sum(counts))]
    return GatsimWork(
        path_start=np.cumsum([0, *map(len, paths)], dtype=np.int64),
        entry_kind=np.array([kind for path in paths for kind, _ in path], np.int8),
        entry_delay=np.array([delay for path in paths for _, delay in path], np.int64),
        warp_path=np.array(warps, np.int32),
        warp_access=np.cumsum([0, *counts], dtype=np.int64),
        block_warp=np.cumsum([0, *map(len, blocks)], dtype=np.int64),
        access_start=np.cumsum([0, *(len(lines) for *_, lines in accesses)], dtype=np.int64),
        access_fixed=np.array([fixed for fixed, *_ in accesses], np.int64),
        access_store=np.array([store for _, store, *_ in accesses], np.int8),
        access_write=np.array([write for _, _, write, _ in accesses], np.bool_),
        access_line=np.array([line for *_, lines in accesses for line in lines], np.int64),
    )


def same(one: GatsimTime, other: GatsimTime) -> bool:
    return replace(one, block_end=other.block_end) == other and one.block_end.tolist() == other.block_end.tolist()


@given(work=works(), machine=MACHINES)
@settings(max_examples=150, deadline=None)
def test_compiled_and_plain_agree(work: GatsimWork, machine: GatsimMachine) -> None:
    log = np.full((work.instructions, 3), -1, np.int64)
    issued: list[tuple[int, int, int]] = []
    expected = gatsim_time_reference(work, machine, issued)
    assert same(gatsim_time(work, machine, log), expected)
    assert list(map(tuple, log.tolist())) == issued
    assert expected.issued == work.instructions


@given(work=works(), machine=MACHINES)
@settings(max_examples=50, deadline=None)
def test_units_never_end_a_wait_that_no_warp_ends(work: GatsimWork, machine: GatsimMachine) -> None:
    """Line 23 as printed is enough: a unit is busy exactly as long as the warp that it serves."""
    assert gatsim_time_reference(work, machine, literal=True).cycles == gatsim_time_reference(work, machine).cycles


@given(work=works(), machine=MACHINES)
@settings(max_examples=50, deadline=None)
def test_every_cycle_issues_or_is_idle(work: GatsimWork, machine: GatsimMachine) -> None:
    found = gatsim_time(work, replace(machine, schedulers=1))
    assert found.cycles == found.issued + sum(found.idle)
