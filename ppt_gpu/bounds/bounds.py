"""Lower bounds on the cycles of a launch, one for each resource: work divided by what the resource does in a cycle.

Each bound follows from one rule of the SM (ppt_gpu/sm/README.md) and ignores all others, so no simulation can be
faster. The bounds of a whole launch are those of its busiest SM and of the chip's shared memory system, with the work
of the blocks that were not simulated extrapolated from those that were. (Roofline and latency-bound reasoning:
Williams et al. 2009; Volkov 2016, chapter 4.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ppt_gpu.bounds.work import Work
from ppt_gpu.sm.program.ops import pipe_order
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.spec.gpu import Gpu, Pipe


@dataclass(frozen=True)
class ResourceBound:
    """No launch takes fewer cycles, because of one resource."""

    resource: str  # "DRAM bandwidth"
    cycles: float  # SM cycles
    equation: str  # "bytes / bandwidth"
    terms: str  # the equation with its numbers: "1.2e+06 B / 19.2 B/cycle"


@dataclass(frozen=True)
class Scale:
    """From the simulated blocks of one SM to the launch."""

    simulated: int  # blocks
    resident: int  # blocks that the SM holds at once
    sm_blocks: float  # blocks of the busiest SM, each like a simulated one
    grid_blocks: float

    @property
    def sm(self) -> float:
        return self.sm_blocks / self.simulated


def bounds(
    work: Work,
    result: SmResult,
    gpu: Gpu,
    *,
    resident: int,
    active_sms: int,
    sm_blocks: float | None = None,
    grid_blocks: float | None = None,
    traffic: float = 1.0,
) -> list[ResourceBound]:
    """Every bound, largest first; resources without work are left out.

    `work` and `result`: of the simulated blocks of one SM with `resident` slots on a chip with `active_sms` busy SMs.
    `sm_blocks`, `grid_blocks`: blocks of the busiest SM and of the launch; None: just the simulated ones, and no bound
    of block launches. `traffic`: bytes of a block of the launch over those of a simulated one.
    """
    simulated = work.blocks
    own = simulated if sm_blocks is None else sm_blocks
    scale = Scale(simulated, resident, own, simulated * active_sms if grid_blocks is None else grid_blocks)
    found = [
        *_pipes(work, result, gpu, scale),
        _issue(result, gpu, scale),
        *_load_store(work, result, gpu, scale),
        *_memory(work, result, gpu, scale, active_sms, traffic),
        _critical_path(work, gpu, scale),
        *([] if grid_blocks is None else [_block_launches(work, gpu, grid_blocks)]),
    ]
    return sorted((bound for bound in found if bound.cycles > 0), key=lambda bound: (-bound.cycles, bound.resource))


def largest_bound(found: list[ResourceBound]) -> ResourceBound:
    """The binding one; a bound of 0 cycles when there is none."""
    return max(found, key=lambda bound: bound.cycles, default=ResourceBound("nothing", 0.0, "", ""))


def _pipes(work: Work, result: SmResult, gpu: Gpu, scale: Scale) -> list[ResourceBound]:
    busy = result.op_issued * work.op_ii
    # The last operation of a unit may outlive its own result.
    overhang = np.maximum(work.op_ii - work.op_latency, 0)
    found = []
    for index, name in enumerate(pipe_order(gpu)):
        used = (work.op_pipe == index) & (result.op_issued > 0)
        if not used.any():
            continue
        total = float(busy[used].sum()) * scale.sm
        units = pipe_units(gpu.pipes[name], gpu.sm.schedulers)
        found.append(
            ResourceBound(
                f"{name} pipe",
                max(total / units - float(overhang[used].max()), 0.0),
                "unit cycles (warp instructions x initiation interval) / units",
                f"{_shown(total)} cycles / {units} unit{'s' if units > 1 else ''}",
            )
        )
    return found


def _shown(count: float) -> str:
    """1234567.8 -> 1,234,568; up to a thousand with six digits."""
    return f"{count:,.0f}" if count >= 1000 else f"{count:.6g}"


def pipe_units(pipe: Pipe, schedulers: int) -> int:
    """Places of a pipe in the whole SM."""
    return pipe.units * (schedulers if pipe.scope == "scheduler" else 1)


def _issue(result: SmResult, gpu: Gpu, scale: Scale) -> ResourceBound:
    slots = gpu.sm.schedulers * gpu.sm.issue_width
    issued = result.issued * scale.sm
    return ResourceBound(
        "issue slots",
        issued / slots,
        "warp instructions / (schedulers x issue width)",
        f"{_shown(issued)} / ({gpu.sm.schedulers} x {gpu.sm.issue_width} per cycle)",
    )


def _load_store(work: Work, result: SmResult, gpu: Gpu, scale: Scale) -> list[ResourceBound]:
    per_cycle = gpu.memory.transactions_per_cycle
    cycles = work.load_store_cycles * scale.sm
    count = float(work.transactions) * scale.sm
    passes = result.shared_passes * scale.sm
    found = [
        ResourceBound(
            "load/store unit", cycles, "cycles of all memory instructions in the unit", f"{_shown(cycles)} cycles"
        ),
        ResourceBound(
            "L1 look-ups",
            count / per_cycle,
            "transactions / (transactions per cycle)",
            f"{_shown(count)} transactions / {per_cycle:g} per cycle",
        ),
        ResourceBound("shared memory", passes, "bank passes / (1 per cycle)", f"{_shown(passes)} passes / 1 per cycle"),
    ]
    updates = work.atomic_updates * scale.sm
    if updates:
        rate = gpu.memory.atomics_per_cycle
        found.append(
            ResourceBound(
                "atomic unit",
                updates / rate,
                "updates of the same address, by all SMs / (updates per cycle)",
                f"{_shown(updates)} updates / {rate:g} per cycle",
            )
        )
    return found


def _memory(
    work: Work, result: SmResult, gpu: Gpu, scale: Scale, active_sms: int, traffic: float
) -> list[ResourceBound]:
    scale = replace(scale, sm_blocks=scale.sm_blocks * traffic, grid_blocks=scale.grid_blocks * traffic)
    cold = work.cold_bytes if scale.sm_blocks > scale.simulated else 0.0
    l2_read = _extrapolated(result.l2_read_bytes, cold, scale)
    dram_read = _extrapolated(result.dram_read_bytes, cold, scale)
    l2_write, dram_write = result.l2_write_bytes * scale.sm, result.dram_write_bytes * scale.sm
    # Blocks of the chip over those of the busiest SM: at most the active SMs.
    sms = min(scale.grid_blocks / scale.sm_blocks, active_sms)
    link = gpu.interconnect.bandwidth
    return [
        _bandwidth("interconnect, SM inward", l2_read, link),
        _bandwidth("interconnect, SM outward", l2_write, link),
        _l2(l2_read * sms, l2_write * sms, work, gpu.l2.bandwidth),
        _bandwidth("DRAM bandwidth", (dram_read + dram_write) * sms, gpu.dram_bytes_per_cycle),
    ]


def _bandwidth(resource: str, count: float, rate: float) -> ResourceBound:
    return ResourceBound(resource, count / rate, "bytes / bandwidth", f"{_shown(count)} B / {rate:.6g} B/cycle")


def _l2(read: float, written: float, work: Work, rate: float) -> ResourceBound:
    """SMs in step read at another rate; an L2 of two parts writes twice, and what is written in part takes longer."""
    reads, writes = work.l2_reads, work.l2_write_passes if written else 1.0
    if reads == writes == 1.0:
        return _bandwidth("L2 bandwidth", read + written, rate)
    both = ((reads, read), (writes, written))
    parts = [f"{times:.4g} x {_shown(count)}" if times != 1.0 else _shown(count) for times, count in both]
    return ResourceBound(
        "L2 bandwidth",
        (reads * read + writes * written) / rate,
        "(bytes read x how much longer SMs in step take + bytes written x that of a written sector) / bandwidth",
        f"({' + '.join(parts)} B) / {rate:.6g} B/cycle",
    )


def _extrapolated(count: int, cold: float, scale: Scale) -> float:
    """Bytes of all blocks of the SM: what `cold` of the simulated ones fetched once is not fetched again."""
    steady = max(count - cold, 0.0) / scale.simulated
    return count + (scale.sm_blocks - scale.simulated) * steady


def _block_launches(work: Work, gpu: Gpu, grid_blocks: float) -> ResourceBound:
    """Of the whole launch: an SM alone knows when its first blocks start, but not what the chip is busy with later.

    The last block to start has its whole chain to run yet.
    """
    rate = gpu.host.blocks_per_cycle
    return ResourceBound(
        "block launches",
        (grid_blocks - 1) / rate + work.mean_chain if rate else 0.0,
        "(blocks - 1) / (blocks that the chip starts in a cycle) + longest chain of a block's warps, mean over blocks",
        f"({_shown(grid_blocks)} - 1) / {rate:g} per cycle + {_shown(work.mean_chain)} cycles",
    )


def _critical_path(work: Work, gpu: Gpu, scale: Scale) -> ResourceBound:
    mean, longest = work.mean_chain, work.longest_chain
    # R slots run N blocks one after another, each but the first of a slot after a launch.
    launch = gpu.host.block_launch
    turns = scale.sm_blocks / scale.resident
    serial = turns * (mean + launch) - launch
    if longest >= serial:
        return ResourceBound("critical path", longest, "longest chain of one warp", f"{_shown(longest)} cycles")
    return ResourceBound(
        "critical path",
        serial,
        "blocks / resident blocks x (longest chain of a block's warps, mean over blocks, + block launch) - launch",
        f"{_shown(scale.sm_blocks)} / {scale.resident} x ({_shown(mean)} + {launch} cycles) - {launch}",
    )
