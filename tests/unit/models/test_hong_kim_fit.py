"""The fit finds the parameters of machines that follow the model, and says which of them measurements do not tell."""

from __future__ import annotations

import math

import pytest

from ppt_gpu.common.errors import PptError
from ppt_gpu.models.hong_kim.fit import Measurement, fit_memory
from ppt_gpu.models.hong_kim.hong_kim import hong_kim, hong_kim_cycles
from ppt_gpu.models.hong_kim.inputs import HongKimInputs
from ppt_gpu.models.hong_kim.tables import MICRO_BENCHMARKS

MACHINES = [(420, 10, 4), (450, 40, 4), (200, 1, 30)]


def measured(
    mem_ld: float, dep_uncoal: float, dep_coal: float, *, barriers: bool, noise: float = 0.0
) -> list[Measurement]:
    """Mb1, Mb3 and Mb7 on a machine with these parameters: one warp, one block, and all SMs full."""
    found = []
    for name in ("Mb1", "Mb3", "Mb7"):
        each = MICRO_BENCHMARKS[name]
        for threads, blocks, sms, resident in ((32, 1, 1, 1), (256, 1, 1, 1), (256, 48, 16, 3)):
            for coalesced in (True, False):
                memory = 1000 * each.memory
                inputs = HongKimInputs(
                    mem_ld=mem_ld, dep_uncoal=dep_uncoal, dep_coal=dep_coal, freq=1.35, mem_bandwidth=76.8,
                    threads_per_block=threads, blocks=blocks, active_sms=sms, active_blocks_per_sm=resident,
                    comp_insts=1000 * each.comp, uncoal_mem_insts=0 if coalesced else memory,
                    coal_mem_insts=memory if coalesced else 0, synch_insts=1000 if barriers else 0,
                )  # fmt: skip
                off = 1 + noise * (-1) ** len(found)
                found.append(Measurement(f"{name} {len(found)}", inputs, hong_kim(inputs).cycles * off))
    return found


@pytest.mark.parametrize("machine", MACHINES)
def test_the_parameters_of_a_machine_that_follows_the_model(machine: tuple[float, float, float]) -> None:
    fit = fit_memory(measured(*machine, barriers=True))
    assert (fit.mem_ld, fit.dep_uncoal, fit.dep_coal) == pytest.approx(machine, rel=1e-6)
    assert fit.error < 1e-6
    assert fit.determined("mem_ld") and fit.determined("dep_uncoal")
    for name, value in zip(("mem_ld", "dep_uncoal", "dep_coal"), machine, strict=True):
        low, high = fit.ranges[name]
        assert low <= value * (1 + 1e-9) and high >= value * (1 - 1e-9)


def test_what_the_measurements_do_not_tell_is_said() -> None:
    """420 / 4 warps are more than the 24 of an SM, so that without barriers nothing depends on the coalesced delay."""
    fit = fit_memory(measured(420, 10, 4, barriers=False))
    assert (fit.mem_ld, fit.dep_uncoal) == pytest.approx((420, 10), rel=1e-6)
    assert not fit.determined("dep_coal")
    low, high = fit.ranges["dep_coal"]
    assert low == 0.1 and high > 4


def test_noise_moves_the_parameters_little() -> None:
    fit = fit_memory(measured(420, 10, 4, barriers=True, noise=0.02))
    assert (fit.mem_ld, fit.dep_uncoal) == pytest.approx((420, 10), rel=0.03)
    assert 0.005 < fit.error < 0.02


def test_cycles_alone_are_those_of_the_whole_model() -> None:
    for each in measured(420, 10, 4, barriers=True):
        assert hong_kim_cycles(each.inputs) == hong_kim(each.inputs).cycles


def test_measurements_that_cannot_be_fitted() -> None:
    first = measured(420, 10, 4, barriers=False)[0]
    with pytest.raises(PptError, match="no measured kernel has a memory instruction"):
        fit_memory([first])
    with pytest.raises(PptError, match="must be more than 0, not nan"):
        Measurement("Mb1", first.inputs, math.nan)
