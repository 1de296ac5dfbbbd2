"""The S-core model: limits that it must meet, and inputs that contradict each other."""

from dataclasses import replace

import pytest

from ppt_gpu.common.errors import PptError
from ppt_gpu.multicore.base.core_file import list_cores, load_core
from ppt_gpu.multicore.core_models.s_core import Options, predict
from ppt_gpu.multicore.core_models.s_inputs import SInputs
from ppt_gpu.multicore.port.port import generic

MIX = {"int_add": 3e5, "fp_add": 4e5, "fp_mul": 4e5, "load": 6e5, "store": 2e5, "branch": 1e5}
RUN = SInputs(MIX, ILP=6.2, ILP_w2=1.4, N_mL1=3e4, N_mL2=1e4, N_mL3=4e3, N_mbr=1e3, N_mDTLB=500.0)


@pytest.mark.parametrize("name", list_cores())
def test_parts_sum_to_the_cycles(name: str) -> None:
    found = predict(RUN, load_core(name))
    assert sum(found.parts.values()) == pytest.approx(found.cycles)
    assert found.time == pytest.approx(found.cycles / load_core(name).clock)
    assert all(part >= 0 for part in found.parts.values())


@pytest.mark.parametrize("name", list_cores())
@pytest.mark.parametrize("key", ["N_mL1", "N_mL2", "N_mL3", "N_mbr", "N_mDTLB", "N_mITLB"])
def test_more_events_never_help(name: str, key: str) -> None:
    core = load_core(name)
    more = replace(RUN, **{key: getattr(RUN, key) * 1.5 + 10})
    assert predict(more, core).cycles >= predict(RUN, core).cycles


@pytest.mark.parametrize("name", ["nehalem", "sandybridge"])
def test_never_faster_than_the_fullest_port(name: str) -> None:
    """All on port 0: a cycle each, whatever the parallelism."""
    found = predict(SInputs({"fp_mul": 1000}, ILP=100), load_core(name))
    assert found.cycles == pytest.approx(1000)


def test_divisions_run_one_after_another() -> None:
    core = load_core("sandybridge")
    found = predict(SInputs({"fp_div": 100}, ILP=100), core)
    assert found.cycles == pytest.approx(100 * core.operations["fp_div"].blocking)


def test_never_faster_than_memory() -> None:
    core = load_core("sandybridge")
    found = predict(SInputs({"load": 1e6}, ILP=50, N_mL1=1e6, N_mL2=1e6, N_mL3=1e6, N_mL3_o=1e6), core)
    assert found.time == pytest.approx(1e6 * 64 / core.bandwidth)
    assert found.limiter == "bandwidth"


def test_cores_share_the_parallel_part() -> None:
    core = load_core("sandybridge")
    one = predict(replace(RUN, f_inf=0.9), core)
    four = predict(replace(RUN, f_inf=0.9), core, Options(cores=4))
    assert four.cycles == pytest.approx(one.cycles * (0.1 + 0.9 / 4))
    with pytest.raises(PptError, match="5 cores of 'sandybridge'; the chip has 4"):
        predict(RUN, core, Options(cores=5))


def test_the_generic_prediction() -> None:
    """By hand: out of order, instructions at 4 a cycle, 1000 mispredictions, L2 misses of one window together."""
    core = load_core("sandybridge")
    together = max(1.0, core.window * RUN.N_mL2 / RUN.operations)
    events = RUN.N_mbr + RUN.N_mL2 / together
    expected = RUN.operations / 4 + 3 / 8 * events + RUN.N_mbr * 21 + RUN.N_mL2 / together * core.memory_cycles
    assert generic(RUN, core).cycles == pytest.approx(expected)
    atom = load_core("atom")
    long = 4e5 * (5 - 1 - 0.25) * 2
    misses = (3e4 - 1e4) * (15 - 0.25) + 1e4 * (atom.memory_cycles - 0.25)
    expected = RUN.operations / 2 + long + misses + 1e3 * (17 + 0.25) + 0.6 * RUN.operations / 4
    assert generic(RUN, atom).cycles == pytest.approx(expected)


def test_an_accelerator_takes_operations_over() -> None:
    core = load_core("sandybridge")
    half = replace(RUN, N_accel=RUN.operations / 2, accel_calls=10.0, accel_latency=100.0)
    found = predict(half, core)
    assert found.parts["accelerator"] == 1000
    assert found.parts["issue"] == pytest.approx(predict(RUN, core).parts["issue"] / 2)


def test_measured_overlap_and_measured_micro_ops_count() -> None:
    core = load_core("sandybridge")
    found = predict(replace(RUN, N_mL3_o=4e3, N_M=4e6), core)
    assert found.parts["memory"] == 0
    assert found.parts["issue"] == pytest.approx(4e6 / min(6, 6.2 / step(found, "l_mu")))


def step(found: object, symbol: str) -> float:
    return next(each.value for each in found.steps if each.symbol == symbol)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"N_mL1": -1.0}, "N_mL1 is -1; expected a number of 0 to 1e\\+18"),
        ({"f_inf": 1.5}, "f_inf is 1.5; a share is at most 1"),
        ({"simd_memory": 2.0}, "simd_memory is 2; a share is at most 1"),
        ({"ILP": 0.5}, "ILP is 0.5"),
        ({"ILP_w2": 2.5}, "with a window of 2 2.5"),
        ({"N_mL3_o": 1e6}, "N_mL3_o is 1e\\+06, more than the 10000 misses"),
        ({"N_accel": 1e9}, "N_accel is 1e\\+09, more than the 2e\\+06 operations"),
        ({"n_i": {"fp_ad": 1.0}}, "unknown operation 'fp_ad'"),
        ({"n_i": {}}, "n_i counts no operations"),
        ({"n_i": {"fp_add": float("nan")}}, "n_i of fp_add is nan"),
    ],
)
def test_inputs_that_cannot_be(changes: dict, message: str) -> None:
    with pytest.raises(PptError, match=message):
        replace(RUN, **changes)
