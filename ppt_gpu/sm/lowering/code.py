"""The static side of a kernel on one GPU: machine operations, registers and access variants of every instruction.

How long `nanosleep` holds up a warp: the time that it names, where that is a constant.

PTX promises a sleep "approximately close to" that time, between none of it and twice as much (PTX ISA, nanosleep).
Kernels with decoupled look-back sleep so long before they look for what their predecessors have published. Sleeps in a
loop that only waits run as long as others make it wait; such turns are not in a trace.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.machine.code import MachineKernel
from ppt_gpu.machine.selection.warp_aggregated_atomics import counted_by_word, elections
from ppt_gpu.ptx.instructions import (
    access_bytes,
    access_kind,
    adds_floats,
    is_barrier,
    is_bulk,
    is_lane_copy,
    is_traced,
    memory_space,
    operation,
    vector_length,
)
from ppt_gpu.ptx.module import Imm, Instruction, Kernel, Mem, Neg, Operand, Part, Reg, Vec
from ppt_gpu.ptx.uses import writers_of
from ppt_gpu.sm.accesses.access import BY_L1, PAST_L1, STAYS, Variants
from ppt_gpu.sm.accesses.scoreboard import StaticCode
from ppt_gpu.sm.accesses.shapes import GLOBAL, LOCAL, SHARED
from ppt_gpu.sm.lowering.constants import (
    ConstantReads,
    constant_reads,
    one_word_after_another,
    words_of_constants,
)
from ppt_gpu.sm.lowering.events import Events, find_events
from ppt_gpu.sm.lowering.groups import copy_groups, product_groups
from ppt_gpu.sm.lowering.match import match_accesses
from ppt_gpu.sm.program.ops import OpTable, build_ops, in_space
from ppt_gpu.sm.program.program import (
    KIND_ATOMIC,
    KIND_BARRIER,
    KIND_BRANCH,
    KIND_COMPUTE,
    KIND_LOAD,
    RESULT_AT,
    operand_bits,
)
from ppt_gpu.spec.gpu import MEMORY_ACCESSES, MEMORY_SPACES, Gpu
from ppt_gpu.tasklist.expand import operations_of


def with_sleeps(ops: OpTable, kernel: Kernel, gpu: Gpu) -> OpTable:
    """The operations; those of `nanosleep` take as long as it says: nothing of the warp issues before that."""
    times = sleep_times(kernel)
    if not times:
        return ops
    latency, kind = ops.latency.copy(), ops.kind.copy()
    for pc, nanoseconds in times.items():
        mine = slice(ops.start[pc], ops.start[pc + 1])
        latency[mine] = np.maximum(latency[mine], round(nanoseconds * 1e-9 * gpu.sm.clock))
        kind[mine] = KIND_BRANCH
    return replace(ops, latency=latency, kind=kind)


def sleep_times(kernel: Kernel) -> dict[int, int]:
    """Nanoseconds of each `nanosleep` of the kernel whose time is a constant, by instruction."""
    sleeping = [pc for pc, instruction in enumerate(kernel.instructions) if instruction.base == "nanosleep"]
    if not sleeping:
        return {}
    ptx = kernel.ptx if isinstance(kernel, MachineKernel) else kernel  # there every register has its first writer
    origin = kernel.origin if isinstance(kernel, MachineKernel) else range(len(kernel.instructions))
    writers = writers_of(ptx.instructions)
    times = {pc: _constant(ptx.instructions[origin[pc]], writers) for pc in sleeping}
    return {pc: time for pc, time in times.items() if time is not None}


def _constant(instruction: Instruction, writers: Mapping[int, Sequence[Instruction]]) -> int | None:
    operand = instruction.operands[0]
    sources = [operand]
    if isinstance(operand, Reg):
        sources = [i.operands[1] for i in writers.get(operand.id, ()) if i.base == "mov" and i.guard is None]
        if len(sources) != len(writers.get(operand.id, ())):
            return None
    values = {source.value for source in sources if isinstance(source, Imm)}
    if len(values) != 1 or not all(isinstance(source, Imm) for source in sources):
        return None
    return int(values.pop())


_SPACES = (GLOBAL, SHARED, LOCAL)
NOBODY, ANY, ALL = range(3)
_DIGITS = re.compile(r"\d+")


def operands_in_banks(instruction: Instruction, kernel: Kernel, banks: int) -> int:
    """Program.op_operands: registers by the number in their name, each number once, those of addresses too."""
    found = _number(kernel, instruction.writes[0]) % banks + 1 << RESULT_AT if instruction.writes else 0
    for number in sorted({_number(kernel, register) for register in register_operands(instruction)}):
        place, most = number % banks * operand_bits(banks), (1 << operand_bits(banks)) - 1
        found += 1 << place if found >> place & most < most else 0
    return found


def _number(kernel: Kernel, register: int) -> int:
    digits = _DIGITS.search(kernel.registers[register].name)
    return int(digits.group()) if digits else 0


def register_operands(instruction: Instruction) -> set[int]:
    """Ids of the registers that the instruction reads as operands or for an address: not its guard."""
    return _read(instruction.operands[1 if instruction.writes else 0 :])


def _read(operands: Sequence[Operand | None]) -> set[int]:
    """Ids of the registers among operands, in addresses and in vectors of them."""
    found: set[int] = set()
    for operand in operands:
        if isinstance(operand, Reg):
            found.add(operand.id)
        elif isinstance(operand, Neg | Part):
            found.add(operand.reg.id)
        elif isinstance(operand, Vec):
            found |= _read(operand.items)
        elif isinstance(operand, Mem):
            found |= _read([operand.base])
    return found


@dataclass(frozen=True)
class Code:
    """I instructions, V variants."""

    ops: OpTable
    static: StaticCode
    traced: NDArray[np.bool_]  # [I] a functional run records its accesses
    memory_operations: NDArray[np.int32]  # [I] machine operations with a memory entry
    variants: Variants
    variant_of: NDArray[np.int32]  # [I, spaces] variant of an instruction that went to a space; -1: none
    events: Events | None
    unheard: str  # why warps do not wait at mbarriers although the kernel has some; else empty
    op_event: NDArray[np.int8]  # [O] EVENT_*; empty without events
    op_copies: NDArray[np.bool_]  # [O] loads that the copy engine does; empty: none
    op_posted: NDArray[np.bool_]  # [O] atomics of which nobody wants a result back; empty: none
    constants: ConstantReads | None  # None: the SM's cache holds all that are read
    elected: NDArray[np.int8]  # [I] NOBODY, or when one lane does an atomic for its warp: ANY lanes, ALL of them active


def lower_code(kernel: Kernel, trace: Trace, gpu: Gpu, events_of_warps: int = 0) -> Code:
    """Everything about the kernel's instructions that does not depend on a warp.

    The trace decides which space a generic access goes to: global if any execution of it does. events_of_warps: of
    blocks of so many warps, find who waits for whom; 0: do not.
    Raises PptError for an operation that the ISA or the GPU lacks.
    """
    instructions = kernel.instructions
    traced = np.array([is_traced(instruction) for instruction in instructions], np.bool_)
    space = _resolved_spaces(instructions, traced, trace)
    chains, kinds = [], {}
    for pc, instruction in enumerate(instructions):
        names = operations_of(kernel, pc, gpu.isa)
        chains.append(_placed(names, int(space[pc])))
        if operation(instruction) == "barrier" and not is_barrier(instruction):
            kinds[pc] = KIND_COMPUTE
    ops = build_ops(
        chains,
        gpu,
        operands=[operands_in_banks(instruction, kernel, gpu.collectors.banks) for instruction in instructions],
        kinds=kinds,
    )
    ops, reads = with_sleeps(ops, kernel, gpu), None
    if not gpu.memory.constant_queued:
        reads = constant_reads(kernel, trace, traced, ops, gpu)
        ops = one_word_after_another(ops, words_of_constants(kernel, trace, traced), reads)
    variants, variant_of = _variants(instructions, counted_by_word(instructions) if gpu.shared.counts_lanes else set())
    op_event = np.zeros(0, np.int8)
    found = find_events(kernel, trace, events_of_warps, np.diff(ops.start), traced) if events_of_warps else None
    events = found if isinstance(found, Events) else None
    if events is not None:
        ops, op_event = _with_events(ops, events)
    return Code(
        ops=ops,
        static=_static(kernel, ops, events is not None, bool(gpu.collectors.units)),
        events=events,
        unheard=found if isinstance(found, str) else "",
        op_event=op_event,
        op_copies=_copies(kernel, ops),
        op_posted=_posted(kernel, ops),
        traced=traced,
        memory_operations=np.bincount(ops.pc[ops.recorded], minlength=len(instructions)).astype(np.int32),
        variants=variants,
        variant_of=variant_of,
        constants=reads,
        elected=_elected(kernel, gpu),
    )


def _copies(kernel: Kernel, ops: OpTable) -> NDArray[np.bool_]:
    bulk = np.array([is_bulk(instruction) for instruction in kernel.instructions], np.bool_)
    if not bulk.any():
        return np.zeros(0, np.bool_)
    return np.repeat(bulk, np.diff(ops.start)) & (ops.kind == KIND_LOAD)


def _posted(kernel: Kernel, ops: OpTable) -> NDArray[np.bool_]:
    atomic = [access_kind(instruction) == "atomic" for instruction in kernel.instructions]
    if not any(atomic):
        return np.zeros(0, np.bool_)
    read = {register for instruction in kernel.instructions for register in instruction.reads}
    alone = [each and read.isdisjoint(i.writes) for each, i in zip(atomic, kernel.instructions, strict=True)]
    return np.repeat(alone, np.diff(ops.start)) & (ops.kind == KIND_ATOMIC)


def _with_events(ops: OpTable, events: Events) -> tuple[OpTable, NDArray[np.int8]]:
    """The operations, and EVENT_* of each: of an access its last, of others the last of the instruction."""
    kind, found = ops.kind.copy(), np.zeros(len(ops.kind), np.int8)
    for pc in np.flatnonzero(events.bits).tolist():
        mine = np.arange(ops.start[pc], ops.start[pc + 1])
        moves = mine[ops.recorded[mine]]
        if len(moves):
            found[moves[-1]] = events.bits[pc]
            continue
        kind[mine] = np.where(kind[mine] == KIND_BARRIER, KIND_COMPUTE, kind[mine])
        kind[mine[-1]], found[mine[-1]] = KIND_BARRIER, events.bits[pc]
    return replace(ops, kind=kind), found


def _elected(kernel: Kernel, gpu: Gpu) -> NDArray[np.int8]:
    if not isinstance(kernel, MachineKernel):
        return np.zeros(len(kernel.instructions), np.int8)
    found = np.zeros(len(kernel.instructions), np.int8)
    redux = "shuffle.redux" in gpu.isa.unnamed.get("reduce", ())
    for index, election in elections(kernel.ptx).items():
        found[index] = ALL if election.needs_all(redux) else ANY
    return found[np.array(kernel.origin, np.int64)]


def _resolved_spaces(
    instructions: tuple[Instruction, ...], traced: NDArray[np.bool_], trace: Trace
) -> NDArray[np.int64]:
    """[I] where generic accesses went: the first of global, shared, local that any did. -1: not generic, not run."""
    generic = np.array([memory_space(instruction) == "generic" for instruction in instructions], np.bool_) & traced
    seen = np.zeros((len(instructions), len(MEMORY_SPACES)), np.bool_)
    if generic.any():
        entries = match_accesses(trace, traced, traced.astype(np.int32))
        seen[entries.pc, trace.access_space[entries.access]] = True
    return np.where(generic & seen.any(axis=1), seen.argmax(axis=1), -1)


def _placed(names: tuple[str, ...], space: int) -> tuple[str, ...]:
    """Operations with a memory space that machines have; `space` is where generic accesses went."""
    generic = MEMORY_SPACES[space] if space >= 0 else "global"
    return tuple(_place(name, generic, space >= 0) for name in names)


def _place(name: str, generic: str, moved: bool) -> str:
    """Parameters come from the constant cache, textures from global memory (call arguments move in registers)."""
    access, _, rest = name.partition(".")
    space = rest.partition(".")[0]
    if access not in MEMORY_ACCESSES:
        return name
    if space == "param":
        return in_space(name, "constant") if access == "load" else "int32.mov"
    if space == "texture":
        return in_space(name, "global")
    return in_space(name, generic) if space == "generic" or (moved and space in ("global", "shared")) else name


def _static(kernel: Kernel, ops: OpTable, events: bool, held: bool) -> StaticCode:
    """`held`: between issue and start instructions may be held up."""
    reads = [instruction.reads for instruction in kernel.instructions]
    writes = [instruction.writes for instruction in kernel.instructions]
    return StaticCode(
        registers=len(kernel.registers),
        read_start=np.cumsum([0, *map(len, reads)], dtype=np.int32),
        reads=np.array([r for row in reads for r in row], np.int32),
        write_start=np.cumsum([0, *map(len, writes)], dtype=np.int32),
        writes=np.array([r for row in writes for r in row], np.int32),
        guarded=np.array([instruction.guard is not None for instruction in kernel.instructions], np.bool_),
        chain_start=ops.start,
        op_fixed=np.full_like(ops.fixed, -1) if held else ops.fixed,
        op_value=ops.value,
        op_fence=ops.fence,
        groups=copy_groups(kernel, events),
        products=product_groups(kernel),
        checks_writes=held,
    )


def _variants(instructions: tuple[Instruction, ...], counted: Collection[int]) -> tuple[Variants, NDArray[np.int32]]:
    """counted: instructions that update each word once, however many lanes name it."""
    table: dict[tuple[int, int, bool, bool, int, bool, int], int] = {}
    variant_of = np.full((len(instructions), len(MEMORY_SPACES)), -1, np.int32)
    for pc, instruction in enumerate(instructions):
        if is_traced(instruction):
            kind = access_kind(instruction)
            for space in _SPACES:
                alone = kind == "atomic" and pc not in counted
                onward = _onward(instruction) if space == GLOBAL else STAYS
                floats = alone and adds_floats(instruction)
                size = max(1, access_bytes(instruction))
                key = (space, size, kind == "load", alone, onward, floats, size // vector_length(instruction))
                variant_of[pc, space] = table.setdefault(key, len(table))
    rows = list(table)
    return Variants(
        space=np.array([row[0] for row in rows], np.int8),
        size=np.array([row[1] for row in rows], np.int32),
        load=np.array([row[2] for row in rows], np.bool_),
        atomic=np.array([row[3] for row in rows], np.bool_),
        onward=np.array([row[4] for row in rows], np.int8),
        floats=np.array([row[5] for row in rows], np.bool_) if any(row[5] for row in rows) else None,
        word=np.array([row[6] for row in rows], np.int32),
    ), variant_of


def _onward(instruction: Instruction) -> int:
    """Whether what it loads goes on to shared memory, as in `Variants`."""
    if not is_lane_copy(instruction):
        return STAYS
    return PAST_L1 if "cg" in instruction.modifiers else BY_L1


def of_ptx(kernel: Kernel, pc: NDArray[np.int32]) -> NDArray[np.int32]:
    """Instructions of the PTX from which those at `pc` were made."""
    return np.array(kernel.origin, np.int32)[pc] if isinstance(kernel, MachineKernel) else pc
