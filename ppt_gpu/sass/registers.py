"""The registers of machine code: their numbers, and how many 32-bit ones an operand stands for.

Traces and disassembly name the first register of a group only: the data of LDG.E.64 R2 are in R2 and R3.
"""

from __future__ import annotations

from functools import lru_cache

from ppt_gpu.ptx.module import Register

#: names -> how many there are; RZ, URZ, PT and UPT are constants and no registers
FILES = {"R": 255, "P": 7, "UR": 255, "UP": 7}
_FIRST = {"R": 0, "P": 255, "UR": 262, "UP": 517}
REGISTERS = tuple(
    Register(f"{name}{number}", "pred" if name.endswith("P") else "b32", 0)
    for name, count in FILES.items()
    for number in range(count)
)
_DOUBLES = ("DADD", "DMUL", "DFMA", "DMNMX", "DSETP", "DSET")
_LOADS = ("LDG", "LD", "LDS", "LDL", "LDC", "LDCU", "ULDC")
_STORES = ("STG", "ST", "STS", "STL")
_ATOMICS = ("ATOM", "ATOMG", "ATOMS", "RED", "REDG")
_ADDRESSED = ("LDG", "LD", "STG", "ST", "ATOM", "ATOMG", "RED", "REDG", "LDGSTS")
#: opcode, shape -> registers of a result (32-bit sums) and of the operands A, B and C
_PRODUCTS = {
    ("HMMA", "1688"): (4, 2, 1, 4), ("HMMA", "16816"): (4, 4, 2, 4), ("HMMA", "884"): (2, 2, 2, 2),
    ("IMMA", "8816"): (2, 1, 1, 2), ("IMMA", "16816"): (4, 2, 1, 4), ("IMMA", "16832"): (4, 4, 2, 4),
    ("IMMA", "8832"): (2, 1, 1, 2), ("IMMA", "16864"): (4, 4, 2, 4), ("DMMA", "884"): (4, 2, 2, 4),
    ("BMMA", "88128"): (2, 1, 1, 2), ("BMMA", "168128"): (4, 2, 1, 4), ("BMMA", "168256"): (4, 4, 2, 4),
    ("QMMA", "16832"): (4, 4, 2, 4), ("QMMA", "16816"): (4, 2, 1, 4),
}  # fmt: skip


def number(file: str, index: int) -> int:
    """The id of register `index` of `file` ("R", "P", "UR", "UP"); -1 for the constant behind the last."""
    return _FIRST[file] + index if 0 <= index < FILES[file] else -1


@lru_cache(maxsize=4096)
def data_bytes(opcode: str) -> int:
    """Bytes that a lane moves: the first size in the opcode ("LDG.E.64", "STS.U16"), 4 without one."""
    for part in opcode.split(".")[1:]:
        size = part.lstrip("US")
        if size in ("8", "16", "32", "64", "128"):
            return int(size) // 8
    return 4


@lru_cache(maxsize=4096)
def widths(opcode: str) -> tuple[int, tuple[int, ...], int]:
    """Registers of the result, of the first sources in order, and of all further sources."""
    head, *rest = opcode.split(".")
    data = max(1, data_bytes(opcode) // 4)
    if head in _LOADS:
        return data, (2 if head in _ADDRESSED else 1,), 1
    if head in _STORES:
        return 0, (2 if head in _ADDRESSED else 1,), data
    if head in _ATOMICS:
        return data, (2 if head in _ADDRESSED else 1,), data
    if head == "LDGSTS":
        return 0, (1, 2), 1
    if head == "LDSM":
        return int(rest[-1]) if rest[-1] in ("2", "4") else 1, (1,), 1
    if head in _DOUBLES:
        return 2, (), 2
    if (head == "IMAD" and "WIDE" in rest) or (head == "LEA" and "64" in rest):
        return 2, (1, 1), 2
    if head in ("F2F", "I2F", "F2I", "FRND", "CS2R") or (head in ("MOV", "IADD", "I2I") and "64" in rest):
        return _converted(head, rest)
    shape = next((part.replace("x", "") for part in rest if part.replace("x", "").isdigit()), "")
    if (head, shape) in _PRODUCTS:
        result, *operands = _PRODUCTS[head, shape]
        half = head == "HMMA" and rest[-1] == "F16" and shape != "884"
        return result // 2 if half else result, (*operands[:2], operands[2] // 2 if half else operands[2]), 1
    return 1, (), 1


def _converted(head: str, rest: list[str]) -> tuple[int, tuple[int, ...], int]:
    """Conversions name their result's type first; CS2R and MOV.64 move pairs."""
    if head in ("CS2R", "MOV", "IADD"):
        return 1 if rest[:1] == ["32"] else 2, (), 1 if head == "CS2R" else 2
    types = [part for part in rest if part[1:].isdigit() and part[0] in "FUS"]
    wide = [kind.endswith("64") for kind in types]
    return 2 if wide[:1] == [True] else 1, (), 2 if wide[1:2] == [True] else 1
