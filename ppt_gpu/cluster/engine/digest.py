"""The digest of a run: SHA-256 over all times of all ranks, equal for every way of running the same simulation.

Each rank keeps a log of its events in the order in which they happened to it: a kind, then the times. Logs hold nothing
that depends on where a rank sits, so that ranks that live the same life have the same log.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from hashlib import sha256

#: kinds of entries, each followed by times in ps
KERNEL = 1  # ready, start, end
COPY = 2  # ready, start, end
DEPART = 3  # ready, start
ARRIVE = 4  # head at the target node, start behind its ports, end, bytes, tag
RECEIVE = 5  # receive done
REQUEST = 6  # a rendezvous request arrives
ANSWER = 7  # its answer arrives
COLLECTIVE = 8  # ready, end
END = 9  # the rank's program ends


def log_digest(log: array[int]) -> bytes:
    """32 bytes that stand for one rank's log, the same on every machine."""
    found = array("q", log)
    if memoryview(found).itemsize != 8:
        raise AssertionError("8-byte integers")
    import sys

    if sys.byteorder == "big":
        found.byteswap()
    return sha256(found.tobytes()).digest()


def run_digest(ranks: Iterable[bytes]) -> str:
    """The digest of a run from those of its ranks, in their order."""
    return sha256(b"".join(ranks)).hexdigest()
