"""Loop skipping where there is no loop."""

import numpy as np

from ppt_gpu.sm.core_skip import Skipping


def test_a_warp_without_entries_is_in_no_loop() -> None:
    """Its path may begin where the code ends: the anchor of a copy can be one, after a block has followed another."""
    skipping = object.__new__(Skipping)
    skipping.code = np.zeros(4, np.int64)
    assert skipping._alike(4) == 0
