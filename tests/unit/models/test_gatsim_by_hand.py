"""Algorithm 1 with units, several schedulers and blocks, and tag stores: schedules worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ppt_gpu.models.gatsim.loop import gatsim_time
from ppt_gpu.models.gatsim.work import (
    ACCESS,
    CONSTANT,
    L1_GLOBAL,
    L1_LOCAL,
    LINE_HITS,
    LINE_MISSES,
    MEMORY,
    PERFECT,
    SFU,
    UNCACHED,
    GatsimMachine,
    GatsimWork,
    TagStore,
    straight_work,
)

READ, WRITE = False, True


def accesses(*items: tuple[int, bool, list[int]], fixed: int = 0) -> GatsimWork:
    """One warp of memory instructions: (tag store, write, lines) each."""
    count = len(items)
    return GatsimWork(
        path_start=np.array([0, count]),
        entry_kind=np.full(count, ACCESS, np.int8),
        entry_delay=np.ones(count, np.int64),
        warp_path=np.zeros(1, np.int32),
        warp_access=np.array([0, count]),
        block_warp=np.array([0, 1]),
        access_start=np.cumsum([0, *(len(lines) for *_, lines in items)]),
        access_fixed=np.full(count, fixed),
        access_store=np.array([store for store, *_ in items], np.int8),
        access_write=np.array([write for _, write, _ in items]),
        access_line=np.array([line for *_, lines in items for line in lines], np.int64),
    )


def issued(work: GatsimWork, machine: GatsimMachine) -> list[list[int]]:
    log = np.zeros((work.instructions, 3), np.int64)
    gatsim_time(work, machine, log)
    return log.tolist()


def of_kind(kind: int, work: GatsimWork) -> GatsimWork:
    return GatsimWork(**{**vars(work), "entry_kind": np.full(len(work.entry_kind), kind, np.int8)})


def test_two_schedulers_take_two_warps_a_cycle() -> None:
    four = straight_work([[4, 4]] * 4)
    assert issued(four, GatsimMachine(schedulers=2)) == [
        [0, 0, 0], [0, 1, 0], [1, 2, 0], [1, 3, 0], [4, 0, 1], [4, 1, 1], [5, 2, 1], [5, 3, 1]
    ]  # fmt: skip
    assert gatsim_time(four, GatsimMachine(schedulers=2)).cycles == 9


def test_blocks_one_after_another_or_at_once() -> None:
    """Three blocks of one warp. As printed each has the SM to itself; with two slots the third takes the first free."""
    three = straight_work([[5], [9], [2]], warps_per_block=1)
    alone = gatsim_time(three, GatsimMachine(resident=1))
    assert (alone.cycles, alone.block_end.tolist()) == (16, [5, 14, 16])
    pair = gatsim_time(three, GatsimMachine(resident=2))
    assert (pair.cycles, pair.block_end.tolist()) == (10, [5, 10, 7])


@pytest.mark.parametrize(("kind", "machine"), [(MEMORY, {"memory_units": 2}), (SFU, {"sfus": 2})])
def test_a_unit_is_busy_for_the_whole_latency(kind: int, machine: dict[str, int]) -> None:
    work = of_kind(kind, straight_work([[10], [10], [10]]))
    assert issued(work, GatsimMachine(**machine)) == [[0, 0, 0], [1, 1, 0], [10, 2, 0]]
    assert issued(work, GatsimMachine(**dict.fromkeys(machine, 3))) == [[0, 0, 0], [1, 1, 0], [2, 2, 0]]


def test_latency_is_the_sum_over_lines() -> None:
    machine = GatsimMachine(hit=10, miss=100, l1=TagStore(4, 2))
    perfect = gatsim_time(accesses((PERFECT, READ, list(range(32)))), machine)
    assert (perfect.cycles, perfect.hits) == (320, 32)
    given = gatsim_time(accesses((L1_GLOBAL, READ, [LINE_HITS, LINE_MISSES, LINE_MISSES])), machine)
    assert (given.cycles, given.hits, given.misses) == (210, 1, 2)
    assert gatsim_time(accesses((UNCACHED, READ, [1, 1])), machine).cycles == 200
    assert gatsim_time(accesses((PERFECT, READ, []), fixed=33), machine).cycles == 33


def test_tags_of_the_l1() -> None:
    """One set of two ways, least recently used."""
    machine = GatsimMachine(hit=1, miss=100, l1=TagStore(1, 2))
    loads = accesses(*((L1_GLOBAL, READ, [line]) for line in (7, 8, 7, 9, 8)))  # 9 replaces 8
    assert (gatsim_time(loads, machine).hits, gatsim_time(loads, machine).misses) == (1, 4)


def test_writes() -> None:
    machine = GatsimMachine(hit=1, miss=100, l1=TagStore(1, 2))
    evict = accesses((L1_GLOBAL, READ, [7]), (L1_GLOBAL, WRITE, [7]), (L1_GLOBAL, READ, [7]))
    assert gatsim_time(evict, machine).hits == 1  # the write itself: it drops the line
    back = accesses((L1_LOCAL, READ, [7]), (L1_LOCAL, WRITE, [7]), (L1_LOCAL, READ, [7]))
    assert gatsim_time(back, machine).hits == 2  # local memory: write-back
    for store in (L1_GLOBAL, L1_LOCAL):
        fresh = accesses((store, WRITE, [7]), (store, READ, [7]))
        assert gatsim_time(fresh, machine).hits == 0  # writes allocate nothing


def test_constants_have_a_store_of_their_own() -> None:
    machine = GatsimMachine(hit=1, miss=100, l1=TagStore(1, 1), constant=TagStore(1, 1))
    mixed = accesses((CONSTANT, READ, [7]), (L1_GLOBAL, READ, [8]), (CONSTANT, READ, [7]), (L1_GLOBAL, READ, [8]))
    assert (gatsim_time(mixed, machine).hits, gatsim_time(mixed, machine).misses) == (2, 2)


def test_finished_warps_count_as_arrived() -> None:
    work = straight_work([[1, 1, 5], [30]], barriers=[[False, True, False], [False]])
    # warp 0 waits at its barrier until warp 1 has issued its only instruction, which was at 1
    assert gatsim_time(work, GatsimMachine()).cycles == 31
    assert issued(work, GatsimMachine())[-1] == [3, 0, 2]
