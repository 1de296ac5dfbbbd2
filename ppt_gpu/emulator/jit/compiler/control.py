"""The ends of segments: branches and their divergence, exits.

A warp executes with one mask. Where its lanes part, an entry for the join (the branch's immediate post-dominator)
and one for the later path go on a stack, and the earlier path runs on. Reaching the join pops the stack.
"""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.emulator.analysis.flow import Flow, branch_targets
from ppt_gpu.emulator.jit.emit import Emitter
from ppt_gpu.emulator.llvm.text import const
from ppt_gpu.emulator.memory.warp_context import Exit, Fault, Slot
from ppt_gpu.ptx.module import Instruction


class Control:
    """Writes the ends of the segments of one kernel."""

    def __init__(self, emitter: Emitter, flow: Flow) -> None:
        self.e = emitter
        self.flow = flow
        self.joins = {join for join in flow.join if join >= 0}
        self.end = flow.segments - 1  # the segment of the end of the kernel

    def edge(self, target: int) -> None:
        """Go on at a segment, or join the others when it is where they meet."""
        e = self.e
        if target not in self.joins:
            e.jump(f"s{target}")
            return
        rpc = e.field("%w", Slot.RPC, "i32")
        e.branch(e.i32("icmp eq", rpc, target), "pop", f"s{target}")

    def leave(self, mask: str) -> None:
        """The lanes of `mask` exit."""
        e = self.e
        live = e.field("%w", Slot.LIVE, "i32")
        e.set_field("%w", Slot.LIVE, e.i32("and", live, e.i32("xor", mask, -1)), "i32")

    def exit(self, segment: int, instruction: Instruction) -> None:
        """ret or exit; with a guard some lanes go on. Behind ret of a function its caller is next on the stack."""
        e = self.e
        if instruction.base == "exit" or instruction.index < e.kernel.own_end:
            self.leave(e.exec)
        if not e.guard_flags:
            e.jump("pop")
            return
        rest = e.i32("and", e.active, e.i32("xor", e.exec, -1))
        e.set_field("%w", Slot.MASK, rest, "i32")
        stay = e.fresh("stay")
        e.branch(e.i32("icmp eq", rest, 0), "pop", stay)
        e.label(stay)
        self.edge(segment + 1)

    def branch(self, segment: int, instruction: Instruction) -> None:
        e = self.e
        target = self.flow.segment_of[branch_targets(e.kernel, instruction)[0]]
        following = segment + 1
        if not e.guard_flags or target == following:
            self.edge(target)
            return
        taken = e.exec
        others = e.i32("and", e.active, e.i32("xor", taken, -1))
        self._two_ways(segment, (target, taken), (following, others))

    def _two_ways(self, segment: int, one: tuple[int, str], other: tuple[int, str]) -> None:
        e = self.e
        for (_, mask), (place, _) in ((one, other), (other, one)):
            whole, mixed = e.fresh("whole"), e.fresh("mixed")
            e.branch(e.i32("icmp eq", mask, 0), whole, mixed)
            e.label(whole)
            self.edge(place)
            e.label(mixed)
        join = self.push_join(segment)
        (first, first_mask), (second, second_mask) = sorted((one, other))
        if str(second) == join:
            pass  # those lanes wait at the join
        elif str(first) == join:
            first, first_mask = second, second_mask
        else:
            self.push(second, second_mask, join)
        e.set_field("%w", Slot.MASK, first_mask, "i32")
        if self.flow.join[segment] >= 0:
            e.jump(f"s{first}")
        else:
            self.edge(first)

    def push(self, point: int, mask: str, rpc: str) -> None:
        self.e.helper(("push",), "void", ("ptr", "%w"), ("i32", str(point)), ("i32", mask), ("i32", rpc))

    def push_join(self, segment: int) -> str:
        """Make sure that the lanes meet again at the branch's join. Returns the rpc of the parting paths."""
        e, join = self.e, self.flow.join[segment]
        rpc = e.field("%w", Slot.RPC, "i32")
        if join < 0:
            return rpc
        push, pushed = e.fresh("push"), e.fresh("pushed")
        e.branch(e.i32("icmp eq", rpc, join), pushed, push)
        e.label(push)
        self.push(join, e.active, rpc)
        e.set_field("%w", Slot.RPC, str(join), "i32")
        e.jump(pushed)
        e.label(pushed)
        return str(join)

    def indexed(self, segment: int, instruction: Instruction) -> None:
        """brx.idx: one of a list of targets, by lane."""
        e = self.e
        targets = [self.flow.segment_of[t] for t in branch_targets(e.kernel, instruction)]
        index = e.read(instruction.operands[0], "u32")
        outside = e.mask_bits(e.v32("icmp uge", index, const("i32", len(targets))))
        e.fault(Fault.TARGET, e.i32("and", e.exec, outside))
        self.check_fault()
        ways: dict[int, str] = {}
        for k, target in enumerate(targets):
            mask = e.i32("and", e.exec, e.mask_bits(e.v32("icmp eq", index, const("i32", k))))
            ways[target] = e.i32("or", ways[target], mask) if target in ways else mask
        if e.guard_flags:
            rest = e.i32("and", e.active, e.i32("xor", e.exec, -1))
            ways[segment + 1] = e.i32("or", ways[segment + 1], rest) if segment + 1 in ways else rest
        self._many_ways(segment, ways)

    def _many_ways(self, segment: int, ways: dict[int, str]) -> None:
        e = self.e
        for target, mask in ways.items():
            whole, mixed = e.fresh("whole"), e.fresh("mixed")
            e.branch(e.i32("icmp eq", mask, e.active), whole, mixed)
            e.label(whole)
            self.edge(target)
            e.label(mixed)
        join = self.push_join(segment)
        for target in sorted(ways, reverse=True):
            if str(target) == join:
                continue
            some, none = e.fresh("some"), e.fresh("none")
            e.branch(e.i32("icmp eq", ways[target], 0), none, some)
            e.label(some)
            self.push(target, ways[target], join)
            e.jump(none)
            e.label(none)
        e.jump("pop")  # the lowest, pushed last

    def check_fault(self) -> None:
        e = self.e
        fine = e.fresh("fine")
        e.branch(e.i64("icmp eq", e.field("%w", Slot.FAULT), 0), fine, "faulted")
        e.label(fine)


