"""Kinds of blocks: the fewest clusters that explain the differences, the same for the same input."""

from __future__ import annotations

import numpy as np
import pytest

from ppt_gpu.emulator.trace.block_features import BlockFeatures
from ppt_gpu.scale.blocks.block_kinds import MOST_CLUSTERS, cluster_blocks, k_means


def blocks(work: list[int], sectors: list[int] | None = None) -> BlockFeatures:
    done = np.array(work, np.int64)
    asked = np.zeros(len(work), np.int64) if sectors is None else np.array(sectors, np.int64)
    return BlockFeatures(np.arange(len(work)), done, 32 * done, done, asked)


def test_blocks_alike_are_one_kind() -> None:
    found = cluster_blocks(blocks([7] * 20), np.ones(20))
    assert len(found) == 1 and found.share.tolist() == [1.0] and found.representative.tolist() == [0]


def test_two_kinds_and_their_shares() -> None:
    found = cluster_blocks(blocks([100, 9, 102, 98, 11, 100, 10, 100]), np.ones(8))
    assert len(found) == 2 and found.share.tolist() == [5 / 8, 3 / 8]
    assert found.member.tolist() == [0, 1, 0, 0, 1, 0, 1, 0]
    assert found.representative.tolist() == [0, 6]  # nearest to the means 100 and 10; of equals the first
    assert found.centre[0, 0] == pytest.approx(100 / (530 / 8))


def test_kinds_that_only_memory_tells_apart() -> None:
    found = cluster_blocks(blocks([50] * 6, [8, 8, 8, 256, 256, 8]), np.ones(6))
    assert found.share.tolist() == [4 / 6, 2 / 6]
    assert found.assign(blocks([50, 50], [10, 200])).tolist() == [0, 1]


def test_weights_are_shares_of_the_grid() -> None:
    found = cluster_blocks(blocks([10, 100, 100, 1000]), np.array([6.0, 1.0, 1.0, 0.0]))
    assert found.share.tolist() == [0.75, 0.25]  # the last was looked at, but stands for no other
    assert found.member.tolist() == [0, 1, 1, 1]


def test_a_spread_of_work_needs_several_kinds_and_an_outlier_one_of_its_own() -> None:
    spread = cluster_blocks(blocks(list(range(1, 301))), np.ones(300))
    assert 4 <= len(spread) <= 5 and max(spread.share) < 0.3
    outlier = cluster_blocks(blocks([10] * 99 + [5000]), np.ones(100))
    assert outlier.share.tolist() == [0.99, 0.01]
    assert len(cluster_blocks(blocks([2**k for k in range(40)]), np.ones(40))) <= MOST_CLUSTERS


def test_k_means_is_deterministic_and_scatters_less_with_more_clusters() -> None:
    points = np.random.default_rng(5).gamma(1.0, 1.0, (500, 3))
    weight = np.ones(500)
    scatter = []
    for count in range(1, 6):
        centre = k_means(points, weight, count)
        assert np.array_equal(centre, k_means(points, weight, count)) and len(centre) == count
        scatter.append(((points[:, None] - centre) ** 2).sum(axis=2).min(axis=1).sum())
    assert scatter == sorted(scatter, reverse=True)
    assert len(k_means(np.ones((4, 2)), np.ones(4), 3)) == 1
