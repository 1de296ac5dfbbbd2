"""A kernel as machine code: one function that runs a warp until it ends, waits, or must give way.

`i32 warp(ptr row)` reads and writes the warp's row (memory.warp_context) and returns an Exit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.analysis.access_groups import Groups
from ppt_gpu.emulator.analysis.constant_offsets import steps
from ppt_gpu.emulator.analysis.data_dependence import Deciding
from ppt_gpu.emulator.analysis.flow import Flow, flow_of, is_interruption
from ppt_gpu.emulator.analysis.register_equalities import Relations, related
from ppt_gpu.emulator.forms.computes import Unsupported
from ppt_gpu.emulator.host.host_calls import not_callable
from ppt_gpu.emulator.jit import patterns, special, sync, warp
from ppt_gpu.emulator.jit.arith import formats, lanes, math, move, rounded
from ppt_gpu.emulator.jit.arith.described import emit_instruction
from ppt_gpu.emulator.jit.compiler.barrier import Barriers
from ppt_gpu.emulator.jit.compiler.call import Calls
from ppt_gpu.emulator.jit.compiler.control import Control, write_dispatch
from ppt_gpu.emulator.jit.compiler.dead_code import leave_out
from ppt_gpu.emulator.jit.emit import NOT_EXECUTED, Emitter, emits
from ppt_gpu.emulator.jit.matrix import matrix, matrix_code, matrix_move, wgmma
from ppt_gpu.emulator.jit.memory import (
    address,
    asynchronous,
    atomics,
    frame,
    mbarrier,
    memory,
    reductions,
    spaces,
    texture,
)
from ppt_gpu.emulator.llvm.library import Compiler
from ppt_gpu.emulator.llvm.text import BITS, ELEMENT, const
from ppt_gpu.emulator.memory.warp_context import Fault, Slot
from ppt_gpu.emulator.trace.record_words import RECORD_BYTES, append_path
from ppt_gpu.ptx.instructions import is_branch, is_call, is_memory, is_traced
from ppt_gpu.ptx.linking.linked import LinkedKernel
from ppt_gpu.ptx.module import Instruction, Kernel, Reg
from ppt_gpu.ptx.table import ASSUMED

#: each of these registers its emitters or its helper functions when it is imported
REGISTERED = (
    formats, lanes, math, move, rounded, matrix, matrix_code, matrix_move, wgmma, address, asynchronous, atomics, frame,
    mbarrier, memory, reductions, spaces, texture, patterns, special, sync, warp,
)  # fmt: skip
FRAME_ALIGN = 64  # B
WAIT_FUEL = 1 << 40  # fuel that a turn of a loop takes that only waits: all of it


@dataclass
class Engine:
    """Compiled code of one kernel and what the runtime must know about it."""

    address: int  # of the function
    kernel: LinkedKernel
    flow: Flow
    traced: bool
    frame_bytes: int  # a warp's registers
    entry_offsets: tuple[tuple[int, int], ...]  # (offset, bytes) of registers that may be read before written
    sites: tuple[int, ...]  # instruction of each range cache
    guarded: tuple[int, ...]  # instruction of each guard counter
    groups: Groups  # of accesses of which one is recorded
    uniform: tuple[int, ...]  # registers whose values the code puts down, for distances in groups
    symbols: tuple[str, ...]  # names whose addresses the code reads
    unsupported: dict[int, str]  # instruction -> why it is not executed
    compiler: Compiler = field(repr=False)  # owns the machine code
    ir: str = field(repr=False)

    @cached_property
    def bounds(self) -> NDArray[np.int64]:
        """[S+1] the first instruction of each segment."""
        return np.array(self.flow.start, np.int64)

    @cached_property
    def segment_of(self) -> NDArray[np.int64]:
        """[I] the segment of each instruction."""
        return np.repeat(np.arange(self.flow.segments), np.diff(self.bounds))

    @cached_property
    def plain(self) -> NDArray[np.int64]:
        """[S] instructions of each segment without a guard."""
        unguarded = [int(i.guard is None) for i in self.kernel.instructions]
        return np.bincount(self.segment_of, weights=unguarded, minlength=self.flow.segments).astype(np.int64)


def compile_kernel(kernel: LinkedKernel, traced: bool, deciding: Deciding | None = None) -> Engine:
    """Compile `kernel`; with `traced`, code that records its path and addresses.

    `deciding`: what decides the trace, of code that computes nothing else: memory holds no results then.
    Instructions that are not executed yet become faults when a thread reaches them.
    """
    flow = flow_of(kernel)
    if deciding is not None:
        flow = flow.only(deciding.registers)
    frame, size = _frame(kernel, flow)
    symbols: dict[str, int] = {}
    e = Emitter(kernel, frame, symbols, traced, deciding)
    relations: Sequence[Relations] = [{}] * flow.segments
    if traced:
        e.steps = steps(kernel, flow.entry)
        relations = related(kernel, flow, e.steps)
        terms = {register for step in e.steps.values() for register, _ in step.distance.terms}
        e.uniform = {register: slot for slot, register in enumerate(sorted(terms))}
    unsupported = _write_function(e, flow, relations)
    text = "\n".join([*dict.fromkeys(e.declarations.values()), "define i32 @warp(ptr %w) {", *e.lines, "}"])
    compiler = Compiler(level=0)
    address = compiler.add(text, "warp")
    entry = tuple((frame[r], _slot_bytes(kernel, r)) for r in frame if flow.entry >> r & 1)
    return Engine(
        address, kernel, flow, traced, size, entry, tuple(e.sites), tuple(e.guarded), e.groups.done(flow.segments),
        tuple(e.uniform), tuple(symbols), unsupported, compiler, text,
    )  # fmt: skip


def _slot_bytes(kernel: Kernel, register: int) -> int:
    bits = BITS[ELEMENT[kernel.registers[register].type]]
    return 4 if bits == 1 else 32 * bits // 8


def _frame(kernel: Kernel, flow: Flow) -> tuple[dict[int, int], int]:
    """Offsets of the registers that live across segments, and the size of the frame."""
    offsets: dict[int, int] = {}
    cursor = 0
    for register, r in enumerate(kernel.registers):
        if flow.crossing >> register & 1 and r.type in ELEMENT:
            offsets[register] = cursor
            cursor += -(-_slot_bytes(kernel, register) // FRAME_ALIGN) * FRAME_ALIGN
    return offsets, max(cursor, FRAME_ALIGN)


def _write_function(e: Emitter, flow: Flow, relations: Sequence[Relations]) -> dict[int, str]:
    control = Control(e, flow)
    unsupported: dict[int, str] = {}
    e.label("entry")
    e.do("%scratch = alloca [16 x <32 x i64>], align 64")
    e.do(f"%frame = load ptr, ptr {e.op(f'getelementptr i64, ptr %w, i64 {int(Slot.FRAME)}')}, align 8")
    e.do(f"%resume = load i32, ptr {e.op(f'getelementptr i64, ptr %w, i64 {int(Slot.RESUME)}')}, align 8")
    e.jump("dispatch")
    points = list(range(flow.segments))
    for segment in range(flow.segments - 1):
        e.begin_segment(str(segment))
        e.relations = relations[segment]
        if _checked_segment(e, control, flow, segment, unsupported):
            points.append(flow.segments + segment)
    e.label(f"s{control.end}")
    control.leave(e.field("%w", Slot.MASK, "i32"))
    e.jump("pop")
    write_dispatch(e, points, any(flow.waiting.spins))
    if e.wide_bytes:
        e.lines.insert(1, f"  %wide = alloca [{e.wide_bytes} x i8], align 64")
    return unsupported


def _checked_segment(e: Emitter, control: Control, flow: Flow, segment: int, unsupported: dict[int, str]) -> bool:
    """`_write_segment`. PptError when its last instruction, which directs the warp, has operands of no use to it."""
    try:
        return _write_segment(e, control, flow, segment, unsupported)
    except NOT_EXECUTED as error:
        last = e.kernel.instructions[flow.start[segment + 1] - 1]
        reason = str(error) if isinstance(error, Unsupported) else "this form of it"
        text = f"'{last.opcode}' is not executed yet: {reason}"
        raise PptError(text, line=last.line, column=last.column) from None


def _write_segment(e: Emitter, control: Control, flow: Flow, segment: int, unsupported: dict[int, str]) -> bool:
    """One segment and its end. Returns whether a warp can resume after it (a barrier)."""
    code = e.kernel.instructions[flow.start[segment] : flow.start[segment + 1]]
    last = code[-1]
    e.groups.begin_segment()
    _prologue(e, flow, segment, code)
    for position, instruction in enumerate(code):
        e.begin_instruction(instruction, position)
        if instruction is last and is_call(instruction):
            _check_call(e, instruction, unsupported)
        elif not (instruction is last and _ends_segment(instruction)):
            _instruction(e, instruction, unsupported)
        e.tell(instruction)
    e.end_segment(flow.live_out[segment])
    if e.touched_memory:
        control.check_fault()
    if is_branch(last):
        (control.indexed if last.base == "brx" else control.branch)(segment, last)
    elif last.base in ("ret", "exit"):
        control.exit(segment, last)
    elif is_interruption(last) and last.index not in unsupported:
        if is_call(last):
            calls = Calls(control)
            calls.call(segment, last)
            calls.after(segment, last)
        else:
            barriers = Barriers(control)
            barriers.barrier(segment, last)
            barriers.after(segment, last)
        return True
    else:
        control.edge(segment + 1)
    return False


def _ends_segment(instruction: Instruction) -> bool:
    return is_branch(instruction) or instruction.base in ("ret", "exit") or is_interruption(instruction)


def _check_call(e: Emitter, instruction: Instruction, unsupported: dict[int, str]) -> None:
    """A call of something that cannot be called becomes a fault."""
    reason = not_callable(e.kernel, instruction)
    if reason:
        unsupported[instruction.index] = reason
        e.fault(Fault.UNSUPPORTED, e.exec)


def _prologue(e: Emitter, flow: Flow, segment: int, code: tuple[Instruction, ...]) -> None:
    """Give way when out of fuel or trace buffer; else count the segment and record it."""
    e.label(f"s{segment}")
    e.set_field("%w", Slot.RESUME, str(segment))
    fuel = e.field("%w", Slot.FUEL)
    stop = e.i64("icmp slt", fuel, 0)
    path = ""
    if e.traced:
        path = e.field("%w", Slot.PATH)
        stop = e.op(f"or i1 {stop}, {e.i64('icmp uge', path, e.field('%w', Slot.PATH_END))}")
        accesses = sum(is_traced(i) for i in code)
        if accesses:
            end = e.i64("add", e.field("%w", Slot.RECORD), RECORD_BYTES * accesses)
            stop = e.op(f"or i1 {stop}, {e.i64('icmp ugt', end, e.field('%w', Slot.RECORD_END))}")
    e.branch(stop, "pause", f"b{segment}")
    e.label(f"b{segment}")
    e.do(f"%m{segment} = load i32, ptr {e.op(f'getelementptr i64, ptr %w, i64 {int(Slot.MASK)}')}, align 8")
    waiting = flow.waiting
    e.set_field("%w", Slot.FUEL, e.i64("sub", fuel, WAIT_FUEL if waiting.heads[segment] else len(code)))
    if waiting.behind[segment]:
        e.set_field("%w", Slot.WAITS, "0")
    count = e.field("%w", Slot.COUNT)
    e.do(f"%count{segment} = add i64 {count}, 0")
    e.set_field("%w", Slot.COUNT, e.i64("add", count, len(code)))
    if e.traced:
        append_path(e, segment, f"%m{segment}", path, _repeats(flow, segment, code))


def _repeats(flow: Flow, segment: int, code: tuple[Instruction, ...]) -> bool:
    """Are runs of this segment in a row counted in one record? Of blocks, a path begins with the first segment. Where
    loops only wait, their turns are taken back from the path. Beside accesses the count, read again each turn, costs
    more than it saves."""
    loop = segment > 0 and segment in flow.successors[segment]
    return loop and not any(flow.waiting.only) and not any(map(is_memory, code))


def _instruction(e: Emitter, instruction: Instruction, unsupported: dict[int, str]) -> None:
    """Write one instruction; what is not executed yet becomes a fault in the lanes that reach it."""
    sites = len(e.sites)
    if e.deciding is not None and leave_out(e, instruction):
        return
    try:
        emit_instruction(e, instruction)
    except NOT_EXECUTED as error:
        reason = str(error) if isinstance(error, Unsupported) else "this form of it"
        unsupported[instruction.index] = reason
        e.fault(Fault.UNSUPPORTED, e.exec)
        if e.traced and is_traced(instruction) and len(e.sites) == sites:
            e.helper(("record_nobody",), "void", ("ptr", "%w"), ("i32", "0"))
        for register in instruction.writes:
            kind = e.kernel.registers[register].type
            if kind in ELEMENT:
                e.write(Reg(register), kind, "zeroinitializer")


@emits(ASSUMED)
def emit_assumed(e: Emitter, i: Instruction) -> None:
    """As `assumed.pretend`: predicates become true, other registers 0."""
    for register in i.writes:
        kind = e.kernel.registers[register].type
        element = ELEMENT[kind]
        e.write(Reg(register), kind, const(element, 1) if element == "i1" else "zeroinitializer")


@emits("trap", "brkpt")
def emit_trap(e: Emitter, i: Instruction) -> None:
    e.fault(Fault.TRAP, e.exec)
