"""The shipped machines: all read, every number with its source, sources that are listed, and what their nodes are."""

import re

import pytest

from ppt_gpu.cli import main
from ppt_gpu.cluster.load import load_machine
from ppt_gpu.cluster.model.machine import GPU, HOST, Place, picoseconds
from ppt_gpu.common.paths import data_dir
from ppt_gpu.spec.cluster_parts import PARTS, read_part
from ppt_gpu.spec.files import shipped
from ppt_gpu.spec.load_cluster import list_machines, load_machine_spec

NAMES = [name for name, _ in list_machines()]
TEXTS = ("title", "notes", "base")


@pytest.mark.parametrize("name", NAMES)
def test_every_number_has_a_source(name: str) -> None:
    sources = load_machine_spec(name).sources
    bare = [path for path, found in sources.items() if not found.source and path.split(".")[-1] not in TEXTS]
    assert bare == []
    assert len(sources) > 80


@pytest.mark.parametrize("name", NAMES)
def test_sources_name_a_known_reference(name: str) -> None:
    text = (data_dir("hardware") / "SOURCES.md").read_text(encoding="utf-8")
    known = set(re.findall(r"^\| ([A-Z0-9]+) \|", text, re.MULTILINE))
    kinds = r"(?:measured|fitted|spec|model|derived)"
    cited = [
        each
        for found in load_machine_spec(name).sources.values()
        for each in re.findall(rf"{kinds} \((\w+)", found.source)
    ]
    assert cited
    assert set(cited) <= known


@pytest.mark.parametrize("key", PARTS)
def test_every_shipped_part_can_be_read(key: str) -> None:
    for name in shipped(PARTS[key].folder):
        assert read_part(key, name).name == name


@pytest.mark.parametrize("name", NAMES)
def test_every_machine_answers(name: str) -> None:
    """A message between any memories within and between nodes takes its latency and more with its size."""
    machine = load_machine(name, nodes=4)
    last = machine.gpus_per_node - 1
    for memory in (GPU, HOST):
        for target in (Place(0, last, memory), Place(3, 0, memory)):
            times = [machine.transfer(Place(0, 0, memory), target, size).duration for size in (0, 8, 1 << 20, 1 << 30)]
            assert 0 < times[0] <= times[1] < times[2] < times[3]
    assert 0 < machine.lookahead <= machine.transfer(Place(0, 0, HOST), Place(1, 0, HOST), 0).latency
    assert all(
        0 <= port < len(machine.ports())
        for port, _ in machine.transfer(Place(0, 0, GPU), Place(1, last, GPU), 8).source_ports
    )


def test_unlike_gpus_in_a_node() -> None:
    machine = load_machine("mixed_node")
    assert [machine.gpu(number) for number in (0, 3, 4, 7)] == ["h100", "h100", "a100", "a100"]
    assert machine.reduce(0, GPU, 1 << 30) < machine.reduce(7, GPU, 1 << 30)
    with pytest.raises(IndexError):
        machine.gpu(8)


def test_nvlinks_of_the_cube_mesh() -> None:
    """Two links to GPU 3, one to GPU 1, none to GPU 5, which is reached over PCIe."""
    machine = load_machine("dgx1_v100")
    times = [machine.transfer(Place(0, 0, GPU), Place(0, to, GPU), 1 << 28).tail for to in (3, 1, 5)]
    assert times[1] == pytest.approx(2 * times[0], rel=1e-9)
    assert times[2] > times[1]
    assert sum(links for (first, _), links in machine.node_ports.pairs.items() if first == 0) == 6


