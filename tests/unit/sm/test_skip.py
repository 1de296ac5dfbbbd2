"""Loop skipping where there is no loop."""

import numpy as np

from ppt_gpu.sm.loop.skip import loop_length


def test_a_warp_without_entries_is_in_no_loop() -> None:
    """Its path may begin where the code ends: the anchor of a copy can be one, after a block has followed another."""
    assert loop_length(np.zeros(4, np.int64), 4) == 0


def test_the_length_of_a_loop() -> None:
    assert loop_length(np.tile(np.arange(7), 20), 3) == 7
    assert loop_length(np.arange(200), 3) == 0
