"""Latencies that machine code shows: stall counts from an instruction to the first that reads its result.

Hardware does not hold back a reader of a result of fixed latency, so the compiler's stall counts keep them apart: the
least distance that it ever leaves is the latency, as far as the code has a reader close by. Results that a scoreboard
announces have none. Within basic blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ppt_gpu.sass.disassembly import SassFunction, SassInstruction
from ppt_gpu.sass.operands import registers
from ppt_gpu.sass.operations import known_operation
from ppt_gpu.spec.gpu import Isa


@dataclass(frozen=True)
class Distance:
    """An operation of fixed latency in some code."""

    operation: str
    latency: int  # cycles, of the ISA
    least: int  # cycles that the code leaves to the nearest reader
    reader: str  # opcode of that reader
    count: int  # instructions whose result is read in their block


def distances(functions: Sequence[SassFunction], isa: Isa) -> list[Distance]:
    """What the code of `functions` shows, by operation; [] where no control codes are printed.

    A comparison has two latencies: to an instruction that it guards, and, as "OPERATION.alu", to one that reads the
    predicate as an operand.
    """
    announced = {
        known_operation(each.opcode)
        for function in functions
        for each in function.instructions
        if each.control is not None and each.control.write_barrier >= 0
    }
    found: dict[str, list[tuple[int, str]]] = {}
    for function in functions:
        for producer, cycles, reader in _pairs(function):
            name = known_operation(producer.opcode)
            if name in announced:
                continue
            if f"{name}.alu" in isa.ops and not reader.guard:
                name = f"{name}.alu"
            found.setdefault(name, []).append((cycles, reader.opcode))
    return [Distance(name, isa.op(name).latency, *min(pairs), len(pairs)) for name, pairs in sorted(found.items())]


def _pairs(function: SassFunction) -> Iterator[tuple[SassInstruction, int, SassInstruction]]:
    """(instruction of fixed latency, cycles to its first reader, that reader)."""
    starts = {place for name, place in function.labels.items() if not name.startswith("0x")}
    writers: dict[int, tuple[SassInstruction, int]] = {}  # register -> who wrote it, when
    now = 0
    for place, each in enumerate(function.instructions):
        if place in starts:
            writers, now = {}, 0
        if each.control is None:
            return
        reads, writes = registers(each)
        nearest = {id(writers[r][0]): writers[r] for r in reads if r in writers}
        for producer, issued in nearest.values():
            yield producer, now - issued, each
            writers = {register: known for register, known in writers.items() if known[0] is not producer}
        for register in writes:
            writers.pop(register, None)
            if each.control.write_barrier < 0:
                writers[register] = (each, now)
        now += each.control.stall
