"""Loops as the compiler of machine code unrolls them: how often each runs, and how many iterations become one.

The limits are those of ptxas 13.0, found with generated loops of 1 to 200 multiply-adds and loads, with known and
unknown numbers of iterations, alone and within another loop. Where the number is not known it must be one that can be
computed before the loop: a register that grows by a constant is compared with what does not change (`is_counted`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.machine.analysis.values import Value, Values, is_pure
from ppt_gpu.ptx.cfg import ControlFlow
from ppt_gpu.ptx.instructions import (
    access_kind,
    copied,
    is_barrier,
    is_branch,
    loads_launch_parameter,
    memory_space,
)
from ppt_gpu.ptx.module import Imm, Instruction, Kernel, Operand, Reg

#: instructions that a loop may become when it is unrolled whole, and of a short body
WHOLE, WHOLE_SHORT = 400, 660
SHORT = 20
#: within another loop it may become the more of them the more accesses to shared memory or constants it makes: T with
#: T (T - WITHIN) <= SAVED (accesses of the body + LOOPING) (iterations + 1), as if each access saved so much of T. This
#: tells 194 of 199 loops of CLTune's xgemm, and 65 of 82 generated ones, the others by a tenth of T or less
WITHIN, SAVED, LOOPING = 350, 21000, 0.2
#: and when some of a known number of iterations become one
SOME = 280
#: Where their number is not known, what one iteration may be without the loop's own instructions, accesses to memory
#: counted twice: with a load from global memory; else, and how much more for each load from shared memory or constants
LOADING, COMPUTING, SHARING = 46, 18, 5
UNROLLED = 4  # iterations that become one, where their number is not known
MOST_TRIPS = 1024
#: ptxas unrolls no loop that has one
_NOT_COPIED = ("membar", "fence", "shfl", "vote", "redux", "match")
NEAR, _FAR = frozenset(("shared", "constant")), frozenset(("global", "generic", "local"))  # spaces
_DEEPEST = 16  # blocks in a row that are searched for the value that a loop begins with


def trips(kernel: Kernel, flow: ControlFlow, body: Sequence[int]) -> int | None:
    """How often the blocks `body`, which follow one another, run when control comes to them from outside.

    The last one ends with a branch to the first. None: not known, or more than MOST_TRIPS.
    """
    code = [instruction for block in body for instruction in kernel.instructions[_span(flow, block)]]
    last = code[-1]
    if last.guard is None or any(is_branch(instruction) for instruction in code[:-1] if instruction.guard is not None):
        return None
    wanted, chain = {last.guard.reg}, []
    needed = wanted | _slice(code, wanted)
    chain = [instruction for instruction in code if needed.intersection(instruction.writes)]
    if any(instruction.guard is not None or not is_pure(instruction) for instruction in chain):
        return None
    values, head = Values(), body[0]
    outside = [p for p in range(len(flow.successors)) if head in flow.successors[p] and p not in body]
    for register in {r for instruction in chain for r in instruction.reads}:
        known = _constant(kernel, flow, outside, register)
        if known is not None:
            values.of[register] = known
    for count in range(1, MOST_TRIPS + 1):
        for instruction in chain:
            values.run(instruction)
        again = values.of[last.guard.reg].known
        if again is None:
            return None
        if bool(again) == last.guard.negated:
            return count
    return None


def is_counted(kernel: Kernel, flow: ControlFlow, body: Sequence[int]) -> bool:
    """Can the number of iterations of the blocks `body` be computed before the loop, at little cost?

    So it is where the last branch depends on one comparison of a register that each iteration moves by the same
    constant with a value that no iteration changes. ptxas unrolls no loop whose step is a register, that halves its
    counter, or that has a second condition; loads, stores and atomics in the body do not matter to it. With a barrier
    in the body all threads must run as often, which it sees only where the other value is a parameter or a constant.
    """
    code = [instruction for block in body for instruction in kernel.instructions[_span(flow, block)]]
    guard = code[-1].guard
    tests = [] if guard is None else [instruction for instruction in code if guard.reg in instruction.writes]
    if not tests or tests[-1].base != "setp" or len(tests[-1].modifiers) != 2 or tests[-1].guard is not None:
        return False
    values, test = Values(), tests[-1]
    written = {register for instruction in code for register in instruction.writes}
    compared: list[Value | None] = []
    for instruction in code:
        if instruction is test:
            bits = int(test.modifiers[-1][1:]) if test.modifiers[-1][0] in "usb" else 0
            compared = [values.operand(operand, bits) if bits else None for operand in test.operands[1:]]
        values.run(instruction)
    moved = [value is not None and _is_moved(values, value, written) for value in compared]
    fixed = [value is not None and _is_fixed(values, value, written) for value in compared]
    if any(map(is_barrier, code)):
        same = [_is_same_in_all_threads(kernel, operand) for operand in test.operands[1:]]
        fixed = [known and alike for known, alike in zip(fixed, same, strict=True)]
    return len(compared) == 2 and ((moved[0] and fixed[1]) or (moved[1] and fixed[0]))


def _is_same_in_all_threads(kernel: Kernel, operand: Operand) -> bool:
    """Is it a constant or a parameter, as it is?"""
    if not isinstance(operand, Reg):
        return isinstance(operand, Imm)
    writers = [_original(kernel, each) for each in kernel.instructions if operand.id in each.writes]
    if len(writers) != 1:
        return False
    first = writers[0].operands[1] if len(writers[0].operands) > 1 else None
    return loads_launch_parameter(kernel, writers[0]) or (writers[0].base == "mov" and isinstance(first, Imm))


def _is_moved(values: Values, value: Value, written: set[int]) -> bool:
    """Is it a register's value at the start of an iteration and a constant, and the register moved by a constant?"""
    if len(value.terms) != 1 or value.terms[0][1] != 1:
        return False
    register = values.at_start(value.terms[0][0])
    if register is None or register not in written:
        return False
    after = values.of[register]
    return after.terms == value.terms and after.constant != 0


