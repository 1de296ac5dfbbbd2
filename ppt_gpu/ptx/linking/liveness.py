"""Registers a kernel needs per thread, estimated from the liveness of its PTX registers.

ptxas decides the real number: it schedules loads early, fuses, and keeps addresses and constants out of registers. The
estimate counts 32-bit registers live at once, without values that the machine code reads from the constant bank, and
rounds up to the unit in which registers are allocated, because ptxas has no reason to use fewer. Against ptxas 13.0
it is close for kernels that need many registers and low for those that need few, where occupancy does not depend on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from ppt_gpu.ptx.cfg import ControlFlow, control_flow
from ppt_gpu.ptx.instructions import form, is_call, loads_launch_parameter
from ppt_gpu.ptx.linking.linked import LinkedKernel
from ppt_gpu.ptx.module import TYPE_BYTES, Guard, Imm, Instruction, Kernel, Sym

#: registers are allocated to a warp in units of 256, 8 a thread (compute capability 3.5 and later)
ALLOCATION_UNIT = 8
MOST_REGISTERS = 255
#: beside the live values: the stack pointer (R1), and one for the result of the instruction in flight
EXTRA_REGISTERS = 2
#: a kernel that calls functions has at least these, R0 to R23 being the caller's in the ABI
CALL_REGISTERS = 24


def members(live: int) -> Iterator[int]:
    """The registers of a bit set, in order, in time linear in its width: large kernels have ten thousands."""
    bits = bin(live)[:1:-1]
    register = bits.find("1")
    while register >= 0:
        yield register
        register = bits.find("1", register + 1)


def register_weights(kernel: Kernel) -> list[int]:
    """32-bit registers that each PTX register takes: predicates 0, 64-bit values 2, 128-bit values 4.

    Values that ptxas reads from the constant bank or writes into the instruction take none: kernel parameters,
    generic addresses made from them, literals and addresses of variables, where that is the register's only value.
    """
    weights = [0 if r.type == "pred" else max(1, TYPE_BYTES[r.type] // 4) for r in kernel.registers]
    writers: list[list[Instruction]] = [[] for _ in weights]
    for instruction in kernel.instructions:
        for register in instruction.writes:
            writers[register].append(instruction)
    if not kernel.is_entry:
        return weights
    for instruction in kernel.instructions:
        if _is_constant(kernel, instruction, writers, weights):
            for register in instruction.writes:
                if len(writers[register]) == 1:
                    weights[register] = 0
    return weights


def _is_constant(
    kernel: Kernel, instruction: Instruction, writers: list[list[Instruction]], weights: list[int]
) -> bool:
    known = form(instruction.opcode)
    if known.base == "ld":
        return loads_launch_parameter(kernel, instruction) and not any(_reads_beside_guard(instruction))
    if known.base == "mov" and len(instruction.operands) == 2:
        return isinstance(instruction.operands[1], Imm | Sym)
    if known.base == "cvta":
        return all(weights[register] == 0 and len(writers[register]) == 1 for register in instruction.reads)
    return False


def _reads_beside_guard(instruction: Instruction) -> tuple[int, ...]:
    guard = instruction.guard
    return tuple(r for r in instruction.reads if guard is None or r != guard.reg)


class Needs:
    """The registers that are needed at a place of straight-line code, which is walked from its end.

    A register that is read under a guard only is needed by lanes under that guard, so a write under the same guard is
    where it begins; one read by all begins with two writes under opposite guards.
    """

    def __init__(self, live: int = 0) -> None:
        """live: bit set of the registers that are read behind the code."""
        self.lanes: dict[int, Guard | None] = dict.fromkeys(members(live))

    def written(self, instruction: Instruction) -> list[int]:
        """Go on to before the instruction's writes; the registers that are not needed there any more."""
        guard, gone = instruction.guard, []
        for register in instruction.writes:
            if register in self.lanes:
                lanes = self.lanes[register]
                if guard is None or lanes == guard:
                    del self.lanes[register]
                    gone.append(register)
                elif lanes is None:
                    self.lanes[register] = Guard(guard.reg, not guard.negated)
        for register, lanes in self.lanes.items():
            if lanes is not None and lanes.reg in instruction.writes:  # before, the guard says something else
                self.lanes[register] = None
        return gone

    def read(self, instruction: Instruction) -> list[int]:
        """Go on to before the instruction's reads; the registers that are needed there and were not."""
        guard, more = instruction.guard, []
        for register in instruction.reads:
            lanes = None if guard is None or register == guard.reg else guard
            if register not in self.lanes:
                self.lanes[register] = lanes
                more.append(register)
            elif self.lanes[register] != lanes:
                self.lanes[register] = None
        return more


def needed_before(code: Sequence[Instruction], live: int) -> set[int]:
    """The registers that straight-line code finds and needs, or leaves to what reads the bit set `live` behind it."""
    needs = Needs(live)
    for instruction in reversed(code):
        needs.written(instruction)
        needs.read(instruction)
    return set(needs.lanes)


def _block_sets(kernel: Kernel, flow: ControlFlow, block: int) -> tuple[int, int]:
    """(registers read before they are written, registers surely written) as bit sets."""
    code = kernel.instructions[flow.block_start[block] : flow.block_end[block]]
    written = {register for instruction in code if instruction.guard is None for register in instruction.writes}
    return sum(1 << r for r in needed_before(code, 0)), sum(1 << r for r in written)


