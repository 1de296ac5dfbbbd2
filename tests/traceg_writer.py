"""Writes kernel traces in the format of Accel-Sim's NVBit tracer, from programs that tests know."""

from __future__ import annotations

import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


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


def saxpy(blocks: int = 8, rounds: int = 2) -> Blocks:
    """tests/data/sass/saxpy_sm80.sass as it runs on `rounds` elements a thread, blocks of 256 threads."""
    x, y, step = 0x7F1000000000, 0x7F1000100000, blocks * 256 * 4
    found = {}
    for block in range(blocks):
        found[(block, 0, 0)] = [
            _saxpy([4 * (256 * block + 32 * warp + lane) for lane in range(32)], x, y, step, rounds)
            for warp in range(8)
        ]
    return found


def _saxpy(places: list[int], x: int, y: int, step: int, rounds: int) -> list[Line]:
    lines = [
        Line(0x00, "MOV", (1,)),
        Line(0x10, "S2R", (0,)),
        Line(0x20, "S2R", (3,)),
        Line(0x30, "IMAD", (0,), (0, 3)),
        Line(0x40, "ISETP.GE.AND", (), (0,)),
        Line(0x50, "EXIT", mask=0),
        Line(0x60, "ULDC.64"),
    ]
    for turn in range(rounds):
        at = [place + turn * step for place in places]
        lines += [
            Line(0x70, "HFMA2.MMA", (5,), (255, 255)),
            Line(0x80, "IMAD.WIDE", (2,), (0, 5)),
            Line(0x90, "IMAD.WIDE", (4,), (0, 5)),
            Line(0xA0, "LDG.E", (2,), (2,), addresses=tuple(x + a for a in at)),
            Line(0xB0, "LDG.E", (7,), (4,), addresses=tuple(y + a for a in at)),
            Line(0xC0, "MOV", (9,)),
            Line(0xD0, "IMAD", (0,), (9, 0)),
            Line(0xE0, "ISETP.GE.AND", (), (0,)),
            Line(0xF0, "FFMA", (7,), (2, 7)),
            Line(0x100, "STG.E", (), (4, 7), addresses=tuple(y + a for a in at)),
            Line(0x110, "BRA", mask=0xFFFFFFFF if turn + 1 < rounds else 0),
        ]
    return [*lines, Line(0x120, "EXIT")]


def example() -> dict[str, bytes]:
    """The files of examples/sass: name -> content. `python tests/traceg_writer.py` writes them."""
    text = trace(saxpy(), grid=(8, 1, 1), block=(256, 1, 1), kernel_name="saxpy", nregs=12, binary_version=80)
    listed = "MemcpyHtoD,0x00007f1000000000,16384\nMemcpyHtoD,0x00007f1000100000,16384\nkernel-1.traceg\n"
    code = (Path(__file__).parent / "data" / "sass" / "saxpy_sm80.sass").read_bytes()
    return {"kernel-1.traceg.xz": lzma.compress(text.encode()), "kernelslist.g": listed.encode(), "saxpy.sass": code}


if __name__ == "__main__":
    for name, content in example().items():
        (Path(__file__).parents[1] / "examples" / "sass" / name).write_bytes(content)
