"""Loops in which threads wait for others: found in the code, so that a warp gives way before it spins for long.

A loop that only waits reads memory, changes nothing and carries no register from one turn to the next: while nobody
else writes, its next turn is like the last. Other loops that read memory may wait, too, but do something beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ppt_gpu.ptx.instructions import form
from ppt_gpu.ptx.module import Imm, Instruction, Kernel, Reg, Special
from ppt_gpu.ptx.uses import writers_of

SPIN_ATOMIC, SPIN_READ = 1, 64  # turns in a loop with atomics, or one that only reads memory
#: atomics that leave memory alone when they are repeated
_IDEMPOTENT = frozenset(("cas", "exch", "and", "or", "min", "max"))
#: what else keeps a loop from only waiting
_ACTIONS = frozenset(
    ("st", "red", "call", "bar", "barrier", "cp", "mma", "wmma", "wgmma", "tcgen05", "stmatrix", "sust", "sured",
     "multimem", "trap", "brkpt", "alloca", "stackrestore", "setmaxnreg", "griddepcontrol")
)  # fmt: skip
_MASKED = frozenset(("shfl", "vote", "match", "redux", "elect"))  # their last operand names lanes
_ALL_LANES = (-1, 0xFFFFFFFF)
_CLOCKS = ("clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi")
_TESTS = frozenset(("test_wait", "try_wait"))


@dataclass(frozen=True)
class Waiting:
    """By segment."""

    spins: tuple[int, ...]  # turns after which the lanes of a divergent warp are taken to wait for others; 0: never
    only: tuple[bool, ...]  # part of a loop that only waits
    tests: tuple[bool, ...]  # such a loop tests an mbarrier, whose phase other warps complete
    heads: tuple[bool, ...]  # such a loop begins its next turn here
    behind: tuple[bool, ...]  # control comes here from such a loop
    meets: tuple[bool, ...]  # whoever goes on here comes to where the whole warp meets, and does nothing before it


def waiting_loops(
    kernel: Kernel, bounds: Sequence[int], successors: Sequence[Sequence[int]], live_in: Sequence[int]
) -> Waiting:
    """Find the loops of the segments that begin at `bounds`; `live_in` are bit sets of registers."""
    spins, waiting_loop = [0] * len(successors), [-1] * len(successors)
    tests = [False] * len(successors)
    todo = loops(range(len(successors)), successors)
    outermost = len(todo)
    for number, loop in enumerate(todo):
        code = [i for s in sorted(loop) for i in kernel.instructions[bounds[s] : bounds[s + 1]]]
        limit = min((t for t in map(_turns, code) if t), default=0)
        waits = limit > 0 and _only_waits(code, loop, successors, live_in)
        for s in loop:
            if number < outermost:
                spins[s] = limit
            if waits:
                spins[s], waiting_loop[s], tests[s] = 1, number, any(map(tests_mbarrier, code))
        if limit and not waits:  # perhaps a loop in it
            head = min(
                (t for s in range(len(successors)) if s not in loop for t in successors[s] if t in loop), default=-1
            )
            todo += loops(sorted(loop - {head if head >= 0 else min(loop)}), successors)
    heads, behind = [False] * len(successors), [False] * len(successors)
    for s, following in enumerate(successors):
        for t in following:
            if waiting_loop[s] < 0:
                continue
            if waiting_loop[s] != waiting_loop[t]:
                behind[t] = True
            elif t <= s:
                heads[t] = True
    for s in range(len(successors)):
        if behind[s] and waiting_loop[s] < 0:  # whoever comes here has what it waited for
            spins[s] = 0
    writers = writers_of(kernel.instructions)
    meets = [_meets(kernel, writers, bounds, successors, s) for s in range(len(successors))]
    only = tuple(number >= 0 for number in waiting_loop)
    return Waiting(tuple(spins), only, tuple(tests), tuple(heads), tuple(behind), tuple(meets))


def _meets(
    kernel: Kernel,
    writers: Mapping[int, Sequence[Instruction]],
    bounds: Sequence[int],
    successors: Sequence[Sequence[int]],
    segment: int,
) -> bool:
    """Does who goes on here change nothing before a barrier of the block, or what takes all lanes of the warp?

    Whichever way it goes; on some it may end, or wait.
    """
    seen: set[int] = set()
    todo, meets = [segment], False
    while todo:
        here = todo.pop()
        if here in seen:
            continue
        seen.add(here)
        code = kernel.instructions[bounds[here] : bounds[here + 1]]
        for place, instruction in enumerate(code):
            if _takes_all_lanes(instruction, writers):
                meets = True
                break
            if _ends_at_barrier(instruction):
                if any(map(_turns, code[:place])):
                    return False
                meets = True
                break
            if _acts(instruction):
                return False
        else:
            todo += successors[here]
    return meets


def _ends_at_barrier(instruction: Instruction) -> bool:
    """Do all warps of the block wait here?"""
    apart = {"warp", "cluster", "arrive"} & set(instruction.modifiers)
    return instruction.base in ("bar", "barrier") and instruction.guard is None and not apart


def _takes_all_lanes(instruction: Instruction, writers: Mapping[int, Sequence[Instruction]]) -> bool:
    """Shuffles, votes and the like of the whole warp, and what is done by all of its lanes together."""
    if "sync" not in instruction.modifiers or instruction.base in ("bar", "barrier"):
        return False
    if "aligned" in instruction.modifiers:
        return True
    mask = instruction.operands[-1] if instruction.base in _MASKED and instruction.operands else None
    made = writers.get(mask.id, ()) if isinstance(mask, Reg) else ()
    sources = [i.operands[-1] if i.base == "mov" else None for i in made] if made else [mask]
    return all(isinstance(source, Imm) and source.value in _ALL_LANES for source in sources)


def loops(nodes: Sequence[int], successors: Sequence[Sequence[int]]) -> list[frozenset[int]]:
    """The strongly connected parts of the graph of `nodes` that have an edge, in the order of their first nodes."""
    place = {s: k for k, s in enumerate(nodes)}
    inside = [[place[t] for t in successors[s] if t in place] for s in nodes]
    members: dict[int, list[int]] = {}
    for k, c in enumerate(_components(inside)):
        members.setdefault(c, []).append(k)
    loops = [m for m in members.values() if len(m) > 1 or m[0] in inside[m[0]]]
    return [frozenset(nodes[k] for k in m) for m in sorted(loops)]


def tests_mbarrier(instruction: Instruction) -> bool:
    """mbarrier.test_wait and try_wait: a warp with lanes that must wait ends its turn there."""
    return instruction.base == "mbarrier" and bool(_TESTS & set(instruction.modifiers[:1]))


def polls(code: Sequence[Instruction]) -> bool:
    """Does a loop with this code, in text order, only ask global memory the same again until somebody else writes?"""
    spaces = {form(i.opcode).space for i in code if _turns(i)}
    if not spaces & {"global", "generic"} or any(map(_acts, code)):
        return False
    written = {register for i in code for register in i.writes}
    for i in code:
        if written.intersection(i.reads):  # carried from turn to turn
            return False
        written.difference_update(i.writes)
    return True


def _turns(instruction: Instruction) -> int:
    """SPIN_ATOMIC or SPIN_READ for an instruction that may see what another thread wrote, else 0."""
    known = form(instruction.opcode)
    if known.base == "mbarrier":
        return SPIN_ATOMIC if tests_mbarrier(instruction) else 0
    if known.space in ("constant", "param") or known.access not in ("load", "atomic"):
        return 0
    return SPIN_ATOMIC if known.access == "atomic" else SPIN_READ


def _only_waits(
    code: list[Instruction], loop: frozenset[int], successors: Sequence[Sequence[int]], live_in: Sequence[int]
) -> bool:
    if any(map(_acts, code)):
        return False
    if any(instruction.base == "nanosleep" for instruction in code):  # says itself that it waits
        return True
    written = 0
    for instruction in code:
        for register in instruction.writes:
            written |= 1 << register
    heads = {t for s in loop for t in successors[s] if t in loop and t <= s}
    return not any(live_in[head] & written for head in heads)


def _acts(instruction: Instruction) -> bool:
    """Does it change memory, or does it see the time?"""
    base, modifiers = instruction.base, instruction.modifiers
    if base in _ACTIONS:
        return "warp" not in modifiers or base not in ("bar", "barrier")
    if base == "mbarrier":
        return not tests_mbarrier(instruction)
    if base == "atom":
        added = instruction.operands[2:3]
        nothing = "add" in modifiers and bool(added) and isinstance(added[0], Imm) and added[0].value == 0
        return not (_IDEMPOTENT & set(modifiers) or nothing)
    return any(isinstance(o, Special) and o.name in _CLOCKS for o in instruction.operands)


def _components(successors: Sequence[Sequence[int]]) -> list[int]:
    """A number for each node's strongly connected component (Tarjan 1972, without recursion)."""
    count = len(successors)
    number, low, component = [-1] * count, [0] * count, [-1] * count
    clock = 0
    path: list[int] = []
    for root in range(count):
        if number[root] >= 0:
            continue
        number[root] = low[root] = clock
        clock += 1
        path.append(root)
        work: list[tuple[int, Iterator[int]]] = [(root, iter(successors[root]))]
        while work:
            node, following = work[-1]
            for t in following:
                if number[t] < 0:
                    number[t] = low[t] = clock
                    clock += 1
                    path.append(t)
                    work.append((t, iter(successors[t])))
                    break
                if component[t] < 0:
                    low[node] = min(low[node], number[t])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    while component[node] < 0:
                        component[path.pop()] = node
    return component
