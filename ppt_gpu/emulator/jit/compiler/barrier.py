"""Barriers at the ends of segments: the warp leaves compiled code, or only some of its lanes wait for the others.

Lanes of a warp that come to a barrier apart from the others are noted as arrived and give way. When the last ones come,
the warp has arrived.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ppt_gpu.emulator.analysis.flow import is_cluster_wait, is_group_meeting, is_warp_barrier
from ppt_gpu.emulator.forms.computes import Unsupported
from ppt_gpu.emulator.forms.wgmma_form import GROUP
from ppt_gpu.emulator.jit.sync import record_words
from ppt_gpu.emulator.llvm.text import vec
from ppt_gpu.emulator.memory.warp_context import (
    BARRIER_OF_CLUSTER,
    BARRIER_OF_GROUP,
    BARRIER_OF_WARP,
    Exit,
    Fault,
    Flag,
    Slot,
)
from ppt_gpu.ptx.instructions import barrier_operands, is_traced
from ppt_gpu.ptx.module import Imm, Instruction, Operand

if TYPE_CHECKING:
    from ppt_gpu.emulator.jit.compiler.control import Control


V = vec("i32")
BARRIERS = 16  # of a block


class Barriers:
    """Writes the barriers of one kernel."""

    def __init__(self, control: Control) -> None:
        self.control = control
        self.e = control.e
        self.flow = control.flow

    def barrier(self, segment: int, instruction: Instruction) -> None:
        """The end of a segment. With a guard, lanes whose guard does not hold wait with those that arrive."""
        e = self.e
        if is_traced(instruction):
            number, warps = self._operands(instruction)
            record_words(e, instruction, e.splat("i32", number), e.splat("i32", warps))
        if e.guard_flags:
            wait, skip = e.fresh("wait"), e.fresh("skip")
            e.branch(e.i32("icmp eq", e.exec, 0), skip, wait)
            e.label(skip)
            self.control.edge(segment + 1)
            e.label(wait)
        if is_warp_barrier(instruction):
            self._of_warp(segment, instruction)
        elif is_cluster_wait(instruction):
            self._of_cluster(segment)
        elif is_group_meeting(instruction):
            self._of_group(segment)
        else:
            self._of_block(segment, instruction)

    def _of_warp(self, segment: int, instruction: Instruction) -> None:
        """bar.warp.sync: go on when every live lane of the mask has come."""
        e = self.e
        if not isinstance(instruction.operands[0], Imm):
            self._of_groups(segment, instruction.operands[0])
            return
        members = e.i32("and", e.field("%w", Slot.LIVE, "i32"), self._scalar(instruction.operands[0]))
        absent = e.i32("and", members, e.i32("xor", e.active, -1))
        alone, together, last, wait = (e.fresh(stem) for stem in ("alone", "together", "last", "wait"))
        e.branch(e.i32("icmp eq", absent, 0), together, alone)
        e.label(alone)
        arrived = e.i32("or", e.field("%w", Slot.ARRIVED, "i32"), e.active)
        missing = e.i32("and", members, e.i32("xor", arrived, -1))
        e.branch(e.i32("icmp eq", missing, 0), last, wait)
        e.label(wait)
        self._wait_for_warp(segment, arrived)
        e.label(last)
        e.set_field("%w", Slot.ARRIVED, e.widen(e.i32("and", arrived, e.i32("xor", members, -1))))
        e.jump(together)
        e.label(together)
        self.control.edge(segment + 1)

    def _of_groups(self, segment: int, mask: Operand) -> None:
        """Each lane names its own mask. Lanes that came together go on together, when all their masks are there."""
        e = self.e
        arrived, live = e.field("%w", Slot.ARRIVED, "i32"), e.field("%w", Slot.LIVE, "i32")
        own = e.read(mask, "b32")
        absent = e.i32("and", live, e.i32("xor", e.i32("or", arrived, e.active), -1))
        missing = e.binary("and", "i32", own, e.splat("i32", absent))
        lack = e.i32("and", e.exec, e.mask_bits(e.op(f"icmp ne {V} {missing}, zeroinitializer")))
        complete = e.i32("and", e.exec, e.i32("xor", lack, -1))
        released = e.select(e.mask_flags(complete), "i32", own, "zeroinitializer")
        opened = e.call("i32", "llvm.vector.reduce.or.v32i32", (V, released))
        held = e.i32("and", e.active, e.i32("xor", complete, -1))
        still = e.i32("and", e.i32("or", arrived, held), e.i32("xor", opened, -1))
        whole, wait = e.fresh("whole"), e.fresh("wait")
        e.branch(e.i32("icmp eq", lack, 0), whole, wait)
        e.label(wait)
        self._wait_for_warp(segment, still)
        e.label(whole)
        e.set_field("%w", Slot.ARRIVED, e.widen(e.i32("and", arrived, e.i32("xor", opened, -1))))
        self.control.edge(segment + 1)

    def _wait_for_warp(self, segment: int, arrived: str) -> None:
        """Leave the warp until other lanes come; `arrived` (an i32) are there."""
        self.e.set_field("%w", Slot.ARRIVED, self.e.widen(arrived))
        self.e.set_field("%w", Slot.BARRIER_KIND, str(BARRIER_OF_WARP))
        self._leave(segment, Exit.SYNC)

    def _of_block(self, segment: int, instruction: Instruction) -> None:
        e = self.e
        if "red" in instruction.modifiers:
            self._contribute(instruction.operands[-1])
        number, warps = self._operands(instruction)
        named = barrier_operands(instruction)[0]
        if named is not None and not (isinstance(named, Imm) and 0 <= named.value < BARRIERS):
            e.fault(Fault.BARRIER, e.op(f"select i1 {e.i32('icmp ugt', number, BARRIERS - 1)}, i32 {e.exec}, i32 0"))
            self.control.check_fault()
        e.set_field("%w", Slot.BARRIER, e.widen(number))
        e.set_field("%w", Slot.BARRIER_WARPS, e.widen(warps))
        e.set_field("%w", Slot.BARRIER_KIND, "1" if "arrive" in instruction.modifiers else "0")
        self._meet(segment)

    def _operands(self, instruction: Instruction) -> tuple[str, str]:
        """The barrier's number, and the warps it expects (0: all), each an i32."""
        number, threads = (self._scalar(o) if o is not None else "0" for o in barrier_operands(instruction))
        return number, self.e.i32("lshr", self.e.i32("add", threads, 31), 5)

    def _of_cluster(self, segment: int) -> None:
        """barrier.cluster.wait: go on when the phase in which the lanes arrived is over."""
        e = self.e
        open_, over = e.fresh("open"), e.fresh("over")
        pending = e.i32("and", e.field("%w", Slot.CLUSTER_ARRIVED, "i32"), e.exec)
        e.branch(e.i32("icmp eq", pending, 0), over, open_)
        e.label(over)
        self.control.edge(segment + 1)
        e.label(open_)
        e.set_field("%w", Slot.BARRIER, str(BARRIER_OF_CLUSTER))
        e.set_field("%w", Slot.BARRIER_KIND, "0")
        self._meet(segment)

    def _of_group(self, segment: int) -> None:
        """The warps of a warpgroup wait for each other."""
        e = self.e
        number = e.i64("udiv", e.field("%w", Slot.WARP), GROUP)
        e.set_field("%w", Slot.BARRIER, e.i64("add", number, BARRIER_OF_GROUP))
        e.set_field("%w", Slot.BARRIER_WARPS, "0")
        e.set_field("%w", Slot.BARRIER_KIND, "0")
        self._meet(segment)

    def _meet(self, segment: int) -> None:
        """The warp leaves when all its lanes have come; before, those that came give way."""
        e = self.e
        live = e.field("%w", Slot.LIVE, "i32")
        apart = e.i32("icmp ne", e.i32("and", live, e.i32("xor", e.exec, -1)), 0)
        e.note(Flag.DIVERGENT_BARRIER, apart)
        arrived = e.i32("or", e.field("%w", Slot.ARRIVED, "i32"), e.active)
        missing = e.i32("and", live, e.i32("xor", arrived, -1))
        whole, partly = e.fresh("whole"), e.fresh("partly")
        e.branch(e.i32("icmp eq", missing, 0), whole, partly)
        e.label(partly)
        e.set_field("%w", Slot.ARRIVED, e.widen(arrived))
        self._leave(segment, Exit.SYNC)
        e.label(whole)
        e.set_field("%w", Slot.ARRIVED, "0")
        self._leave(segment, Exit.BARRIER)

    def _leave(self, segment: int, code: Exit) -> None:
        self.e.set_field("%w", Slot.RESUME, str(self.flow.segments + segment))
        self.e.do(f"ret i32 {int(code)}")

    def _scalar(self, operand: Operand) -> str:
        """A barrier operand, which all lanes share, as an i32."""
        e = self.e
        if isinstance(operand, Imm):
            return str(int(operand.value) - (1 << 32 if int(operand.value) >> 31 > 0 else 0))
        lane = e.call("i32", "llvm.cttz.i32", ("i32", e.exec), ("i1", "false"))
        return e.extract("i32", e.read(operand, "b32"), e.i32("and", lane, 31))

    def _contribute(self, predicate: Operand) -> None:
        """Lanes that come apart from each other add up; the scheduler begins again at 0."""
        e = self.e
        yes = e.i32("and", e.exec, e.mask_bits(e.read(predicate, "pred")))
        for slot, mask in ((Slot.BARRIER_VALUE, yes), (Slot.BARRIER_THREADS, e.exec)):
            more = e.widen(e.call("i32", "llvm.ctpop.i32", ("i32", mask)))
            e.set_field("%w", slot, e.i64("add", e.field("%w", slot), more))

    def after(self, segment: int, instruction: Instruction) -> None:
        """Where lanes resume behind the barrier that ends `segment`: not yet, while others of the warp are missing."""
        e = self.e
        e.begin_continuation(segment, self.flow.segments + segment)
        blocked, free = e.fresh("blocked"), e.fresh("free")
        still = e.i32("and", e.field("%w", Slot.ARRIVED, "i32"), e.active)
        e.branch(e.i32("icmp eq", still, 0), free, blocked)
        e.label(blocked)
        self._leave(segment, Exit.SYNC)
        e.label(free)
        if "red" in instruction.modifiers:
            self._result(instruction)
            e.end_segment(self.flow.live_out[segment])
        self.control.edge(segment + 1)

    def _result(self, instruction: Instruction) -> None:
        e = self.e
        total = e.field("%w", Slot.BARRIER_RESULT)
        threads = e.field("%w", Slot.BARRIER_RESULT_THREADS)
        if "popc" in instruction.modifiers:
            e.write(instruction.operands[0], "b32", e.splat("i32", e.op(f"trunc i64 {total} to i32")))
        elif "and" in instruction.modifiers or "or" in instruction.modifiers:
            flag = e.i64("icmp eq", total, threads) if "and" in instruction.modifiers else e.i64("icmp ne", total, 0)
            e.write(instruction.operands[0], "pred", e.splat("i1", flag))
        else:
            raise Unsupported("this barrier reduction")
