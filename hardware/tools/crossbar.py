"""How many 32 B sectors a cycle two crossbars in series move between the SMs and the L2 slices of GPGPU-Sim's QV100.

`python hardware/tools/crossbar.py` prints it for several kinds of traffic; `l2.bandwidth` of gpgpusim_qv100.toml rests
on it. The simulator's crossbar (network_mode 2, iSLIP) keeps each sender's packets in one queue, so that a packet whose
receiver is busy holds up those behind it (M. J. Karol, M. G. Hluchyj, S. P. Morgan, Input Versus Output Queueing on a
Space-Division Packet Switch, IEEE Transactions on Communications 35, 1987); answers come through a second one.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

SMS, SLICES = 80, 64
DELAY = 170  # cycles from a slice's input to its answer
WARPS_A_BLOCK = 8
IN_FLIGHT = (64, 100_000)  # sectors an SM may wait for


def slices(address: NDArray[np.int64]) -> NDArray[np.int64]:
    """The slice of each byte address: 256 B a channel, channels hashed with higher bits, two slices a channel."""
    channel = (address >> 8) & 31
    for shift in range(13, 43, 5):
        channel = channel ^ ((address >> shift) & 31)
    return channel * 2 + ((address >> 13) & 1)


def copy_with_stride(stride: int, warps: int) -> NDArray[np.int64]:
    """[SMS, n] sectors of out[i] = in[i * stride], 4 B elements, in the order in which an SM's warps ask for them."""
    lane = np.arange(32)
    per_sm = []
    for sm in range(SMS):
        asked = []
        for w in range(warps):
            first = ((w // WARPS_A_BLOCK * SMS + sm) * WARPS_A_BLOCK + w % WARPS_A_BLOCK) * 32
            asked += [np.unique((first + lane) * 4 * stride // 32) * 32, (1 << 28) + np.arange(4) * 32 + first * 4]
        per_sm.append(np.concatenate(asked))
    return np.array(per_sm)


@njit
def cycles_of(target: NDArray[np.int64], in_flight: int) -> int:
    """Cycles until every SM has its answers. target [SMS, n]: slices, in order."""
    sms, count = target.shape
    sent, received, free = np.zeros(sms, np.int64), np.zeros(sms, np.int64), np.zeros(sms, np.int64)
    turn_out, turn_in = np.zeros(SLICES, np.int64), np.zeros(sms, np.int64)
    asker, ready = np.zeros((SLICES, sms * count), np.int64), np.zeros((SLICES, sms * count), np.int64)
    head, tail = np.zeros(SLICES, np.int64), np.zeros(SLICES, np.int64)
    now = 0
    while received.min() < count:
        for o in range(SLICES):  # each slice takes one request, of the next SM in turn whose first request is for it
            for k in range(sms):
                i = (turn_out[o] + k) % sms
                waiting = sent[i] < count and free[i] <= now and sent[i] - received[i] < in_flight
                if waiting and target[i, sent[i]] == o:
                    asker[o, tail[o]], ready[o, tail[o]] = i, now + DELAY
                    tail[o] += 1
                    sent[i] += 1
                    free[i] = now + 1
                    turn_out[o] = i + 1
                    break
        for i in range(sms):  # each SM takes one answer, of the next slice in turn whose first answer is for it
            for k in range(SLICES):
                o = (turn_in[i] + k) % SLICES
                if head[o] < tail[o] and asker[o, head[o]] == i and ready[o, head[o]] <= now:
                    head[o] += 1
                    if head[o] < tail[o]:
                        ready[o, head[o]] = max(ready[o, head[o]], now + 1)
                    received[i] += 1
                    turn_in[i] = o + 1
                    break
        now += 1
    return now


def throughput(stride: int, warps: int, in_flight: int) -> float:
    """Sectors a cycle, without the latency of the first answer."""
    address = copy_with_stride(stride, warps)
    return address.size / (cycles_of(slices(address), in_flight) - DELAY)


def main() -> None:
    print("sectors a cycle, of 64 slices")
    found = []
    for stride in (1, 8, 32):
        for warps in (8, 24, 64):
            row = [throughput(stride, warps, window) for window in IN_FLIGHT]
            found += row
            print(
                f"stride {stride:2}, {warps:2} warps an SM: {row[0]:.1f} with 64 in flight, {row[1]:.1f} without limit"
            )
    print(f"mean {np.mean(found):.1f}")


if __name__ == "__main__":
    main()