def test_nics_shared_by_gpus_and_gpus_with_several() -> None:
    few, many = load_machine("p4de").node_ports, load_machine("oci_h100").node_ports
    assert [few.nic(gpu) for gpu in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert (few.nics_each, many.nics_each) == (1, 2)
    assert [many.nic(gpu) for gpu in range(8)] == list(range(8))


def test_gpu_memory_is_staged_where_the_nic_cannot_read_it() -> None:
    direct = load_machine("k40_node", 2)
    staged = load_machine("k40_node", 2, ["nic.gpu_direct=false"])
    size = 1 << 26
    slow, fast = (m.transfer(Place(0, 0, GPU), Place(1, 0, GPU), size).duration for m in (staged, direct))
    copies = direct.copy(0, GPU, HOST, size).duration + direct.copy(0, HOST, GPU, size).duration
    assert slow == pytest.approx(fast + copies, abs=5)


def test_links_where_the_network_is_contended() -> None:
    machine = load_machine("dgx_h100", 64, ["network.contention=links"])
    near = machine.transfer(Place(0, 0, GPU), Place(1, 0, GPU), 1 << 20)
    far = machine.transfer(Place(0, 3, GPU), Place(63, 3, GPU), 1 << 20)
    assert (len(near.hops), len(far.hops)) == (1, 3)
    assert all(0 <= hop.switch < machine.switches and hop.latency >= machine.lookahead for hop in far.hops)
    plain = load_machine("dgx_h100", 64).transfer(Place(0, 3, GPU), Place(63, 3, GPU), 1 << 20)
    assert abs(far.duration - plain.duration) <= 4  # rounded hop by hop
    fair = load_machine("dgx_h100", 64, ["network.contention=fair"])
    links = fair.transfer(Place(0, 3, GPU), Place(63, 3, GPU), 1 << 20).links
    assert len(links) == 4 + 2
    assert [fair.link_rate(link) for link in links] == [0.97 * 50e9] * 4 + [46.8e9, 54.8e9]
    assert fair.distance(0, 1) == (0, 1)


def test_large_machines_are_made_at_once_and_uniform_ones_say_so() -> None:
    machine = load_machine("dgx_h100", 8192)
    assert not machine.uniform and machine.distance(0, 1) == 1 and machine.distance(0, 8191) == 5
    single = load_machine("dgx_h100", 8192, ["network=single_switch"])
    assert single.uniform and single.distance(0, 8191) == 1


def test_scaling_a_parameter_changes_what_depends_on_it() -> None:
    machine = load_machine("dgx_h100", 2)
    pair = Place(0, 0, GPU), Place(1, 0, GPU)
    before = machine.transfer(*pair, 1 << 26)
    assert machine.scaled("network.bandwidth", 0.5).transfer(*pair, 1 << 26).tail > before.tail
    more = machine.scaled("mpi.gpu_network.overhead", 3).transfer(*pair, 1 << 26)
    assert more.send_overhead == 3 * before.send_overhead
    assert more.receive_overhead == 3 * before.receive_overhead
    for parameter in machine.parameters():
        assert machine.scaled(parameter, 1.0).transfer(*pair, 1 << 20) == machine.transfer(*pair, 1 << 20)
    assert machine.scaled("network.efficiency", 9).spec.network.efficiency == 1.0


def test_copies_hold_their_pcie_direction() -> None:
    machine = load_machine("dgx_h100")
    copy = machine.copy(2, HOST, GPU, 1 << 30)
    assert [machine.ports()[port] for port, _ in copy.ports] == ["gpu2 pcie down"]
    assert copy.duration == picoseconds(10e-6 + 2**30 / 54.8e9)


def test_the_command_lists_machines_and_shows_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["machines"]) == 0
    assert all(name in capsys.readouterr().out for name in NAMES[:1])
    assert main(["machines", "alps_gh200", "--set", "nic.count=2"]) == 0
    out = capsys.readouterr().out
    assert "node: 4 x gh200, host 4x Grace" in out
    assert "command line" in out or "nic.count" in out
    assert main(["machines", "--set", "nic.count=2"]) == 2
    assert "--set needs the name of a machine" in capsys.readouterr().err
    assert main(["machines", "dgx_h101"]) == 2
    assert "did you mean 'dgx_h100'?" in capsys.readouterr().err
