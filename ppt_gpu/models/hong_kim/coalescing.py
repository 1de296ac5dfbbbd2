"""Static detection of coalesced accesses: Algorithms 1 and 2 of Hong and Kim's appendix.

Both judge an access data[Index] by how Index, counted in elements, depends on the thread index tx: by its increment,
and by its values at the first thread of every half warp. Algorithm 1 is for compute capabilities below 1.3, Algorithm 2
for 1.3 and later. The paper does not say how the transactions of half warps count for a warp; here a warp makes those
of two half warps, and its access is coalesced when each of them makes one. Algorithm 2 as printed knows no end for
large strides; 16 threads make 16 transactions at most, which only `literal` goes beyond.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ppt_gpu.models.affine.affine import Affine
from ppt_gpu.workload.workload import Dim3

HALF_WARP = 16
#: what the index at the first thread of a half warp is to be divisible by
INDEX_UNIT = 16
#: transactions of a warp whose access is not coalesced, below compute capability 1.3 (Table 3)
UNCOALESCED = 32


@dataclass(frozen=True)
class Transactions:
    """What Algorithm 2 yields for a half warp."""

    count: int
    size: int  # B


@dataclass(frozen=True)
class Judgement:
    """A warp's access: coalesced into one transaction or not, and how many it makes otherwise."""

    coalesced: bool
    transactions: float


def algorithm_1(size: int, increment: Fraction, aligned: bool) -> bool:
    """Is an access of `size` bytes a thread coalesced?

    increment: d/d(tx) Index. aligned: Index at the first thread of every half warp is divisible by 16.
    """
    return size in (4, 8, 16) and increment == 1 and aligned


def algorithm_2(size: int, increment: Fraction, aligned: bool, *, literal: bool = False) -> Transactions:
    """Transactions of a half warp; arguments as in `algorithm_1`.

    Threads that all access one element (increment 0) make one transaction, of which the formula has none.
    """
    segment = {1: 32, 2: 64}.get(size, 128)
    count = (0 if aligned else 1) + -(-abs(increment) * HALF_WARP * size // segment)
    largest = max(HALF_WARP, HALF_WARP * size // segment)
    return Transactions(max(int(count if literal else min(count, largest)), 1), segment)


def judge(
    address: Affine, size: int, block: Dim3, capability: tuple[int, int], *, literal: bool = False
) -> Judgement | None:
    """The algorithm of the compute capability, applied to an access of `size` bytes a thread at `address`.

    None where the half warps of a block are not rows of threads along x, so that no one increment describes them.
    """
    view = half_warps(address, size, block)
    if view is None:
        return None
    increment, aligned = view
    if capability < (1, 3):
        coalesced = algorithm_1(size, increment, aligned)
        return Judgement(coalesced, 1 if coalesced else UNCOALESCED)
    count = algorithm_2(size, increment, aligned, literal=literal).count
    return Judgement(count == 1, 1 if count == 1 else 2 * count)


def half_warps(address: Affine, size: int, block: Dim3) -> tuple[Fraction, bool] | None:
    """(d/d(tx) Index, is Index at the first thread of every half warp divisible by 16) of an address in bytes."""
    steps = dict(address.terms)
    if block[0] % HALF_WARP and block[1] * block[2] > 1 and any(name.startswith("tid") for name in steps):
        # Half warps span rows; they are rows of a larger x all the same where the address runs on from row to row.
        row = block[0] * steps.get("tid.x", 0)
        plane = row * block[1]
        if any(name.startswith("tid.x ") for name in steps):
            return None
        if steps.pop("tid.y", row if block[1] == 1 else 0) != row:
            return None
        if steps.pop("tid.z", plane if block[2] == 1 else 0) != plane:
            return None
    along = {name: step for name, step in steps.items() if _follows_lanes(name)}
    others = [step for name, step in steps.items() if name not in along]
    whole = INDEX_UNIT * size
    # A half warp starts at a multiple of 16 of everything that follows its lanes.
    aligned = address.constant % whole == 0 and all(step % whole == 0 for step in others)
    aligned = aligned and all(step * HALF_WARP % whole == 0 for step in along.values())
    return Fraction(sum(along.values()), size), aligned


def _follows_lanes(symbol: str) -> bool:
    """Does a symbol rise by 1 from lane to lane of a half warp?"""
    return symbol in ("tid.x", "laneid") or symbol.startswith(("tid.x mod", "laneid mod"))
