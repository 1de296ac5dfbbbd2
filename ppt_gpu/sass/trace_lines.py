"""The lines of a kernel trace that are instructions: what tells instructions apart, and the accesses of each.

A line is [block x y z, warp (before version 3)] [source line] PC mask results [registers] opcode sources [registers]
bytes [addresses] [immediate].
"""

from __future__ import annotations

from ppt_gpu.common.errors import PptError
from ppt_gpu.ptx.module import Instruction
from ppt_gpu.sass.accesses import ACCESSING, Accesses
from ppt_gpu.sass.machine import instruction
from ppt_gpu.sass.trace_header import TraceLines

_WARP = 32


class Instructions:
    """The instructions that have been read so far. skip: words before the PC."""

    def __init__(self, lines: TraceLines, accesses: Accesses, skip: int) -> None:
        self.lines, self.accesses, self.skip = lines, accesses, skip
        self.instructions: list[Instruction] = []
        self.listing: list[str] = []
        self.numbers: dict[tuple[str, ...], int] = {}  # what tells an instruction apart -> its number
        self.seen: dict[str, tuple[int, int]] = {}  # line without addresses -> instruction, lanes

    def read(self, line: str, warp: int) -> tuple[int, int]:
        """Number and active lanes of the instruction on `line`; its access, if it has one, is added."""
        words = line.split()
        try:
            return self._parsed(line, words, warp)
        except (ValueError, IndexError) as error:
            if line.strip().startswith(("#", "warp", "insts", "thread")):
                raise self.lines.bad("the warp has fewer instructions than 'insts' says: lines are missing") from None
            what = f" ({error})" if isinstance(error, ValueError) else ""
            raise self.lines.bad(f"not an instruction of a trace: '{line[:60]}'{what}") from None

    def _parsed(self, line: str, words: list[str], warp: int) -> tuple[int, int]:
        at = self.skip
        pc, mask = int(words[at], 16), int(words[at + 1], 16)
        results, at = _registers(words, at + 2)
        opcode = words[at]
        sources, at = _registers(words, at + 1)
        size = int(words[at])
        rest = words[at + 1 :]
        lanes = mask.bit_count()
        if mask >> _WARP:
            raise ValueError("a mask of more than 32 lanes")
        head = opcode.partition(".")[0]
        transfers = size > 0 and head in ACCESSING
        if not transfers and head in ACCESSING and mask:
            raise ValueError("no addresses")
        wait = _open_groups(head, rest)
        key = (words[self.skip], *words[self.skip + 2 : at], str(transfers), str(wait))
        number = self.numbers.get(key)
        if number is None:
            number = self._new(key, pc, opcode, results, sources, transfers, wait)
        if transfers:
            self.accesses.add(opcode, warp, mask, rest)
        elif len(rest) <= 1:
            self.seen[line] = (number, lanes)
        return number, lanes

    def _new(
        self,
        key: tuple[str, ...],
        pc: int,
        opcode: str,
        results: list[int],
        sources: list[int],
        transfers: bool,
        wait: int | None,
    ) -> int:
        number = len(self.instructions)
        try:
            made = instruction(number, opcode, results, sources, transfers=transfers, wait=wait)
        except PptError as error:
            raise self.lines.bad(error.message, error.hint) from None
        self.numbers[key] = number
        self.instructions.append(made)
        names = ", ".join("RZ" if each == 255 else f"R{each}" for each in (*results, *sources))
        self.listing.append(f"{pc:04x} {opcode} {names}".rstrip())
        return number


def _registers(words: list[str], at: int) -> tuple[list[int], int]:
    """The registers listed from words[at], which counts them, and the place behind them."""
    end = at + 1 + int(words[at])
    names = words[at + 1 : end]
    if len(names) != end - at - 1 or not all(name[:1] == "R" for name in names):
        raise ValueError("registers are missing")
    return [int(name[1:]) for name in names], end


def _open_groups(head: str, rest: list[str]) -> int | None:
    """How many groups of asynchronous copies a DEPBAR lets stand open; None for other instructions."""
    if head != "DEPBAR":
        return None
    return int(rest[-1], 0) if rest else 0
