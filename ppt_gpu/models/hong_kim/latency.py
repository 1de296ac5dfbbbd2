"""Long-latency computation in Hong and Kim's model: Table 7 and Eq 31.

M_Factor is 1 for an instruction that all SPs of an SM execute at full rate, and as much more as its rate is lower.
"""

from __future__ import annotations

from collections.abc import Mapping

from ppt_gpu.ptx.instructions import is_memory, operation
from ppt_gpu.ptx.module import Instruction
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.tasklist.expand import machine_operations

#: Table 7, right column: measured on GPUs of compute capability 1.x
TABLE_7 = {"FPadd": 1.0, "FPmul": 1.0, "FPmad": 1.0, "Intadd": 1.0, "FPdiv": 4.2, "Intmul": 4.3, "Intdiv": 30.0,
           "Modulo": 35.0}  # fmt: skip
#: Table 7, middle column: from the CUDA manual
TABLE_7_MANUAL = {"FPadd": 1.0, "FPmul": 1.0, "FPmad": 1.0, "Intadd": 1.0, "FPdiv": 4.0, "Intmul": 4.0}


def table_7_row(instruction: Instruction) -> str:
    """The row of Table 7 that an instruction belongs to; whatever it does not list is as fast as an addition."""
    name = operation(instruction)
    if name.startswith(("fp32.div", "fp64.div")):
        return "FPdiv"
    if name.startswith("int32.div"):
        return "Modulo" if instruction.base == "rem" else "Intdiv"
    # A product of 24-bit integers is one of the fast ones (CUDA manual).
    if name.startswith(("int32.mul", "int32.mad")) and instruction.base not in ("mul24", "mad24"):
        return "Intmul"
    return "Intadd"


def m_factor(instruction: Instruction, gpu: Gpu, issue_cycles: float) -> float:
    """M_Factor of a computation instruction: Table 7 for compute capability 1.x, of which it was measured.

    For later GPUs by the same definition, from the intervals of their machine operations: cycles that the SM's units
    need for one warp instruction, over `issue_cycles`.
    """
    if gpu.compute_capability < (2, 0):
        return TABLE_7[table_7_row(instruction)]
    if is_memory(instruction):
        return 1.0
    return sum(max(op_interval(name, gpu) / issue_cycles, 1.0) for name in machine_operations(instruction, gpu.isa))


def op_interval(name: str, gpu: Gpu) -> float:
    """Cycles between two warp instructions of a machine operation on one SM, all its units together."""
    op = gpu.isa.op(name)
    pipe = gpu.pipes[op.pipe]
    return op.ii / (pipe.units * (gpu.sm.schedulers if pipe.scope == "scheduler" else 1))


def comp_cycles(issue_cycles: float, counts: Mapping[str, float], factors: Mapping[str, float]) -> float:
    """Eq 31: issue cycles x the sum over instruction types of their number x their M_Factor, cycles."""
    return issue_cycles * sum(count * factors[kind] for kind, count in counts.items())
