"""A chip and an SM result small enough to check by hand."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from ppt_gpu.scale.occupancy.occupancy import Occupancy
from ppt_gpu.sm.program.result import STALL_REASONS, SmResult


@pytest.fixture
def chip() -> Callable[[int], SimpleNamespace]:
    """A GPU of which only the number of SMs is looked at."""
    return lambda sms: SimpleNamespace(sm=SimpleNamespace(count=sms))


@pytest.fixture
def holding() -> Callable[[int], Occupancy]:
    """An occupancy of so many blocks per SM."""
    return lambda blocks: Occupancy(blocks, 1, blocks, 1.0, ("blocks",), {"blocks": blocks}, 0, 0, 0, 0)


@pytest.fixture
def sm_result() -> Callable[..., SmResult]:
    """A result with the given block starts and ends; `trailing` cycles of stores after the last."""

    def make(start: list[int], end: list[int], trailing: int = 0) -> SmResult:
        none = np.zeros(0, np.int64)
        return SmResult(
            cycles=max(end) + trailing,
            issued=0,
            block_start=np.array(start, np.int64),
            block_end=np.array(end, np.int64),
            warp_cycles=np.zeros(len(STALL_REASONS), np.int64),
            op_issued=none,
            op_stall=np.zeros((0, len(STALL_REASONS)), np.int64),
            pipe_busy=none,
            l1_accesses=0,
            l1_hits=0,
            l2_accesses=0,
            l2_hits=0,
            dram_read_bytes=0,
            dram_write_bytes=0,
            l2_read_bytes=0,
            l2_write_bytes=0,
            shared_passes=0,
            shared_accesses=0,
            wall=0.0,
        )

    return make