def write_dispatch(e: Emitter, points: Sequence[int], may_wait: bool) -> None:
    """The function's frame: where to resume, how to pop the stack, how to return.

    may_wait: lanes may wait for others of their warp.
    """
    e.label("pop")
    depth = e.field("%w", Slot.DEPTH)
    e.branch(e.i64("icmp eq", depth, 0), "done", "popping")
    e.label("popping")
    top = e.i64("sub", depth, 1)
    e.set_field("%w", Slot.DEPTH, top)
    if may_wait:
        lowest = e.field("%w", Slot.LOWEST)
        fallen = e.i64("icmp slt", top, lowest)
        e.set_field("%w", Slot.LOWEST, e.op(f"select i1 {fallen}, i64 {top}, i64 {lowest}"))
    at = e.op(f"getelementptr [4 x i32], ptr {e.field('%w', Slot.STACK, 'ptr')}, i64 {top}")
    point, mask, rpc, frame = (e.op(f"load i32, ptr {e.offset_pointer(at, 4 * k)}") for k in range(4))
    alive = e.i32("and", mask, e.field("%w", Slot.LIVE, "i32"))
    e.branch(e.i32("icmp eq", alive, 0), "pop", "popped")
    e.label("popped")
    e.set_field("%w", Slot.MASK, alive, "i32")
    e.set_field("%w", Slot.RPC, rpc, "i32")
    e.set_field("%w", Slot.FRAME_OFFSET, e.widen(frame))
    e.jump("dispatch")
    e.label("dispatch")
    e.do(f"%point = phi i32 [ %resume, %entry ], [ {point}, %popped ]")
    cases = " ".join(f"i32 {p}, label %s{p}" for p in points)
    e.do(f"switch i32 %point, label %done [ {cases} ]")
    for label, code in (("done", Exit.DONE), ("faulted", Exit.FAULT)):
        e.label(label)
        e.do(f"ret i32 {int(code)}")
    e.label("pause")
    hungry = e.i64("icmp slt", e.field("%w", Slot.FUEL), 0)
    e.do(f"%why = select i1 {hungry}, i32 {int(Exit.TURN)}, i32 {int(Exit.FULL)}")
    e.do("ret i32 %why")
