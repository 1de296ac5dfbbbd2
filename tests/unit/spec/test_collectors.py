"""hardware/tools/collectors.py: what collector units do to kernels that keep the load/store unit busy."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


@pytest.fixture
def collectors(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "hardware" / "tools"))
    import collectors

    yield collectors
    for name in ("collectors", "kernel_paths"):
        sys.modules.pop(name)


def product(collectors, side: int, rounds: int):
    """The paths of a block's warps in the product with tiles of side x side."""
    code = collectors.kernel("sgemm", f"_Z11sgemm_tiledILi{side}EEvPKfS1_Pfi")
    return [collectors.looping(code, rounds)] * (side * side // 32)


def test_paths_go_through_their_loop(collectors) -> None:
    once, twice = (product(collectors, 16, rounds)[0] for rounds in (1, 2))
    assert sum(one.space == "shared" and one.opcode == "ld" for one in once) == 32
    body = len(twice) - len(once)
    assert twice[: len(once) - 8] == once[:-8] and twice[-body - 7 : -7] == once[-body - 7 : -7]


def test_arms_are_skipped_by_warps_without_threads_in_them(collectors) -> None:
    code = collectors.kernel("reduction", "_Z13reduce_sharedPKfPfi")
    barriers = [[one.opcode for one in collectors.reducing(code, warp)].count("bar") for warp in range(8)]
    loads = [[one.opcode for one in collectors.reducing(code, warp)].count("ld") for warp in range(8)]
    assert barriers == [9] * 8
    assert [count - loads[7] for count in loads] == [17, 4, 2, 2, 0, 0, 0, 0]


def test_the_product_of_few_warps_takes_the_cycles_of_the_reference(collectors) -> None:
    """sgemm16 under perfect memory: 5,024 cycles."""
    assert collectors.Sm(product(collectors, 16, 8), 1, 1, 2).run() == pytest.approx(5024, rel=0.03)


def test_a_load_in_the_second_collector_unit_starves(collectors) -> None:
    """32 warps keep the load/store unit busy; with two units a scheduler, one warp of each is left behind."""
    paths = product(collectors, 32, 1)
    two, four = (collectors.Sm(paths, 1, 1, units).run() for units in (2, 4))
    assert two > 1.1 * four
