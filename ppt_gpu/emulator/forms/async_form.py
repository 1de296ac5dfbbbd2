"""What the asynchronous instructions do, read from the opcode and the operands: cp.async and mbarrier.

Copies are executed where they are issued, so their data is there early; commits and waits of groups have nothing left
to do. An mbarrier completes its phases by the counts that the instructions give it, as on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.ptx.module import Imm, Instruction, Kernel, Operand, Reg

COPY_SIZES = (4, 8, 16)


@dataclass(frozen=True)
class LaneCopy:
    """cp.async of `size` bytes a lane. `given`: bytes really read, the rest are zeros; `ignore`: read none."""

    size: int
    given: Operand | None
    ignore: Operand | None


def lane_copy(kernel: Kernel, i: Instruction) -> LaneCopy:
    """The form of a cp.async that is no bulk copy. ValueError for a size that there is not."""
    _, _, size, *rest = i.operands
    if not isinstance(size, Imm) or size.value not in COPY_SIZES:
        raise ValueError("cp.async copies 4, 8 or 16 bytes")
    if any(word.startswith("L2::cache_hint") for word in i.modifiers):
        rest = rest[:-1]
    given = ignore = None
    if rest:
        predicate = isinstance(rest[0], Reg) and kernel.registers[rest[0].id].type == "pred"
        given, ignore = (None, rest[0]) if predicate else (rest[0], None)
    return LaneCopy(int(size.value), given, ignore)


@dataclass(frozen=True)
class Arrival:
    """An instruction that changes an mbarrier: by which operands, and whether it yields the state before."""

    place: Operand
    destination: Operand | None
    arrivals: Operand
    drops: bool
    bytes: Operand | None
    completes: bool  # complete_tx: the bytes have come


def arrival(i: Instruction) -> Arrival:
    """mbarrier.arrive, arrive_drop, expect_tx, complete_tx, and cp.async.mbarrier.arrive. ValueError for others."""
    one, none = Imm(1), Imm(0)
    if i.base == "cp":  # without .noinc the arrival was added to the pending ones just before
        return Arrival(i.operands[0], None, one if "noinc" in i.modifiers else none, False, None, False)
    form = i.modifiers[0]
    if form in ("expect_tx", "complete_tx"):
        return Arrival(i.operands[0], None, none, False, i.operands[1], form == "complete_tx")
    if form not in ("arrive", "arrive_drop"):
        raise ValueError(f"mbarrier.{form}")
    from ppt_gpu.ptx.module import Mem

    operands = list(i.operands)
    destination = None if isinstance(operands[0], Mem) else operands.pop(0)
    more = operands[1] if len(operands) > 1 else None
    carries = "expect_tx" in i.modifiers
    count = more if more is not None and not carries else one
    return Arrival(operands[0], destination, count, form == "arrive_drop", more if carries else None, False)
