"""Calls: the call pushes its return point like a join, the function's paths pop it when all their lanes have returned.

The frame of a function begins behind that of its caller, at the same offset in all lanes that run together. Registers
have one place each; those that a recursive call may overwrite go to the caller's frame and come back behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ppt_gpu.emulator.forms.computes import Unsupported
from ppt_gpu.emulator.jit.emit import Emitter, emits
from ppt_gpu.emulator.jit.memory.frame import frame_copy, frame_load, frame_store
from ppt_gpu.emulator.llvm.text import BITS, ELEMENT, const, vec
from ppt_gpu.emulator.memory.warp_context import Exit, Fault, Slot
from ppt_gpu.ptx.linking.linked import ALLOCATED, CALLEE, Call, Function
from ppt_gpu.ptx.module import Instruction, Operand, Reg, Sym, Vec

if TYPE_CHECKING:
    from ppt_gpu.emulator.jit.compiler.control import Control


class Calls:
    """Writes the calls of one kernel, and where their callers go on."""

    def __init__(self, control: Control) -> None:
        self.control = control
        self.e = control.e
        self.flow = control.flow
        self.kernel = control.e.kernel

    def call(self, segment: int, i: Instruction) -> None:
        """The end of a segment: into the callee, or out to the host."""
        e, site = self.e, self.kernel.calls[i.index]
        if e.guard_flags:
            some, none = e.fresh("some"), e.fresh("none")
            e.branch(e.i32("icmp eq", e.exec, 0), none, some)
            e.label(none)
            self.control.edge(segment + 1)
            e.label(some)
        frame = e.i64("add", e.stack_pointer(), site.frame_bytes)
        ways = self._ways(i, site)
        self._check_stack(site, frame)
        self.control.check_fault()
        for function, mask in ways:
            self._pass(i, function, mask, frame)
        which = self._which(i)
        if which:
            for number, (_, mask) in enumerate(ways):
                frame_store(e, mask, which, "i32", const("i32", number))
        for register, at in site.saved:
            element = e.elements[register]
            if register in e.frame:
                frame_store(e, e.exec, e.i64("add", e.stack_pointer(), at), element, e.register(register, element))
        if e.guard_flags:
            self._part(segment)
        after = self.flow.segments + segment
        if not ways[0][0].has_body:
            e.set_field("%w", Slot.MASK, e.exec, "i32")
            e.set_field("%w", Slot.RESUME, str(after))
            e.set_field("%w", Slot.HOST_CALL, str(i.index))
            e.do(f"ret i32 {int(Exit.HOST)}")
            return
        self.control.push(after, e.exec, e.field("%w", Slot.RPC, "i32"))
        e.set_field("%w", Slot.RPC, str(after), "i32")
        e.set_field("%w", Slot.FRAME_OFFSET, frame)
        if len(ways) == 1:
            e.set_field("%w", Slot.MASK, e.exec, "i32")
            e.jump(f"s{self.flow.segment_of[ways[0][0].entry]}")
            return
        for function, mask in sorted(ways, key=lambda way: -way[0].entry):
            some, none = e.fresh("some"), e.fresh("none")
            e.branch(e.i32("icmp eq", mask, 0), none, some)
            e.label(some)
            self.control.push(self.flow.segment_of[function.entry], mask, str(after))
            e.jump(none)
            e.label(none)
        e.jump("pop")

    def _part(self, segment: int) -> None:
        """Lanes that do not call wait for the others behind the call."""
        e = self.e
        mixed, whole = e.fresh("mixed"), e.fresh("whole")
        e.branch(e.i32("icmp eq", e.exec, e.active), whole, mixed)
        e.label(mixed)
        self.control.push_join(segment)
        e.jump(whole)
        e.label(whole)

    def _ways(self, i: Instruction, site: Call) -> list[tuple[Function, str]]:
        """The functions that lanes go to, each with its lanes; a fault for lanes that go elsewhere."""
        e = self.e
        functions = [self.kernel.functions[name] for name in site.callees]
        if not site.indirect:
            return [(functions[0], e.exec)]
        element = self._width(i.operands[1])
        address = e.read(i.operands[1], "u64" if element == "i64" else "u32")
        left, ways = e.exec, []
        for function in functions:
            where = e.symbol(function.name)
            if element != "i64":
                where = e.op(f"trunc i64 {where} to {element}")
            same = e.mask_bits(e.op(f"icmp eq {vec(element)} {address}, {e.splat(element, where)}"))
            mask = e.i32("and", left, same)
            left = e.i32("and", left, e.i32("xor", same, -1))
            ways.append((function, mask))
        e.fault(Fault.TARGET, left)
        return ways

    def _width(self, operand: Operand) -> str:
        return self.e.elements[operand.id] if isinstance(operand, Reg) else "i64"

    def _check_stack(self, site: Call, frame: str) -> None:
        """A fault when the callee's frame does not fit any more; where no call is recursive it always fits."""
        e = self.e
        if self.kernel.stack_bytes >= 0:
            return
        end = e.i64("add", frame, max(self.kernel.functions[name].frame_bytes for name in site.callees))
        if self.kernel.allocates:
            where = (("ptr", "%w"), ("i32", e.exec), ("i64", e.symbol(allocated(e))))
            end = e.i64("add", end, e.helper(("frame_most",), "i64", *where))
        beyond = e.i64("icmp ugt", end, e.field("%w", Slot.LOCAL_BYTES))
        e.fault(Fault.STACK, e.op(f"select i1 {beyond}, i32 {e.exec}, i32 0"))

    def _pass(self, i: Instruction, function: Function, mask: str, frame: str) -> None:
        """Arguments to where the callee looks for them; its registers hold nothing yet."""
        e = self.e
        arguments = i.operands[2]
        assert isinstance(arguments, Vec)
        for param, argument in zip(function.params, arguments.items, strict=False):
            if param.register >= 0:
                self._merge(param.register, e.read(argument, param.type), ELEMENT[param.type], mask)
                continue
            place = e.i64("add", frame, self.kernel.offsets[param.name])
            if isinstance(argument, Sym) and argument.name in self.kernel.offsets:
                frame_copy(e, mask, e.symbol(argument.name), place, min(param.bytes, self.kernel.sizes[argument.name]))
            else:
                element = ELEMENT[f"b{8 * param.bytes}"]
                frame_store(e, mask, place, element, e.read(argument, f"b{8 * param.bytes}"))
        if not function.has_body:
            return
        given = {param.register for param in function.params}
        for register in self.flow.entry_registers(function.entry):
            if register in e.frame and register not in given:
                self._merge(register, "zeroinitializer", e.elements[register], mask)
        if self.kernel.allocates:
            place = e.i64("add", frame, self.kernel.offsets[f"{function.name}:{ALLOCATED}"])
            frame_copy(e, mask, e.symbol(allocated(e)), place, 8)

    def _merge(self, register: int, value: str, element: str, mask: str) -> None:
        """Give a register of another function a value in the lanes of `mask`."""
        e = self.e
        if register not in e.frame:
            return
        own = e.elements[register]
        if BITS[own] != BITS[element]:
            raise Unsupported("an argument of another width than its register")
        at = e.offset_pointer("%frame", e.frame[register])
        if own == "i1":
            new = e.i32("and", e.mask_bits(value), mask)
            old = e.i32("and", e.op(f"load i32, ptr {at}"), e.i32("xor", mask, -1))
            e.do(f"store i32 {e.i32('or', new, old)}, ptr {at}")
            return
        old = e.op(f"load {vec(element)}, ptr {at}, align 64")
        merged = e.select(e.mask_flags(mask), element, value, old)
        e.do(f"store {vec(element)} {merged}, ptr {at}, align 64")

    def after(self, segment: int, i: Instruction) -> None:
        """The place where the calling lanes go on: results and saved registers come back."""
        e, site = self.e, self.kernel.calls[i.index]
        e.begin_continuation(segment, self.flow.segments + segment)
        functions = [self.kernel.functions[name] for name in site.callees]
        function = functions[0]
        frame = e.i64("add", e.stack_pointer(), site.frame_bytes)
        # before saved registers come back: the function's may be among them
        returned = [self._returned(i, functions, n) for n in range(len(function.returns))]
        for register, at in site.saved:
            if register in e.frame:
                kind = self.kernel.registers[register].type
                value = frame_load(e, e.active, e.i64("add", e.stack_pointer(), at), e.elements[register])
                e.write(Reg(register), kind, value)
        results = i.operands[0]
        assert isinstance(results, Vec)
        for param, value, result in zip(function.returns, returned, results.items, strict=True):
            if value:
                e.write(result, param.type, value)
            elif isinstance(result, Sym) and result.name in self.kernel.offsets:
                place = e.i64("add", frame, self.kernel.offsets[param.name])
                frame_copy(e, e.active, place, e.symbol(result.name), min(param.bytes, self.kernel.sizes[result.name]))
            else:
                kind = f"b{8 * param.bytes}"
                place = e.i64("add", frame, self.kernel.offsets[param.name])
                e.write(result, kind, frame_load(e, e.active, place, ELEMENT[kind]))
        e.end_segment(self.flow.live_out[segment])
        self.control.edge(segment + 1)

    def _which(self, i: Instruction) -> str:
        """Where the lanes keep which function they called, "" where nobody asks."""
        function = self.kernel.function_at(i.index)
        name = f"{function.name}:{CALLEE}{i.index}" if function else f"{CALLEE}{i.index}"
        return self.e.symbol(name) if name in self.kernel.offsets else ""

    def _returned(self, i: Instruction, functions: list[Function], number: int) -> str:
        """A result that comes back in a register of the function that a lane called; "" for one in memory."""
        e, element = self.e, ELEMENT[functions[0].returns[number].type]
        registers = [f.returns[number].register for f in functions]
        if min(registers) < 0:
            return ""
        value = e.register(registers[0], element)
        which = self._which(i)
        called = frame_load(e, e.active, which, "i32") if which else ""
        for k, register in enumerate(registers[1:], 1):
            mine = e.op(f"icmp eq {vec('i32')} {called}, {const('i32', k)}")
            value = e.select(mine, element, e.register(register, element), value)
        return value


