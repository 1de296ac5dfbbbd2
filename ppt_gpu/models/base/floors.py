"""What no estimate may go below, whatever its equations say: the issue slots of an SM and the DRAM's bandwidth.

Models that take the larger or the smaller of two costs can fall below what the instructions need to issue (Hong and
Kim's Eq 23 with CWP just above MWP) or the bytes to move (Eq 7, which counts 128 B for 32 transactions).
"""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.bounds.work import cold_excess
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.steps import Steps


@dataclass(frozen=True)
class Raised:
    """An estimate that is at least its floors."""

    cycles: float
    by: float  # cycles that were added; 0: it was above
    notes: tuple[str, ...]


def issue_floor(inputs: ModelInputs) -> float:
    """Cycles in which the busiest SM issues its instructions."""
    return inputs.sm_instructions / inputs.issue_rate


def dram_floor(inputs: ModelInputs) -> float:
    """Cycles in which the DRAM moves what the launch reads and writes; lines that many blocks share count once."""
    program, outcomes = inputs.program, inputs.caches
    blocks = len(inputs.blocks)
    read = float(outcomes.dram_read.sum()) * program.sector_bytes
    written = outcomes.dram_write_sectors * program.sector_bytes
    again = max(read - cold_excess(program, blocks), 0.0) / blocks * max(inputs.sm_blocks - blocks, 0.0)
    sms = min(inputs.grid_blocks / inputs.sm_blocks, inputs.active_sms) if inputs.sm_blocks else 0.0
    total = (read + again + written * inputs.sm_blocks / blocks) * sms
    return total / inputs.gpu.dram_bytes_per_cycle


def raised(inputs: ModelInputs, cycles: float, steps: Steps) -> Raised:
    """`cycles` of a model, raised to the floors; the step is recorded where that changes them."""
    issue, dram = issue_floor(inputs), dram_floor(inputs)
    least = max(issue, dram)
    if cycles >= least:
        return Raised(cycles, 0.0, ())
    steps.given("model", cycles, "as the equations have it", unit="cycles")
    steps.given("issue_floor", issue, "instructions of the busiest SM / its issue rate", unit="cycles")
    steps.given("DRAM_floor", dram, "bytes of the launch / DRAM bandwidth", unit="cycles")
    steps("cycles", "max({model}, {issue_floor}, {DRAM_floor})", least, unit="cycles")
    name = "issue slots" if issue >= dram else "DRAM bandwidth"
    return Raised(least, least - cycles, (f"raised from {cycles:.6g} cycles to the floor of {name}",))
