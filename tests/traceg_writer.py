"""Writes kernel traces in the format of Accel-Sim's NVBit tracer, from programs that tests know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One executed instruction. addresses: of the active lanes, lowest first."""

    pc: int
    opcode: str
    results: tuple[int, ...] = ()
    sources: tuple[int, ...] = ()
    mask: int = 0xFFFFFFFF
    addresses: tuple[int, ...] = ()
    size: int = 4
    immediate: int = 0


Blocks = Mapping[tuple[int, int, int], Sequence[Sequence[Line]]]  # block -> its warps


def header(
    name: str = "kernel",
    grid: tuple[int, int, int] = (1, 1, 1),
    block: tuple[int, int, int] = (32, 1, 1),
    version: int = 5,
    **values: object,
) -> str:
    """The header lines; `values` replaces some, with _ for spaces."""
    lines = {
        "kernel name": name,
        "kernel id": 1,
        "grid dim": "({},{},{})".format(*grid),
        "block dim": "({},{},{})".format(*block),
        "shmem": 0,
        "nregs": 32,
        "binary version": 70,
        "cuda stream id": 0,
        "shmem base_addr": "0x00007f2000000000",
        "local mem base_addr": "0x00007f2002000000",
        "nvbit version": "1.7.1",
        "accelsim tracer version": version,
        "enable lineinfo": 0,
    }
    lines |= {key.replace("_", " ").replace("base addr", "base_addr"): value for key, value in values.items()}
    return "".join(f"-{key} = {value}\n" for key, value in lines.items() if value is not None)


def instruction(line: Line, version: int = 5, form: int | None = None) -> str:
    """One line. form: how addresses are written (0 listed, 1 stride, 2 distances); None: as the tracer chooses."""
    words = [f"{line.pc:04x}", f"{line.mask:08x}", str(len(line.results)), *(f"R{r}" for r in line.results)]
    words += [line.opcode, str(len(line.sources)), *(f"R{r}" for r in line.sources)]
    words += _addresses(line, form) if line.addresses or line.size != 4 or _memory(line.opcode) else ["0"]
    if version >= 4:
        words.append(str(line.immediate))
    return " ".join(words) + " "


def _memory(opcode: str) -> bool:
    return opcode.partition(".")[0] in ("LDG", "STG", "LDS", "STS", "LDL", "STL", "LD", "ST", "ATOMG", "RED", "LDGSTS")


def _addresses(line: Line, form: int | None) -> list[str]:
    first = line.addresses[0] if line.addresses else 0
    steps = [b - a for a, b in zip(line.addresses, line.addresses[1:], strict=False)]
    low = line.mask & -line.mask
    together = line.mask == (low << line.mask.bit_count()) - low
    if form is None:
        form = 1 if together and len(set(steps)) == 1 else 2
    if form == 0:
        return [str(line.size), "0", *(f"0x{address:016x}" for address in line.addresses)]
    if form == 1:
        return [str(line.size), "1", f"0x{first:x}", str(steps[0])]
    return [str(line.size), "2", f"0x{first:x}", *map(str, steps)]


def trace(blocks: Blocks, version: int = 5, form: int | None = None, **values: object) -> str:
    """A whole trace. `values` as of `header`."""
    parts = [header(version=version, **values), "\n#traces format = PC mask ...\n"]  # type: ignore[arg-type]
    for (x, y, z), warps in blocks.items():
        parts.append(f"\n#BEGIN_TB\n\nthread block = {x},{y},{z}\n")
        for number, warp in enumerate(warps):
            place = f"{x} {y} {z} {number} " if version < 3 else ""
            lines = "".join(f"{place}{instruction(line, version, form)}\n" for line in warp)
            parts.append(f"\nwarp = {number}\ninsts = {len(warp)}\n{lines}")
        parts.append("\n#END_TB\n")
    return "".join(parts)
