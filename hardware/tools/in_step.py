"""What reads of one set by all SMs, in step, lose at the slices of the L2, and what coalescing in front of them gives.

`python hardware/tools/in_step.py` prints it for GPUs on which it was measured (GBENCH gpu-cache); `l2.in_step` of
a100.toml rests on it. The SMs of a part of the L2 run eight warps each, which load one line or two after another, as
many loads ahead of the sum as ptxas has them in flight, and wait for all at the end of a turn of the loop. A line
belongs to a slice by a hash; a slice serves one line after another. In step all SMs read the same lines, so that what
is on its way at a time is a few lines for a slice, and of some slices none; out of step each SM reads its own.
With coalescing up to so many reads of a line that wait at a slice are served by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

LINE = 128  # B
PORT = 64  # B that an SM takes in a cycle
WARPS = 8  # of an SM
TURN = 32  # loads of a warp from one wait for all to the next
SET = 16896  # lines of the set
CYCLES = 60_000  # the second half counts
WHEEL = 1 << 14  # cycles ahead that answers can be due
RING = 64  # loads of a warp that are told apart, more than are on their way
WAITING = 1 << 14  # lines that can wait at a slice
MOST = 8  # reads that one can stand for


@dataclass(frozen=True)
class Chip:
    """SMs that share a part of the L2, and its slices. All bytes in a cycle of the SMs."""

    name: str
    sms: int
    slices: int
    slice_bytes: float  # B that a slice gives in a cycle
    latency: int  # cycles
    ahead: int  # loads of a warp on their way
    lines: int  # of a load: 1 of floats, 2 of doubles
    add: int  # cycles of an addition
    parts: int  # of the L2
    clock: float  # GHz
    measured: float  # GB/s, with one set
    merged: int = 1  # reads that a slice serves as one


# slice_bytes: documented peaks, 32 B up to GA102, 64 B of A100 and AD102; of A100 and H100 what many parts get of them
CHIPS = (
    Chip("V100", 80, 64, 32.0, 193, 8, 2, 8, 1, 1.38, 2440),
    Chip("A40", 84, 48, 32.0, 230, 23, 1, 4, 1, 1.74, 2430),
    Chip("L40", 142, 48, 64.0, 280, 23, 1, 4, 1, 2.49, 5710),
    Chip("A100, peak", 54, 40, 64.0, 211, 7, 2, 8, 2, 1.41, 4590),
    Chip("A100", 54, 40, 48.0, 211, 7, 2, 8, 2, 1.41, 4590),
    Chip("H100 PCIe", 57, 40, 49.0, 266, 7, 2, 8, 2, 1.755, 8164),
    Chip("H100 PCIe, 4 as one", 57, 40, 49.0, 266, 7, 2, 8, 2, 1.755, 8164, 4),
)


@njit
def slice_of(line: int, slices: int) -> int:
    """A hash by multiplication (the finaliser of splitmix64)."""
    mixed = np.uint64(line)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((mixed ^ (mixed >> np.uint64(31))) % np.uint64(slices))


@njit
def answers_and_reads(
    sms: int, slices: int, service: float, latency: int, ahead: int, lines: int, add: int, merged: int, own: bool
) -> NDArray[np.int64]:
    """[2] lines that the SMs got, and that the slices read, in the second half of CYCLES. own: each SM its own set."""
    warps = sms * WARPS
    issued, summed, free, begun = np.zeros((4, warps), np.int64)  # loads, loads, cycle, lines of the next load
    missing = np.zeros((warps, RING), np.int64)  # lines that a load waits for
    line_of, count, there = np.zeros((3, slices, WAITING), np.int64)
    readers = np.zeros((slices, WAITING, MOST), np.int64)
    head, tail = np.zeros((2, slices), np.int64)
    busy, port = np.zeros(slices), np.zeros(sms)
    due, coming = np.zeros((WHEEL, sms * MOST), np.int64), np.zeros(WHEEL, np.int64)
    turn = np.zeros(sms, np.int64)
    found = np.zeros(2, np.int64)
    for now in range(CYCLES):
        second = now >= CYCLES // 2
        for k in range(coming[now % WHEEL]):
            who = due[now % WHEEL, k]
            missing[who // RING, who % RING] -= 1
            found[0] += second
        coming[now % WHEEL] = 0
        for w in range(warps):
            if summed[w] < issued[w] and missing[w, summed[w] % RING] == 0 and free[w] <= now:
                summed[w] += 1
                free[w] = now + add
        for sm in range(sms):  # each asks for one line in a cycle, of the warp that asked last if that can go on
            for k in range(WARPS):
                w = sm * WARPS + (turn[sm] + k) % WARPS
                wait = TURN if issued[w] % TURN == 0 else ahead
                on_way = issued[w] - summed[w]
                if begun[w] == 0 and (on_way >= ahead or (wait == TURN and on_way > 0)):
                    continue
                place = issued[w] % RING
                if begun[w] == 0:
                    missing[w, place] = lines
                line = ((issued[w] * WARPS + w % WARPS) * lines + begun[w]) % SET + (sm * SET if own else 0)
                at = slice_of(line, slices)
                begun[w] += 1
                if begun[w] == lines:
                    begun[w] = 0
                    issued[w] += 1
                turn[sm] = w % WARPS
                joined = False
                for j in range(tail[at] - 1, head[at] - 1, -1 if merged > 1 else -WAITING):
                    q = j % WAITING
                    if merged > 1 and line_of[at, q] == line and count[at, q] < merged:
                        readers[at, q, count[at, q]] = w * RING + place
                        count[at, q] += 1
                        joined = True
                        break
                if not joined:
                    q = tail[at] % WAITING
                    line_of[at, q], count[at, q], there[at, q] = line, 1, now + latency // 2
                    readers[at, q, 0] = w * RING + place
                    tail[at] += 1
                break
        for at in range(slices):
            q = head[at] % WAITING
            if busy[at] < now + 1 and head[at] < tail[at] and there[at, q] <= now:
                head[at] += 1
                busy[at] = max(busy[at], now) + service
                found[1] += second
                for k in range(count[at, q]):
                    sm = readers[at, q, k] // RING // WARPS
                    port[sm] = max(port[sm], busy[at]) + LINE / PORT
                    when = (np.int64(port[sm]) + latency // 2) % WHEEL
                    due[when, coming[when]] = readers[at, q, k]
                    coming[when] += 1
    return found


def rate(chip: Chip, own: bool) -> tuple[float, float]:
    """(GB/s of the whole GPU, reads that a slice served as one in the mean)."""
    got, read = answers_and_reads(
        chip.sms, chip.slices, LINE / chip.slice_bytes, chip.latency, chip.ahead, chip.lines, chip.add, chip.merged, own
    )
    return float(got) * LINE * chip.parts * chip.clock / (CYCLES - CYCLES // 2), float(got) / float(read)


def main() -> None:
    for chip in CHIPS:
        (together, merged), (apart, _) = rate(chip, False), rate(chip, True)
        print(
            f"{chip.name:20} in step {together:6.0f} GB/s, {merged:.2f} reads as one; out of step {apart:6.0f}: "
            f"{together / apart:.2f}; measured with one set {chip.measured:.0f}"
        )


if __name__ == "__main__":
    main()
