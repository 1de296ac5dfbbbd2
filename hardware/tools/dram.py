"""How much of its peak a DRAM channel of GPGPU-Sim's SM2_GTX480 moves: `python hardware/tools/dram.py` prints it.

`dram.efficiency` of gpgpusim_gtx480.toml rests on it. The simulator's channel, command cycle by command cycle: a queue
from which each idle bank takes the oldest request for its open row, else the oldest one (FR-FCFS; S. Rixner et al.,
Memory Access Scheduling, ISCA 2000), one bank a cycle; then one command a cycle, of a column or a row.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

# gpgpu_dram_timing_opt, in command cycles
BANKS, GROUPS = 16, 4
CCD, RRD, RCD, RAS, RP, RC, CL, WL, CDLR, WR, CCDL, RTPL = 2, 6, 12, 28, 12, 40, 12, 4, 5, 12, 3, 2
BURST = 2  # command cycles: gpgpu_dram_burst_length 8 / dram_data_command_freq_ratio 4
RTW, WTR, WTP = CL + BURST + 2 - WL, WL + BURST + CDLR, WL + BURST + WR
RCDWR = RCD - (WL + 1)
QUEUE = 64  # gpgpu_frfcfs_dram_sched_queue_size
CHANNELS = 6
SECTOR = 32


def places(address: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Channel, bank and row of each address: gpgpu_mem_addr_mapping, 256 B a channel in turn, BBBCCCCB.CCSSSSSS."""
    chunk = address // 256
    own = chunk // CHANNELS * 256 + address % 256
    return chunk % CHANNELS, (own >> 13 & 7) << 1 | (own >> 8 & 1), own >> 16


@njit
def cycles_of(bank: Numbers, row: Numbers, write: Numbers, bursts: Numbers) -> int:
    """Command cycles until a channel has served all requests, which always wait for a place in its queue."""
    count = len(bank)
    queue, queued, come, done = np.empty(QUEUE, np.int64), 0, 0, 0
    serving, left = np.full(BANKS, -1, np.int64), np.zeros(BANKS, np.int64)
    open_row, active = np.full(BANKS, -1, np.int64), np.zeros(BANKS, np.bool_)
    rcd, rcdwr, ras, rc, rp, wtp, rtp = [np.zeros(BANKS, np.int64) for _ in range(7)]
    ccdl, rtpl = np.zeros(GROUPS, np.int64), np.zeros(GROUPS, np.int64)
    ccd = rrd = rtw = wtr = first = now = 0
    while done < count:
        if queued < QUEUE and come < count:
            queue[queued] = come
            queued, come = queued + 1, come + 1
        for k in range(BANKS):
            b = (first + k) % BANKS
            if serving[b] >= 0:
                continue
            best = -1
            for place in range(queued):
                if bank[queue[place]] == b:
                    if active[b] and row[queue[place]] == open_row[b]:
                        best = place
                        break
                    best = place if best < 0 else best
            if best >= 0:
                serving[b], left[b] = queue[best], bursts[queue[best]]
                queue[best : queued - 1] = queue[best + 1 : queued].copy()
                queued -= 1
                first = (first + 1) % BANKS
                break
        column = rows = False
        for k in range(BANKS):
            b = (first + k) % BANKS
            group, one = b % GROUPS, serving[b]
            if one < 0 or column or rows:
                continue
            if active[b] and open_row[b] == row[one]:
                if now >= ccd and now >= ccdl[group]:
                    if write[one] == 0 and now >= rcd[b] and now >= wtr:
                        column = True
                        rtw, rtp[b], rtpl[group] = now + RTW, now + BURST, now + RTPL
                    elif write[one] != 0 and now >= rcdwr[b] and now >= rtw:
                        column = True
                        wtr, wtp[b] = now + WTR, now + WTP
                    if column:
                        ccd, ccdl[group] = now + CCD, now + CCDL
                        left[b] -= 1
                        if left[b] == 0:
                            serving[b] = -1
                            done += 1
            elif not active[b] and now >= rrd and now >= rp[b] and now >= rc[b]:
                rows, active[b], open_row[b] = True, True, row[one]
                rrd, rcd[b], rcdwr[b], ras[b], rc[b] = now + RRD, now + RCD, now + RCDWR, now + RAS, now + RC
                first = (b + 1) % BANKS
            elif active[b] and now >= max(ras[b], wtp[b], rtp[b], rtpl[group]):
                rows, active[b], rp[b] = True, False, now + RP
                first = (b + 1) % BANKS
        now += 1
    return now


def share_of_peak(address: Numbers, write: Numbers, bursts: Numbers) -> float:
    """Of the requests of all SMs as they come, in the mean over the channels."""
    channel, bank, row = places(address)
    found = []
    for number in range(CHANNELS):
        mine = channel == number
        cycles = cycles_of(bank[mine], row[mine], write[mine], bursts[mine])
        found.append(bursts[mine].sum() * BURST / cycles)
    return float(np.mean(found))


def streams(sms: int, count: int, apart: int, written: float, seed: int) -> tuple[Numbers, Numbers, Numbers]:
    """`count` lines that SMs read, each in blocks of 8 lines one after another, `apart` lines out of step; and lines
    that are written back for a share of them, from another array, as two bursts."""
    rng = np.random.default_rng(seed)
    blocks = np.arange(count // 8).reshape(-1, sms)
    line = (blocks[:, None, :] * 8 + np.arange(8)[None, :, None]).reshape(-1, sms)
    time = np.arange(len(line))[:, None] + rng.integers(0, apart + 1, sms)
    line = line.ravel()[np.argsort(time.ravel(), kind="stable")]
    address = (line[:, None] * 128 + np.arange(4) * SECTOR).ravel()
    back = np.flatnonzero(rng.random(len(line)) < written)
    at = back * 4 + 4
    write, bursts = np.zeros(len(address), np.int64), np.ones(len(address), np.int64)
    address = np.insert(address, at, (1 << 26) + line[back] * 128)
    return address, np.insert(write, at, 1), np.insert(bursts, at, 2)


def main() -> None:
    for written in (0.0, 0.05, 0.25, 0.5, 1.0):
        found = [share_of_peak(*streams(15, 15 * 8 * 40, apart, written, 1)) for apart in (0, 3, 30)]
        text = ", ".join(f"{share:.2f}" for share in found)
        print(f"{written:.2f} lines written back for each that is read: {text} of the peak")


if __name__ == "__main__":
    main()
