"""Control codes of machine code: what the compiler tells the scheduler with every instruction, Maxwell and later.

21 bits. From the low end: stall (4), yield (1, active low), write barrier (3), read barrier (3), wait mask (6), reuse
flags (4). From Volta on they are bits 105 to 125 of an instruction's 128; Maxwell and Pascal pack three of them into
the 64-bit word before three instructions. Layout: arXiv 1804.06826, section 2.1.
"""

from __future__ import annotations

from dataclasses import dataclass

NO_BARRIER = 7
BARRIERS = 6  # scoreboards of a warp


@dataclass(frozen=True)
class Control:
    """What one instruction's control code says."""

    stall: int  # cycles until the warp may issue its next instruction
    yields: bool
    write_barrier: int  # scoreboard that is released when the result is there; -1: none
    read_barrier: int  # scoreboard that is released when the operands have been read; -1: none
    waits: tuple[int, ...]  # scoreboards that must be free before it issues

    @property
    def text(self) -> str:
        """ "stall 4, sets 2, waits 0 1": as in comments of task lists."""
        parts = [f"stall {self.stall}"]
        parts += [f"sets {self.write_barrier}"] if self.write_barrier >= 0 else []
        parts += [f"waits {' '.join(map(str, self.waits))}"] if self.waits else []
        return ", ".join(parts)


def decode(bits: int) -> Control:
    """The control code of 21 bits."""
    write, read = bits >> 5 & 7, bits >> 8 & 7
    return Control(
        stall=bits & 15,
        yields=not bits >> 4 & 1,
        write_barrier=-1 if write == NO_BARRIER else write,
        read_barrier=-1 if read == NO_BARRIER else read,
        waits=tuple(number for number in range(BARRIERS) if bits >> 11 + number & 1),
    )


def of_encoding(words: tuple[int, ...]) -> Control | None:
    """Of a Volta or later instruction printed with its two 64-bit words, the low one first; None without them."""
    return decode(words[1] >> 41 & 0x1FFFFF) if len(words) == 2 else None


def of_group(word: int, position: int) -> Control:
    """Of instruction `position` (0 to 2) behind a control word of Maxwell or Pascal."""
    return decode(word >> 21 * position & 0x1FFFFF)
