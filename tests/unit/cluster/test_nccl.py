"""NCCL's choices and times: worked from its published formulas, within the bounds of the hardware, and monotone."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppt_gpu.cluster.collectives.nccl import estimates, group_of, seconds, time_of
from ppt_gpu.cluster.load import load_machine
from ppt_gpu.cluster.model.machine import PS_PER_S
from ppt_gpu.spec.load_cluster import load_machine_spec

MACHINES = [load_machine(name, nodes) for name, nodes in (("dgx_h100", 4), ("p4de", 2), ("k40_node", 8))]
H100, A100, B200 = (load_machine_spec(name) for name in ("dgx_h100", "hgx_a100", "p6_b200"))


def microseconds(spec, nbytes: int, nodes: int, each: int) -> dict[str, float]:  # type: ignore[no-untyped-def]
    group = group_of(spec, nodes, each)
    return {way.name: time_of(group, "all_reduce", nbytes, way) * 1e6 for way in estimates(group, "all_reduce")}


def test_one_node_worked_by_hand() -> None:
    """8 H100, 1 MiB: latency = base + 14 or 2 * 7 steps of NVLink, plus bytes / (bus * 8 / 14)."""
    found = microseconds(H100, 1 << 20, 1, 8)
    mega = float(1 << 20) / 1e3  # bytes over GB/s are ns
    assert found["ring LL"] == pytest.approx(6.6 + 14 * 0.6 + mega / (141 * 8 / 14))
    assert found["ring Simple"] == pytest.approx(8.4 + 14 * 3.4 + mega / (370.8 * 8 / 14))
    assert found["ring LL128"] == pytest.approx(14 + 14 * 1.9 + mega / (370.8 * 0.92 * 8 / 14))
    assert found["NVLS"] == pytest.approx(25 + mega / (370.8 * 0.85 / (1 + 1 / 8)))
    tree = min(370.8 * 0.92, 16 * 38.7)
    assert found["tree Simple"] == pytest.approx(8.4 + 14 * 4.0 + mega / (tree / 2 * 0.5))


def test_two_nodes_worked_by_hand() -> None:
    """Ring: 30 steps, 4 of them between nodes; tree: 14 within and 2 between nodes."""
    found = microseconds(H100, 1 << 20, 2, 8)
    mega = float(1 << 20) / 1e3
    bus = min(370.8, 8 * 50 * 0.97)
    assert found["ring LL"] == pytest.approx(6.6 + 26 * 1.0 + 4 * 2.7 + mega / (45 * 16 / 30))
    assert found["ring Simple"] == pytest.approx((8.4 + 26 * 3.4 + 4 * 14) * 1.4 + mega / (bus * 16 / 30))
    assert found["NVLS tree"] == pytest.approx(25 + 2 * 20.9 + mega / (370.8 * 0.85 / 1.125))


def test_choices_follow_the_size() -> None:
    names = [
        load_machine("dgx_h100").collective("all_reduce", 1 << p, 1, 8, "nccl").algorithm for p in (10, 20, 24, 33)
    ]
    assert names == ["ring LL", "ring LL", "NVLS", "NVLS"]
    names = [load_machine("hgx_a100").collective("all_reduce", 1 << p, 1, 8, "nccl").algorithm for p in (10, 23, 33)]
    assert names == ["ring LL", "ring LL128", "ring Simple"]


@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"])
@given(power=st.integers(0, 34), nodes=st.sampled_from([1, 2, 3, 4, 16, 512]), each=st.sampled_from([1, 2, 4, 8]))
@settings(max_examples=40, deadline=None)
def test_never_faster_than_the_wires(kind: str, power: int, nodes: int, each: int) -> None:
    """What must leave the busiest node, or GPU, over its links takes at least bytes / rate."""
    ranks, nbytes = nodes * each, 1 << power
    if ranks == 1:
        return
    for spec in (H100, A100, B200):
        found, _ = seconds(spec, kind, nbytes, nodes, each)
        nics = max(1.0, spec.nic.count * each / 8) * spec.network.bandwidth
        if nodes > 1:
            least = nbytes * (each / ranks if kind == "all_gather" else 1.0) / nics
            least = nbytes * each * (ranks - each) / ranks / nics if kind == "all_to_all" else least
            least = nbytes / ranks * (ranks - each) / nics if kind == "reduce_scatter" else least
            assert found >= least
        wires = spec.nvlink.links * spec.nvlink.bandwidth
        assert found >= nbytes * (ranks - 1) / ranks / (wires + nics)


@given(power=st.floats(3, 33), more=st.floats(1.01, 4))
@settings(max_examples=40, deadline=None)
def test_more_bandwidth_is_not_slower(power: float, more: float) -> None:
    nbytes = int(2**power)
    for machine in MACHINES:
        nodes, each = machine.nodes, machine.gpus_per_node
        before = machine.collective("all_reduce", nbytes, nodes, each, "nccl").duration
        for parameter in ("network.bandwidth", "collectives.bandwidth"):
            assert (
                machine.scaled(parameter, more).collective("all_reduce", nbytes, nodes, each, "nccl").duration <= before
            )


def test_the_ramp_is_the_filling_of_the_pipeline() -> None:
    """Half of it shows at fill_size, and nothing of it at 8 bytes."""
    plain = load_machine("hgx_a100").scaled("collectives.fill", 1e-12)
    full = load_machine("hgx_a100")
    fit = full.spec.collectives

    def extra(nbytes: int) -> float:
        both = [machine.collective("all_reduce", nbytes, 1, 8, "nccl").duration for machine in (full, plain)]
        return (both[0] - both[1]) / PS_PER_S

    assert extra(8) == pytest.approx(0, abs=1e-9)
    assert extra(int(fit.fill_size)) == pytest.approx(fit.fill / 2, rel=1e-6)
    assert extra(1 << 34) == pytest.approx(fit.fill, rel=5e-3)


def test_pairwise_links_serve_fewer_gpus_less() -> None:
    """Two of four GPUs that are all joined use a third of their links."""
    spec = load_machine_spec("alps_gh200")
    assert group_of(spec, 1, 2).within == pytest.approx(group_of(spec, 1, 4).within / 3)
    assert group_of(H100, 1, 2).within == group_of(H100, 1, 8).within


def test_a_barrier_costs_latency_only_and_one_gpu_nothing() -> None:
    machine = load_machine("dgx_h100", 4)
    barrier, word = machine.collective("barrier", 0, 4, 8, "nccl"), machine.collective("all_reduce", 4, 4, 8, "nccl")
    assert barrier.algorithm == word.algorithm == "tree LL"
    assert barrier.duration == pytest.approx(word.duration, rel=1e-5)
    assert machine.collective("all_reduce", 1 << 30, 1, 1, "nccl").duration == 0


def test_latency_grows_with_the_logarithm_of_the_nodes() -> None:
    machine = load_machine("dgx_h100", 512)
    times = [machine.collective("all_reduce", 8, nodes, 8, "nccl").duration / 1e6 for nodes in (2, 4, 8, 16)]
    steps = [later - before for before, later in pairwise(times)]
    assert all(step == pytest.approx(2 * 5.0, abs=0.01) for step in steps), "a tree of LL: 5 us up and down"
    assert times[0] == pytest.approx(6.8 + 14 * 0.6 + 2 * 5.0, abs=0.01)