def allocated(e: Emitter) -> str:
    """The stack variable that counts what alloca took in the function of the current instruction."""
    function = e.kernel.function_at(e.instruction.index)
    return f"{function.name}:{ALLOCATED}" if function else ALLOCATED


@emits("alloca", "stacksave", "stackrestore")
def emit_alloca(e: Emitter, i: Instruction) -> None:
    """Blocks of alloca lie at the end of local memory, the newest lowest; they end with their function."""
    element = "i64" if i.modifiers[0].endswith("64") else "i32"
    kind = i.modifiers[0].replace("u", "b")
    counter = e.symbol(allocated(e))
    used = frame_load(e, e.exec, counter, "i64")
    end = e.splat("i64", e.field("%w", Slot.LOCAL_BYTES))
    if i.base == "stackrestore":
        saved = e.read(i.operands[0], kind)
        wide = saved if element == "i64" else e.widen_lanes(saved)
        frame_store(e, e.exec, counter, "i64", e.v64("sub", end, wide))
        return
    if i.base == "alloca":
        size = e.read(i.operands[1], kind)
        size = size if element == "i64" else e.widen_lanes(size)
        align = int(getattr(i.operands[2], "value", 16)) if len(i.operands) > 2 else 8
        align = max(align, 16)
        lowest = e.v64("sub", end, e.v64("add", used, size))
        used = e.v64("sub", end, e.v64("and", lowest, const("i64", -align)))
        function = e.kernel.function_at(i.index)
        own = function.frame_bytes if function else e.kernel.frame_bytes
        room = e.i64("sub", e.field("%w", Slot.LOCAL_BYTES), e.i64("add", e.stack_pointer(), own))
        over = e.mask_bits(e.v64("icmp ugt", used, e.splat("i64", room)))
        huge = e.mask_bits(e.v64("icmp ugt", size, e.splat("i64", room)))
        e.fault(Fault.STACK, e.i32("and", e.exec, e.i32("or", over, huge)))
        frame_store(e, e.exec, counter, "i64", used)
    place = e.v64("sub", end, used)
    if element != "i64":
        place = e.op(f"trunc {vec('i64')} {place} to {vec('i32')}")
    e.write(i.operands[0], "b64" if element == "i64" else "b32", place)