def live_out(kernel: Kernel, flow: ControlFlow) -> list[int]:
    """Registers live at the end of each block, as bit sets."""
    blocks = len(flow.block_start)
    sets = [_block_sets(kernel, flow, block) for block in range(blocks)]
    live_in = [0] * (blocks + 1)
    out = [0] * blocks
    predecessors: list[list[int]] = [[] for _ in range(blocks + 1)]
    for block, following in enumerate(flow.successors):
        for successor in following:
            predecessors[successor].append(block)
    waiting = list(range(blocks))
    queued = [True] * blocks
    while waiting:
        block = waiting.pop()
        queued[block] = False
        live = 0
        for successor in flow.successors[block]:
            live |= live_in[successor]
        out[block] = live
        used, defined = sets[block]
        before = used | (live & ~defined)
        if before != live_in[block]:
            live_in[block] = before
            for predecessor in predecessors[block]:
                if not queued[predecessor]:
                    queued[predecessor] = True
                    waiting.append(predecessor)
    return out


def live_across(kernel: Kernel, indices: Collection[int]) -> dict[int, set[int]]:
    """The registers that live across each of the instructions: needed behind it, and not written by it."""
    flow = control_flow(kernel)
    wanted, found = set(indices), {}
    for block, live in enumerate(live_out(kernel, flow)):
        inside = range(flow.block_start[block], flow.block_end[block])
        if wanted.isdisjoint(inside):
            continue
        needs = Needs(live)
        for index in reversed(inside):
            instruction = kernel.instructions[index]
            if index in wanted:
                found[index] = set(needs.lanes).difference(instruction.writes)
            needs.written(instruction)
            needs.read(instruction)
    return {index: found[index] for index in indices if index in found}


def most_live(kernel: Kernel) -> int:
    """The largest number of 32-bit registers live at once; with linked functions, over every chain of calls."""
    if isinstance(kernel, LinkedKernel) and kernel.calls:
        return _most_live_linked(kernel)
    return _most_live(kernel, control_flow(kernel), range(len(kernel.instructions)), register_weights(kernel), {})


def _most_live_linked(kernel: LinkedKernel) -> int:
    """A caller's live registers stay beside what its callees need; a recursive call keeps its own on the stack."""
    flow, weights = control_flow(kernel), register_weights(kernel)
    needs: dict[str, int] = {}

    def need(first: int, end: int, chain: tuple[str, ...]) -> int:
        deeper = {}
        for index, call in kernel.calls.items():
            if first <= index < end:
                callees = [kernel.functions[c] for c in call.callees if c not in chain]
                for f in callees:
                    if f.name not in needs:
                        needs[f.name] = need(f.entry, f.end, (*chain, f.name)) if f.has_body else 0
                deeper[index] = max((needs[f.name] for f in callees), default=0)
        return _most_live(kernel, flow, range(first, end), weights, deeper)

    return need(0, kernel.own_end, ())


def _most_live(kernel: Kernel, flow: ControlFlow, inside: range, weights: list[int], deeper: Mapping[int, int]) -> int:
    """The most 32-bit registers live at once in the instructions `inside`; `deeper`: what calls need beside them."""
    most = 0
    for block, live in enumerate(live_out(kernel, flow)):
        if flow.block_start[block] in inside:
            code = kernel.instructions[flow.block_start[block] : flow.block_end[block]]
            most = max(most, most_live_in(code, live, weights, deeper))
    return most


def most_live_in(
    code: Sequence[Instruction], live: int, weights: Sequence[int], deeper: Mapping[int, int] = MappingProxyType({})
) -> int:
    """The most 32-bit registers live at once in straight-line code behind which the bit set `live` is read.

    weights: 32-bit registers of each; deeper: by index of an instruction, what it needs beside those.
    """
    needs = Needs(live)
    most = count = sum(weights[register] for register in needs.lanes)
    for instruction in reversed(code):
        written = sum(weights[register] for register in instruction.writes if register not in needs.lanes)
        most = max(most, count + written)  # a result nobody reads still needs a place
        count -= sum(weights[register] for register in needs.written(instruction))
        most = max(most, count + deeper.get(instruction.index, 0))
        count += sum(weights[register] for register in needs.read(instruction))
        most = max(most, count)
    return most


def estimate_registers(kernel: Kernel) -> int:
    """Registers per thread, a multiple of 8 unless the kernel's .maxnreg or the limit of 255 is lower."""
    return as_allocated(kernel, most_live(kernel))


def as_allocated(kernel: Kernel, live: int) -> int:
    """Registers per thread of a kernel that has so many 32-bit registers live at once."""
    needed = live + EXTRA_REGISTERS
    if any(is_call(instruction) for instruction in kernel.instructions):  # whatever is called, if it is not linked
        needed = max(needed, CALL_REGISTERS)
    return min(allocated(needed), most_allowed(kernel))


def allocated(registers: int) -> int:
    """Registers per thread as they are allocated."""
    return -(-registers // ALLOCATION_UNIT) * ALLOCATION_UNIT


def most_allowed(kernel: Kernel) -> int:
    """Registers per thread that the kernel's .maxnreg allows, or the limit of 255."""
    return min(kernel.directives.get("maxnreg", (0,))[0] or MOST_REGISTERS, MOST_REGISTERS)
