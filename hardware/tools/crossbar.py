"""How many 32 B sectors a cycle two crossbars in series move between the SMs and the L2 slices of GPGPU-Sim.

`python hardware/tools/crossbar.py` prints it for several kinds of traffic; `l2.bandwidth` of gpgpusim_gtx480.toml rests
on it (ppt_gpu/sm/chip/crossbar.py simulates both).
The simulator's crossbars (QV100: network_mode 2; GTX480: network_mode 1, one router
with a single virtual channel; iSLIP in both) keep each sender's packets in one queue, so that a packet whose
receiver is busy holds up those behind it (M. J. Karol, M. G. Hluchyj, S. P. Morgan, Input Versus Output Queueing on a
Space-Division Packet Switch, IEEE Transactions on Communications 35, 1987); answers come through a second one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

Addresses = NDArray[np.int64]

DELAY = 170  # cycles from a slice's input to its answer
WARPS_A_BLOCK = 8
IN_FLIGHT = (64, 100_000)  # sectors an SM may wait for


def hashed_slices(address: Addresses) -> Addresses:
    """QV100: 256 B a channel, channels hashed with higher bits, two slices a channel."""
    channel = (address >> 8) & 31
    for shift in range(13, 43, 5):
        channel = channel ^ ((address >> shift) & 31)
    return channel * 2 + ((address >> 13) & 1)


def plain_slices(address: Addresses) -> Addresses:
    """GTX480: 256 B a channel, six channels of two slices in turn."""
    return (address >> 8) % 12


@dataclass(frozen=True)
class Chip:
    """`read`: bytes that a load asks for in one request; a slice answers with a packet a sector."""

    name: str
    sms: int
    slices: int
    slice_of: Callable[[Addresses], Addresses]
    read: int


CHIPS = (Chip("QV100", 80, 64, hashed_slices, 32), Chip("GTX480", 15, 12, plain_slices, 128))


def copy_with_stride(chip: Chip, stride: int, warps: int) -> tuple[Addresses, Addresses]:
    """[SMs, n] requests of out[i] = in[i * stride], 4 B elements, as an SM's warps ask, and [SMs, n] their answers."""
    lane = np.arange(32)
    asked, answers = [], []
    for sm in range(chip.sms):
        own = []
        for w in range(warps):
            first = ((w // WARPS_A_BLOCK * chip.sms + sm) * WARPS_A_BLOCK + w % WARPS_A_BLOCK) * 32
            reads = np.unique((first + lane) * 4 * stride // chip.read) * chip.read
            writes = (1 << 28) + np.arange(0, 128, chip.read) + first * 4
            own.append(np.concatenate([reads, writes]))
        asked.append(np.concatenate(own))
        answers.append(np.full(len(asked[-1]), chip.read // 32))
    return np.array(asked), np.array(answers)


def transposed_stores(chip: Chip, n: int, blocks: int) -> tuple[Addresses, Addresses]:
    """As copy_with_stride, of the stores of a naive transposition of n x n elements by `blocks` blocks an SM."""
    lane, row = np.arange(32), n // 32
    asked = []
    for sm in range(chip.sms):
        ids = (sm + chip.sms * np.arange(blocks)) % row**2
        x, y = ids % row * 32, ids // row * 32
        of_warp = y[None, :, None] + np.arange(32).reshape(4, 1, WARPS_A_BLOCK)  # [instruction, block, warp]
        element = (x[None, :, None, None] + lane) * n + of_warp[..., None]
        asked.append((element * 4 // 32 * 32).ravel())
    found = np.array(asked)
    return found, np.ones_like(found)


@njit
def cycles_of(target: Addresses, answers: Addresses, slices: int, in_flight: int) -> int:
    """Cycles until every SM has its answers. target [SMs, n]: slices, in order; answers [SMs, n]: sectors of each."""
    sms, count = target.shape
    total = answers.sum(axis=1)
    sent, asked, received = np.zeros(sms, np.int64), np.zeros(sms, np.int64), np.zeros(sms, np.int64)
    turn_out, turn_in = np.zeros(slices, np.int64), np.zeros(sms, np.int64)
    asker, ready = np.zeros((slices, total.sum()), np.int64), np.zeros((slices, total.sum()), np.int64)
    head, tail, free = np.zeros(slices, np.int64), np.zeros(slices, np.int64), np.zeros(slices, np.int64)
    moved = np.full(sms, -1, np.int64)
    now = 0
    while (received < total).any():
        for o in range(slices):  # each slice takes a request, of the next SM in turn whose first request is for it
            if free[o] > now:
                continue
            for k in range(sms):
                i = (turn_out[o] + k) % sms
                waiting = sent[i] < count and moved[i] < now and asked[i] - received[i] < in_flight
                if waiting and target[i, sent[i]] == o:
                    for sector in range(answers[i, sent[i]]):
                        asker[o, tail[o]], ready[o, tail[o]] = i, now + DELAY + sector
                        tail[o] += 1
                    free[o] = now + answers[i, sent[i]]
                    asked[i] += answers[i, sent[i]]
                    sent[i] += 1
                    moved[i] = now
                    turn_out[o] = i + 1
                    break
        for i in range(sms):  # each SM takes one answer, of the next slice in turn whose first answer is for it
            for k in range(slices):
                o = (turn_in[i] + k) % slices
                if head[o] < tail[o] and asker[o, head[o]] == i and ready[o, head[o]] <= now:
                    head[o] += 1
                    if head[o] < tail[o]:
                        ready[o, head[o]] = max(ready[o, head[o]], now + 1)
                    received[i] += 1
                    turn_in[i] = o + 1
                    break
        now += 1
    return now


def throughput(chip: Chip, traffic: tuple[Addresses, Addresses], in_flight: int) -> float:
    """Sectors a cycle, without the latency of the first answer."""
    address, answers = traffic
    return answers.sum() / (cycles_of(chip.slice_of(address), answers, chip.slices, in_flight) - DELAY)


def main() -> None:
    for chip in CHIPS:
        print(f"{chip.name}: sectors a cycle, of {chip.slices} slices")
        found = []
        for stride in (1, 8, 32):
            for warps in (8, 24, 64):
                traffic = copy_with_stride(chip, stride, warps)
                row = [throughput(chip, traffic, window) for window in IN_FLIGHT]
                found += row
                print(
                    f"  stride {stride:2}, {warps:2} warps an SM: {row[0]:.1f} with {IN_FLIGHT[0]} in flight, "
                    f"{row[1]:.1f} without limit"
                )
        print(f"  mean {np.mean(found):.1f}")
        for n in (256, 512):
            row = [throughput(chip, transposed_stores(chip, n, 4), window) for window in IN_FLIGHT]
            print(f"  stores of a transposition of {n} x {n}: {row[0]:.1f}, {row[1]:.1f}")


if __name__ == "__main__":
    main()
