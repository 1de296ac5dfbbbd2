"""Writes the code of one instruction at a time: operands in, result out, guards and lane masks in between.

A register's value is one 32-lane vector. Inside a segment values stay in LLVM; at its end those that live on are
merged, under the mask of executing lanes, into the warp's frame in memory. Emitters register themselves by base opcode
with `emits`; each gets the `Emitter` and the instruction and calls `read` and `write`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from ppt_gpu.emulator.analysis.access_groups import Grouping
from ppt_gpu.emulator.analysis.constant_offsets import Step
from ppt_gpu.emulator.analysis.data_dependence import Deciding
from ppt_gpu.emulator.analysis.register_equalities import Relations
from ppt_gpu.emulator.forms.computes import Unsupported
from ppt_gpu.emulator.forms.opcode import float_bits
from ppt_gpu.emulator.jit.access import SITE_WORDS
from ppt_gpu.emulator.llvm.text import BITS, ELEMENT, Text, bits_scalar, const, vec
from ppt_gpu.emulator.memory.warp_context import Fault, Flag, Slot
from ppt_gpu.ptx.instructions import is_traced, names_other_blocks
from ppt_gpu.ptx.linking.linked import LinkedKernel, is_framed
from ppt_gpu.ptx.module import Imm, Instruction, Neg, Operand, Reg, Sink, Special, Sym

#: what writing the code of an instruction raises that is not executed yet
NOT_EXECUTED = (Unsupported, KeyError, IndexError, StopIteration, ValueError)
#: base opcode -> emitter
EMITTERS: dict[str, Callable[[Emitter, Instruction], None]] = {}
#: special register -> reader, returns (element, value)
SPECIAL_READERS: dict[str, Callable[[Emitter], tuple[str, str]]] = {}


def emits(*opcodes: str) -> Callable[[Callable[[Emitter, Instruction], None]], Callable]:
    """Registers the emitter of base opcodes."""

    def register(emitter: Callable[[Emitter, Instruction], None]) -> Callable:
        for opcode in opcodes:
            EMITTERS[opcode] = emitter
        return emitter

    return register


def integer_of(element: str) -> str:
    """The integer element as wide as `element`."""
    return element if element == "i1" else f"i{BITS[element]}"


class Emitter(Text):
    """State while the code of one segment is written. Vectors have 32 lanes; `exec` are the lanes that take part."""

    def __init__(
        self,
        kernel: LinkedKernel,
        frame: Mapping[int, int],
        symbols: dict[str, int],
        traced: bool,
        deciding: Deciding | None = None,
    ) -> None:
        """deciding: what decides the trace, of code that computes nothing else."""
        super().__init__()
        self.deciding = deciding
        self.kernel = kernel
        self.frame = frame  # register id -> byte offset in the frame
        self.symbols = symbols  # name -> position in the symbol table; grows
        self.traced = traced
        self.elements = [ELEMENT.get(r.type, "") for r in kernel.registers]
        self.sites: list[int] = []  # static access -> instruction index
        self.guarded: list[int] = []  # counter -> instruction index
        self.groups = Grouping()
        self.steps: Mapping[int, Step] = {}  # by instruction
        self.uniform: Mapping[int, int] = {}  # register whose value is told -> position in the table of these
        self.relations: Relations = {}  # of the registers where the segment begins
        self.instruction: Instruction = kernel.instructions[0]
        self.position = 0  # of the instruction in its segment
        self.params = {p.name: p for p in kernel.params}
        self.wide_bytes = 0  # room for the registers of matrix instructions

    @cached_property
    def clusters(self) -> bool:
        """Can the kernel make addresses of the shared memory of other blocks of its cluster?"""
        return any(names_other_blocks(i) for i in self.kernel.instructions)

    # what is computed -------------------------------------------------------------------------------------------

    def wants(self, registers: Iterable[int]) -> bool:
        """Is one of these registers computed?"""
        return self.deciding is None or not self.deciding.registers.isdisjoint(registers)

    def keeps(self, space: str) -> bool:
        """Is what memory of this space holds kept? Helpers' names of spaces; no load of what is not yields anything."""
        return self.deciding is None or (space != "global" and self.deciding.scratch)

    # segments ---------------------------------------------------------------------------------------------------

    def begin_segment(self, name: str) -> None:
        self.segment = name
        self.values: dict[tuple[int, str], str] = {}  # (register, element) -> value
        self.dirty: set[int] = set()
        self.cached: dict[str, str] = {}  # values that do not change within the segment
        self.touched_memory = False
        self.guard_counts: list[str] = []
        self.relations = {}

    def begin_continuation(self, segment: int, point: int) -> None:
        """What a warp still does behind the barrier or call that ended `segment`, when it comes back to `point`."""
        self.label(f"s{point}")
        self.begin_segment(f"a{segment}")
        self.do(f"%ma{segment} = load i32, ptr {self.op(f'getelementptr i64, ptr %w, i64 {int(Slot.MASK)}')}, align 8")
        self.guard_flags = ""

    def begin_instruction(self, instruction: Instruction, position: int) -> None:
        self.instruction = instruction
        self.position = position
        self.guard_flags = self.guard_name = ""
        if self.traced and is_traced(instruction):
            self.groups.begin_access()
        guard = instruction.guard
        if guard is None:
            return
        flags = self.register(guard.reg, "i1")
        self.guard_name = f"!{flags}" if guard.negated else flags
        if guard.negated:
            flags = self.op(f"xor {vec('i1')} {flags}, {const('i1', 1)}")
        self.guard_flags = flags
        self.guard_exec = self.i32("and", self.active, self.mask_bits(flags))
        if self.traced:
            self._count_guarded()

    def _count_guarded(self) -> None:
        """Threads whose guard is false do not count as executing the instruction."""
        slot = len(self.guarded)
        self.guarded.append(self.instruction.index)
        threads = self.widen(self.call("i32", "llvm.ctpop.i32", ("i32", self.guard_exec)))
        self.guard_counts.append(threads)
        counters = self.once("guarded", lambda: self.field("%w", Slot.GUARDED, "ptr"))
        at = self.op(f"getelementptr i64, ptr {counters}, i64 {slot}")
        self.do(f"store i64 {self.i64('add', self.op(f'load i64, ptr {at}'), threads)}, ptr {at}")

    def end_segment(self, live_out: int) -> None:
        """Merge what lives on into the frame; add up the threads of guarded instructions."""
        for register in sorted(self.dirty):
            if live_out >> register & 1:
                self._merge(register)
        if self.guard_counts:
            total = self.field("%w", Slot.GUARDED_SUM)
            for threads in self.guard_counts:
                total = self.i64("add", total, threads)
            self.set_field("%w", Slot.GUARDED_SUM, total)

    def _merge(self, register: int) -> None:
        element = self.elements[register]
        at = self.offset_pointer("%frame", self.frame[register])
        if element == "i1":
            new = self.i32("and", self.mask_bits(self.register(register, "i1")), self.active)
            old = self.i32("and", self.op(f"load i32, ptr {at}"), self.inactive)
            self.do(f"store i32 {self.i32('or', new, old)}, ptr {at}")
            return
        value, kind = self._any_value(register)
        old = self.op(f"load {vec(kind)}, ptr {at}, align 64")
        merged = self.op(f"select {vec('i1')} {self.active_flags}, {vec(kind)} {value}, {vec(kind)} {old}")
        self.do(f"store {vec(kind)} {merged}, ptr {at}, align 64")

    def _any_value(self, register: int) -> tuple[str, str]:
        for (known, element), value in self.values.items():
            if known == register:
                return value, element
        raise AssertionError("a written register has a value")

    # masks ------------------------------------------------------------------------------------------------------

    def once(self, name: str, make: Callable[[], str]) -> str:
        """A value computed once in the segment."""
        if name not in self.cached:
            self.cached[name] = make()
        return self.cached[name]

    @property
    def active(self) -> str:
        """i32: lanes that execute the segment."""
        return "%m" + self.segment

    @property
    def active_flags(self) -> str:
        return self.once("active", lambda: self.mask_flags(self.active))

    @property
    def inactive(self) -> str:
        return self.once("inactive", lambda: self.i32("xor", self.active, -1))

    @property
    def exec(self) -> str:
        """i32: active lanes whose guard holds."""
        return self.guard_exec if self.guard_flags else self.active

    # operands ---------------------------------------------------------------------------------------------------

    def register(self, register: int, element: str) -> str:
        """The value of a register as `element`, of the register's own width."""
        known = self.values.get((register, element))
        if known:
            return known
        own = self.elements[register]
        if not own:
            raise Unsupported(f"registers of type .{self.kernel.registers[register].type}")
        for other in (integer_of(own), "float", "double", "half"):
            if (register, other) in self.values:
                value = self.cast(self.values[register, other], other, element)
                break
        else:
            value = self._load(register, element)
        self.values[register, element] = value
        return value

    def _load(self, register: int, element: str) -> str:
        if register not in self.frame:  # nobody reads what was there before
            return "zeroinitializer"
        at = self.offset_pointer("%frame", self.frame[register])
        if element == "i1":
            return self.mask_flags(self.op(f"load i32, ptr {at}"))
        value = self.op(f"load {vec(element)}, ptr {at}, align 64")
        if register in self.relations:
            other, distance = self.relations[register]
            self.groups.derive(value, f"register {other}", distance)
        return value

    def read(self, operand: Operand, kind: str) -> str:
        """An operand as a vector of PTX type `kind`. A wider register gives its low bits."""
        element = ELEMENT[kind]
        if isinstance(operand, Reg):
            own = self.elements[operand.id]
            if own and BITS[own] != BITS[element]:
                return self._resize(self.register(operand.id, own), own, element, False)
            return self.register(operand.id, element)
        if isinstance(operand, Imm):
            return immediate(operand, element)
        if isinstance(operand, Neg):
            flags = self.op(f"xor {vec('i1')} {self.register(operand.reg.id, 'i1')}, {const('i1', 1)}")
            return self._resize(flags, "i1", element, False) if element != "i1" else flags
        if isinstance(operand, Special):
            return self.special(operand.name, element)
        if isinstance(operand, Sym):
            address = self.symbol(operand.name)
            total = self.i64("add", address, operand.offset) if operand.offset else address
            if element == integer_of(element) and BITS[element] < 64:
                return self.splat(element, self.op(f"trunc i64 {total} to {element}"))
            return self._resize(self.splat("i64", total), "i64", element, False)
        raise Unsupported(f"an operand of kind {type(operand).__name__}")

    def symbol(self, name: str) -> str:
        """The address of a variable, parameter or function in its own space, as an i64."""
        if name in self.kernel.offsets:
            at = self.kernel.offsets[name]
            return self.i64("add", self.stack_pointer(), at) if is_framed(name) else str(at)
        if name in self.params:
            return str(self.params[name].offset)
        slot = self.symbols.setdefault(name, len(self.symbols))
        table = self.once("symbols", lambda: self.field("%w", Slot.SYMBOLS, "ptr"))
        return self.field(table, slot)

    def stack_pointer(self) -> str:
        """The offset of the function's frame in the threads' local memory, as an i64."""
        return self.once("frame", lambda: self.field("%w", Slot.FRAME_OFFSET))

    def special(self, name: str, element: str) -> str:
        reader = SPECIAL_READERS.get(name)
        if reader is None:
            raise Unsupported(f"the special register %{name}")
        own, value = reader(self)
        return self._resize(value, own, element, False)

    def _resize(self, value: str, source: str, element: str, signed: bool) -> str:
        """Keep the low bits, or extend; float elements are reinterpreted."""
        raw, wanted = integer_of(source), integer_of(element)
        if source != raw:
            value = self.cast(value, source, raw)
        if BITS[raw] > BITS[wanted]:
            value = self.op(f"trunc {vec(raw)} {value} to {vec(wanted)}")
        elif BITS[raw] < BITS[wanted]:
            value = self.op(f"{'sext' if signed else 'zext'} {vec(raw)} {value} to {vec(wanted)}")
        return self.cast(value, wanted, element)

    def write(self, operand: Operand, kind: str, value: str) -> None:
        """Give a register its new value in the lanes whose guard holds; a wider register is extended by sign."""
        if isinstance(operand, Sink):
            return
        if not isinstance(operand, Reg):
            raise Unsupported(f"a destination of kind {type(operand).__name__}")
        register, element = operand.id, ELEMENT[kind]
        own = self.elements[register]
        if not own:
            raise Unsupported(f"registers of type .{self.kernel.registers[register].type}")
        if BITS[own] != BITS[element]:
            value = self._resize(value, element, own, kind[0] == "s")
            element = own
        if self.guard_flags:
            old = self.register(register, element)
            value = self.op(f"select {vec('i1')} {self.guard_flags}, {vec(element)} {value}, {vec(element)} {old}")
        for other in BITS:
            self.values.pop((register, other), None)
        self.values[register, element] = value
        self.dirty.add(register)

    def tell(self, instruction: Instruction) -> None:
        """Where the instruction computes a uniform register of which distances are made, put down its value."""
        for register in instruction.writes:
            if register not in self.uniform:
                continue
            own = integer_of(self.elements[register])
            lane = self.once("first", lambda: self.first_lane(self.active))
            value = self.extract(own, self.register(register, own), lane)
            table = self.once("uniform", lambda: self.field("%w", Slot.UNIFORM, "ptr"))
            self.set_field(table, self.uniform[register], self.widen(value) if own == "i32" else value)

    # effects ----------------------------------------------------------------------------------------------------

    def wide(self, count: int) -> str:
        """Room for `count` bytes on the kernel's stack, shared by all instructions that ask."""
        self.wide_bytes = max(self.wide_bytes, count)
        return "%wide"

    def site(self) -> str:
        """The range cache of a new static access."""
        slot = len(self.sites)
        self.sites.append(self.instruction.index)
        self.touched_memory = True
        table = self.once("sites", lambda: self.field("%w", Slot.SITES, "ptr"))
        return self.offset_pointer(table, 8 * SITE_WORDS * slot)

    def fault(self, code: Fault, mask: str) -> None:
        """Stop the warp with a fault if any lane of `mask` is set."""
        self.touched_memory = True
        pc = str(self.instruction.index)
        self.helper(("stop",), "void", ("ptr", "%w"), ("i32", mask), ("i64", str(int(code))), ("i64", pc))

    def note(self, flag: Flag, condition: str) -> None:
        """Remember `flag` for the instruction, for a warning, when the i1 holds."""
        notes = self.once("notes", lambda: self.field("%w", Slot.NOTES, "ptr"))
        at = self.op(f"getelementptr i64, ptr {notes}, i64 {self.instruction.index}")
        bit = self.i64("mul", self.op(f"zext i1 {condition} to i64"), int(flag))
        self.do(f"store i64 {self.i64('or', self.op(f'load i64, ptr {at}'), bit)}, ptr {at}")


def immediate(operand: Imm, element: str) -> str:
    """A literal as a constant vector. A float literal in an integer place keeps its bits, and the other way round."""
    bits = BITS[element]
    if element in ("half", "float", "double"):
        if operand.bits is None and isinstance(operand.value, int):
            return const(element, float(operand.value))
        if operand.bits is not None and operand.width == bits:
            return bits_const(element, operand.bits)
        return const(element, operand.value)
    if isinstance(operand.value, float):
        return const(element, operand.bits if operand.bits is not None else float_bits(operand.value, bits))
    return const(element, operand.value)


def bits_const(element: str, bits: int) -> str:
    """A constant float vector with exactly these bits (NaN payloads included)."""
    return f"<{', '.join([f'{element} {bits_scalar(element, bits)}'] * 32)}>"
