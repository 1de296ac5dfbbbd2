"""Messages and collectives on machines drawn at random: within the bounds of their wires, and faster on faster ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppt_gpu.cluster.collectives.collectives import KINDS, algorithms
from ppt_gpu.cluster.load import ClusterMachine, load_machine
from ppt_gpu.cluster.model.machine import GPU, HOST, PS_PER_S, Place

BASES = [load_machine(name, 4) for name in ("dgx_h100", "alps_gh200", "alps_openmpi", "k40_node", "dgx1_v100", "p4de")]
RATES = st.floats(1e8, 1e12)


@st.composite
def machines(draw: st.DrawFn) -> ClusterMachine:
    """A shipped machine with other rates, NICs and staging."""
    spec = draw(st.sampled_from(BASES)).spec
    network = replace(spec.network, bandwidth=draw(RATES), efficiency=draw(st.floats(0.1, 1)))
    pcie = replace(spec.pcie, to_gpu=draw(RATES), to_host=draw(RATES), peer=draw(st.booleans()))
    nic = replace(spec.nic, count=draw(st.integers(1, 2 * spec.gpus_per_node)), gpu_direct=draw(st.booleans()))
    return ClusterMachine(replace(spec, network=network, pcie=pcie, nic=nic))


@st.composite
def pairs(draw: st.DrawFn, machine: ClusterMachine) -> tuple[Place, Place]:
    memories = st.sampled_from([GPU, HOST])
    nodes, gpus = st.integers(0, machine.nodes - 1), st.integers(0, machine.gpus_per_node - 1)
    return Place(draw(nodes), draw(gpus), draw(memories)), Place(draw(nodes), draw(gpus), draw(memories))


@given(st.data(), st.integers(0, 1 << 30))
@settings(max_examples=150, deadline=None)
def test_no_message_is_faster_than_its_wires(data: st.DataObject, nbytes: int) -> None:
    machine = data.draw(machines())
    source, target = data.draw(pairs(machine))
    found = machine.transfer(source, target, nbytes)
    spec = machine.spec
    if source.node != target.node:
        wires = spec.network.bandwidth * machine.node_ports.nics_each
        assert found.duration >= (nbytes / wires + 2 * spec.network.nic_latency) * PS_PER_S - 10
        assert found.latency >= machine.lookahead
        if source.memory == GPU:
            assert found.duration >= nbytes / spec.pcie.to_host * PS_PER_S - 10
    numbers = (found.latency, found.tail, found.send_overhead, found.receive_overhead, found.control_latency)
    assert all(isinstance(number, int) and number >= 0 for number in numbers)
    assert all(0 <= port < len(machine.ports()) and held >= 0 for port, held in found.source_ports + found.target_ports)


@given(st.data(), st.integers(0, 1 << 30), st.floats(1, 100))
@settings(max_examples=100, deadline=None)
def test_no_message_is_slower_on_faster_wires(data: st.DataObject, nbytes: int, factor: float) -> None:
    machine = data.draw(machines())
    source, target = data.draw(pairs(machine))
    before = machine.transfer(source, target, nbytes)
    names = [name for name in machine.parameters() if name.endswith(("bandwidth", ".to_gpu", ".to_host"))]
    name = data.draw(st.sampled_from(names))
    assert machine.scaled(name, factor).transfer(source, target, nbytes).duration <= before.duration


@given(st.data(), st.integers(1, 1 << 28))
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "barrier"])
def test_no_collective_is_faster_than_what_a_gpu_must_send(kind: str, data: st.DataObject, nbytes: int) -> None:
    """At least the bytes of its part go through a NIC group between the nodes, whatever the algorithm."""
    machine = data.draw(machines())
    algorithm = data.draw(st.sampled_from(algorithms(kind)))
    found = machine.collective(kind, nbytes, 4, machine.gpus_per_node, algorithm).duration
    wires = machine.spec.network.bandwidth * machine.node_ports.nics_each
    ranks = machine.nodes * machine.gpus_per_node
    assert found >= nbytes // ranks / wires * PS_PER_S - 10


@given(st.data(), st.integers(0, 1 << 28))
@settings(max_examples=60, deadline=None)
def test_holding_ports_is_what_limits_a_stream_of_messages(data: st.DataObject, nbytes: int) -> None:
    """No port of a message between nodes is held for less than its bytes take on it."""
    machine = data.draw(machines())
    place = Place(0, data.draw(st.integers(0, machine.gpus_per_node - 1)), GPU)
    found = machine.transfer(place, Place(1, place.gpu, GPU), nbytes)
    held = {machine.ports()[port]: time for port, time in found.source_ports}
    spec, ports = machine.spec, machine.node_ports
    assert held[f"gpu{place.gpu} pcie up"] >= nbytes / spec.pcie.to_host * PS_PER_S - 1
    rate = spec.network.bandwidth * spec.network.efficiency * ports.nics_each
    assert held[f"nic{ports.nic(place.gpu)} out"] >= nbytes / rate * PS_PER_S - 1
