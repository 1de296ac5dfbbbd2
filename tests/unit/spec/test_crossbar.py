"""The experiment behind the L2 bandwidth of GPGPU-Sim's QV100."""

import numpy as np
import pytest


@pytest.fixture
def crossbar(hardware_tool):
    return hardware_tool("crossbar")


@pytest.mark.slow
def test_first_in_first_out_holds_up_about_half_of_the_slices(crossbar) -> None:
    qv100, gtx480 = crossbar.CHIPS
    assert 26 < crossbar.throughput(qv100, crossbar.copy_with_stride(qv100, 8, 8), 64) < 36
    assert 5 < crossbar.throughput(gtx480, crossbar.copy_with_stride(gtx480, 8, 24), 64) < 7


def test_stores_that_camp_on_few_slices_take_longer(crossbar) -> None:
    gtx480 = crossbar.CHIPS[1]
    assert crossbar.throughput(gtx480, crossbar.transposed_stores(gtx480, 512, 2), 64) < 4


def test_one_sector_each_takes_one_round_trip(crossbar) -> None:
    """64 SMs, a slice each: nobody waits."""
    assert crossbar.cycles_of(np.arange(64).reshape(64, 1), np.ones((64, 1), np.int64), 64, 64) == crossbar.DELAY + 1
