"""What a trace holds of a lane that arrives or waits at an mbarrier or a named barrier: a word, in place of an address.

It has the place (an address in shared memory, with the rank of a block of the cluster above it, or a barrier's number)
and what the instruction's operands say: of init and arrive the count, of expect_tx and complete_tx the bytes, of
test_wait and try_wait the parity that they ask for, of a barrier the warps it expects (0: all of the block).
"""

from __future__ import annotations

from ppt_gpu.spec.gpu import MEMORY_SPACES

PLACE_BITS, GIVEN_BITS = 29, 18
PLACE, GIVEN = (1 << PLACE_BITS) - 1, (1 << GIVEN_BITS) - 1
#: `Trace.access_space` of these words: accesses to constants are not recorded
SYNC_SPACE = MEMORY_SPACES.index("constant")


def word(place: int, given: int) -> int:
    """The word of one lane."""
    return place & PLACE | (given & GIVEN) << PLACE_BITS
