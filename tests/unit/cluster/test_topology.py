"""Routes by formula are shortest paths of the same network as a graph, and always the same."""

from itertools import pairwise

import networkx
import pytest

from ppt_gpu.cluster.topology.dragonfly import DragonflyOf
from ppt_gpu.cluster.topology.edges import EdgeList
from ppt_gpu.cluster.topology.fat_tree import FatTreeOf
from ppt_gpu.cluster.topology.topology import SingleSwitch, Topology, graph
from ppt_gpu.cluster.topology.torus import TorusOf, near_cube
from ppt_gpu.common.errors import PptError
from ppt_gpu.spec.cluster import Dragonfly, FatTree, Torus

RING = [("n0", "s0"), ("n1", "s1"), ("n2", "s2"), ("n3", "s3")]
RING += [("s0", "s1"), ("s1", "s2"), ("s2", "s3"), ("s3", "s0"), ("s0", "s1")]

SMALL: dict[str, Topology] = {
    "one switch": SingleSwitch(5),
    "one switch, one node": SingleSwitch(1),
    "tree of one level": FatTreeOf(FatTree((8,), ()), 6, "t"),
    "tree of two levels": FatTreeOf(FatTree((4, 4), (4,)), 16, "t"),
    "tapered tree": FatTreeOf(FatTree((4, 4), (2,)), 14, "t"),
    "tree of three levels": FatTreeOf(FatTree((2, 3, 4), (2, 3)), 23, "t"),
    "dragonfly": DragonflyOf(Dragonfly(4, 2, 2), 50, "d"),
    "dragonfly of one group": DragonflyOf(Dragonfly(4, 2, 2), 7, "d"),
    "ring": TorusOf(Torus((7,), 1), 7, "r"),
    "torus": TorusOf(Torus((4, 3, 2), 3), 24, "t"),
    "torus of its own shape": TorusOf(Torus((), 3), 30, "t"),
    "edges": EdgeList(RING, 4, "e"),
}


@pytest.mark.parametrize("name", SMALL)
def test_routes_walk_along_links_and_pass_only_switches(name: str) -> None:
    topology = SMALL[name]
    links = graph(topology)
    for source in range(topology.nodes):
        for target in range(topology.nodes):
            route = topology.route(source, target)
            assert (route[0], route[-1]) == (source, target)
            assert all(links.has_edge(a, b) for a, b in pairwise(route))
            assert all(links.nodes[vertex]["kind"] == "switch" for vertex in route[1:-1])
            assert topology.between(source, target) == max(0, len(route) - 2)


@pytest.mark.parametrize("name", SMALL)
def test_routes_are_as_short_as_networkx_finds_them(name: str) -> None:
    topology = SMALL[name]
    links = graph(topology)
    for first, second, data in links.edges(data=True):
        # minimal routes of a dragonfly take one global link, even where two would save a hop
        data["length"] = 100 if name == "dragonfly" and group(first) != group(second) else 1
    lengths = dict(networkx.all_pairs_dijkstra_path_length(links, weight="length"))
    for source in range(topology.nodes):
        for target in range(topology.nodes):
            found = sum(links.edges[link]["length"] for link in pairwise(topology.route(source, target)))
            assert found == lengths[source][target]


def group(vertex: int) -> int:
    """The group of a vertex of SMALL["dragonfly"]: 8 nodes and 4 routers each."""
    return vertex // 8 if vertex < 50 else (vertex - 50) // 4


@pytest.mark.parametrize("name", SMALL)
def test_what_a_topology_says_of_itself(name: str) -> None:
    topology = SMALL[name]
    links = graph(topology)
    assert networkx.is_connected(links)
    assert links.number_of_nodes() == topology.nodes + topology.switches
    between = {topology.between(a, b) for a in range(topology.nodes) for b in range(topology.nodes) if a != b}
    assert not between or min(between) == topology.nearest()
    assert len(between) <= 1 or not topology.uniform


def test_a_full_fat_tree_gives_every_target_of_a_shift_its_own_way() -> None:
    """Non-blocking: when every node sends to the node 4 further, no link carries two messages."""
    tree = SMALL["tree of two levels"]
    used = [link for node in range(16) for link in pairwise(tree.route(node, (node + 4) % 16))]
    assert len(used) == len(set(used))


def test_large_networks_need_no_graph() -> None:
    nodes = 65536
    for topology in (
        FatTreeOf(FatTree((32, 32, 64), (32, 32)), nodes, "t"),
        DragonflyOf(Dragonfly(32, 16, 17), nodes, "d"),
        TorusOf(Torus((), 3), nodes, "t"),
    ):
        assert topology.between(0, nodes - 1) == len(topology.route(0, nodes - 1)) - 2


def test_links_side_by_side_are_counted() -> None:
    ring = SMALL["edges"]
    assert graph(ring).number_of_edges() == 8
    assert ring.multiplicity(*ring.route(0, 1)[1:3]) == 2


@pytest.mark.parametrize(("nodes", "dims"), [(64, (4, 4, 4)), (30, (5, 3, 2)), (7, (7, 1, 1)), (8192, (32, 16, 16))])
def test_a_torus_takes_the_shape_nearest_to_a_cube(nodes: int, dims: tuple[int, ...]) -> None:
    assert near_cube(nodes, 3) == dims


def test_networks_that_cannot_hold_the_nodes() -> None:
    with pytest.raises(PptError, match="network 't' holds at most 16 nodes, not 17"):
        FatTreeOf(FatTree((4, 4), (4,)), 17, "t")
    with pytest.raises(PptError, match="network 'd' holds at most 72 nodes, not 100"):
        DragonflyOf(Dragonfly(4, 2, 2), 100, "d")
    with pytest.raises(PptError, match="network 't' is a torus of 2 x 2 = 4 nodes, not 5"):
        TorusOf(Torus((2, 2), 2), 5, "t")
    with pytest.raises(PptError, match="network 'e' joins 4 nodes, not 8"):
        EdgeList(RING, 8, "e")