def _is_fixed(values: Values, value: Value, written: set[int]) -> bool:
    """Is it made of registers alone that no iteration writes?"""
    starts = [values.at_start(unknown) for unknown, _ in value.terms]
    return all(register is not None and register not in written for register in starts)


def is_copied(instruction: Instruction) -> bool:
    """May the instruction be in a loop that is unrolled, where it does not branch within?

    Fences and what lanes of a warp do together may not, but for matrix products and barriers of the block; not even in
    loops of four iterations.
    """
    return instruction.base not in _NOT_COPIED and not instruction.opcode.startswith("bar.warp")


def factor(size: int, count: int, within: int | None) -> int:
    """How many iterations of a loop of `size` instructions become one; `count` are known to run.

    within: where the loop lies in another one, the accesses of its body to shared memory and constants.
    """
    whole = size * count
    if whole <= (WHOLE_SHORT if size <= SHORT else WHOLE):
        return count
    if within is not None and whole * (whole - WITHIN) <= SAVED * (within + LOOPING) * (count + 1):
        return count
    most = SOME // size
    return max((n for n in range(UNROLLED, most + 1) if count % n == 0), default=1)


def factor_unknown(size: int, code: Sequence[Instruction]) -> int:
    """How many iterations of a loop become one where nobody knows how often it runs.

    code, size: the PTX of an iteration and how many machine instructions that is. The comparison and the branch at its
    end are not there again, nor are sums of a register and a constant that the next iteration finds in it: they become
    offsets.
    """
    size -= 2 + sum(map(_moves_on, code))
    spaces = [memory_space(each) for each in code]
    loads = [space for space, each in zip(spaces, code, strict=True) if access_kind(each) == "load"]
    twice = size + sum(space in _FAR | NEAR for space in spaces)
    near = sum(space in NEAR for space in loads)
    fits = twice <= COMPUTING + SHARING * near or (twice <= LOADING and not _FAR.isdisjoint(loads))
    return UNROLLED if fits and size <= SOME // UNROLLED else 1


def _moves_on(instruction: Instruction) -> bool:
    """Does it add a constant to an integer, and leave the sum in the same register?"""
    adds = instruction.base in ("add", "sub") and instruction.modifiers[-1][0] in "usb"
    numbers = any(isinstance(operand, Imm) for operand in instruction.operands)
    return adds and numbers and set(instruction.writes) <= set(instruction.reads)


def _original(kernel: Kernel, copy: Instruction) -> Instruction:
    """What writes the value that a copy of a register written once copies; other instructions are their own."""
    source = copied(copy) if copy.guard is None else None
    if not isinstance(source, Reg):
        return copy
    writers = [instruction for instruction in kernel.instructions if source.id in instruction.writes]
    return writers[0] if len(writers) == 1 else copy


def _span(flow: ControlFlow, block: int) -> slice:
    return slice(flow.block_start[block], flow.block_end[block])


def _slice(code: Sequence[Instruction], wanted: set[int]) -> set[int]:
    """The registers that those `wanted` are made from, iteration after iteration."""
    found = set(wanted)
    size = -1
    while len(found) != size:
        size = len(found)
        for instruction in code:
            if found.intersection(instruction.writes):
                found.update(instruction.reads)
    return found


def _constant(kernel: Kernel, flow: ControlFlow, blocks: Sequence[int], register: int) -> Value | None:
    """The number that `register` holds at the end of all `blocks`."""
    found: set[Value] = set()
    waiting, seen = list(blocks), set(blocks)
    while waiting:
        block = waiting.pop()
        writer = next(
            (i for i in reversed(kernel.instructions[_span(flow, block)]) if register in i.writes),
            None,
        )
        if writer is None:
            before = [p for p in range(len(flow.successors)) if block in flow.successors[p] and p not in seen]
            if len(seen) + len(before) > _DEEPEST or (block == 0 and not before):
                return None
            seen.update(before)
            waiting += before
            continue
        value = Values().result(_original(kernel, writer))
        if value is None or value.known is None:
            return None
        found.add(value)
    return found.pop() if len(found) == 1 else None
