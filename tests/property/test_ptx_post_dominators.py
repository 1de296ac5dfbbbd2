"""Post-dominators against networkx, on random graphs."""

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from ppt_gpu.ptx.cfg import back_edges, post_dominators


@st.composite
def graphs(draw: st.DrawFn) -> list[tuple[int, ...]]:
    """Successors of N blocks; N is the exit. Dense and sparse, with loops without exit and unreachable parts."""
    blocks = draw(st.integers(1, 24))
    most = draw(st.sampled_from([1, 2, 2, 4]))
    node = st.integers(0, blocks)
    return [tuple(sorted(draw(st.sets(node, min_size=1, max_size=most)))) for _ in range(blocks)]


@settings(max_examples=400, deadline=None)
@given(graphs())
def test_post_dominators_agree_with_networkx(successors: list[tuple[int, ...]]) -> None:
    blocks = len(successors)
    ipdom, joined = post_dominators(successors)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(blocks + 1))
    graph.add_edges_from((to, block) for block, following in enumerate(successors) for to in following)
    assert bool(joined) == (len(nx.descendants(graph, blocks)) < blocks)
    graph.add_edges_from((blocks, block) for block in joined)
    expected = dict(nx.immediate_dominators(graph, blocks))
    expected.pop(blocks, None)
    assert dict(enumerate(ipdom)) == expected


@settings(max_examples=200, deadline=None)
@given(graphs())
def test_only_what_is_needed_is_joined_to_the_exit(successors: list[tuple[int, ...]]) -> None:
    """A joined block does not reach the exit by itself, nor through blocks joined before it."""
    blocks = len(successors)
    _, joined = post_dominators(successors)
    graph = nx.DiGraph((block, to) for block, following in enumerate(successors) for to in following)
    graph.add_node(blocks)
    for block in joined:
        assert not nx.has_path(graph, block, blocks)
        graph.add_edge(block, blocks)
    assert all(nx.has_path(graph, block, blocks) for block in range(blocks))


@settings(max_examples=200, deadline=None)
@given(graphs())
def test_without_its_back_edges_a_graph_has_no_cycle(successors: list[tuple[int, ...]]) -> None:
    graph = nx.DiGraph((block, to) for block, following in enumerate(successors) for to in following)
    graph.add_node(0)
    reachable = graph.subgraph({0} | nx.descendants(graph, 0)).copy()
    back = back_edges(successors)
    assert all(reachable.has_edge(*edge) and nx.has_path(reachable, edge[1], edge[0]) for edge in back)
    reachable.remove_edges_from(back)
    assert nx.is_directed_acyclic_graph(reachable)
