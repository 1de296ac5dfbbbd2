"""An mbarrier object as 64 bits of shared memory, what instructions do to it, and what a trace holds of these.

The ISA leaves the layout open ("mbarrier object", PTX ISA 9.0). Here: arrivals still pending in bits 0-19, arrivals
expected of each phase in 20-39, bytes still to be transferred in 40-61 (signed), and in bit 63 the phase's parity.
When neither arrivals nor bytes are missing, the parity flips and the next phase expects its arrivals. The state that
mbarrier.arrive returns is the word before the arrival.
"""

from __future__ import annotations

from ppt_gpu.spec.gpu import MEMORY_SPACES

COUNT_BITS = 20
COUNT = (1 << COUNT_BITS) - 1
EXPECTED, BYTES, BYTES_BITS = COUNT_BITS, 2 * COUNT_BITS, 22
PARITY = 63
PLACE_BITS, GIVEN_BITS = 29, 18
PLACE, GIVEN = (1 << PLACE_BITS) - 1, (1 << GIVEN_BITS) - 1
#: `Trace.access_space` of these words: accesses to constants are not recorded
SYNC_SPACE = MEMORY_SPACES.index("constant")


def word(place: int, given: int) -> int:
    """What a trace holds, in place of an address, of a lane that arrives or waits at an mbarrier or a named barrier.

    place: an address in shared memory, with the rank of a block of the cluster above it, or a barrier's number.
    given: what the operands say: of init and arrive the count, of expect_tx and complete_tx the bytes, of test_wait and
    try_wait the parity that they ask for, of a barrier the warps it expects (0: all of the block).
    """
    return place & PLACE | (given & GIVEN) << PLACE_BITS


def fresh(count: int) -> int:
    """The word that mbarrier.init leaves."""
    return (count & COUNT) << EXPECTED | (count & COUNT)


def updated(word: int, arrivals: int = 0, dropped: int = 0, expected_bytes: int = 0) -> int:
    """The word after `arrivals`, of which `dropped` never come again, and a change of the bytes to be transferred."""
    pending = (word & COUNT) - arrivals & COUNT
    expected = (word >> EXPECTED & COUNT) - dropped & COUNT
    missing = (word >> BYTES) + expected_bytes & ((1 << BYTES_BITS) - 1)
    parity = word >> PARITY & 1
    if pending == 0 and missing == 0:
        pending, parity = expected, parity ^ 1
    return parity << PARITY | missing << BYTES | expected << EXPECTED | pending


def parity(word: int) -> int:
    """The parity of the phase that is not complete yet."""
    return word >> PARITY & 1
