"""The machine instructions of every shipped kernel, counted in its disassembly: validation/isa/counts.csv.

`python -m ppt_gpu.validate.isa.counts` makes the file again, where ptxas and nvdisasm are on the machine; the set `isa`
then needs neither.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.outputs import write_whole
from ppt_gpu.common.paths import data_dir
from ppt_gpu.frontends.disassemble import Disassembler, disassemble, disassembler
from ppt_gpu.frontends.ptxas import resources
from ppt_gpu.ptx.module import Module
from ppt_gpu.ptx.parsing.parser import load_module
from ppt_gpu.sass.counts import counted

ARCHS = ("75", "80", "90", "100", "120")
#: group of kernels -> folders under the data folder of its first part
GROUPS = {
    "samples": ("tasklists",),
    "kernels": (
        "validation/gpgpusim/ptx70", "validation/measured/kernels", "validation/models", "validation/hong_kim",
        "validation/ppt",
    ),
    "coverage": ("validation/coverage/ptx",),
    "held out: seen": ("validation/held_out/first",),
    "held out": ("validation/held_out/second",),
}  # fmt: skip
COLUMNS = ("group", "file", "sha256", "kernel", "arch", "tools", "instructions", "unrolled", "registers", "opcodes")


@dataclass(frozen=True)
class Counted:
    """The machine code of one kernel on one architecture. What counts: `ppt_gpu.sass.counts`."""

    group: str
    file: str  # "tasklists/saxpy.ptx"
    sha256: str  # of the PTX text, the first 16 digits
    kernel: str
    arch: str  # "80"
    tools: str  # "ptxas 13.0, nvdisasm 13.5"
    opcodes: Counter[str]  # no loop unrolled by ptxas, so that the code is the PTX's
    unrolled: int  # instructions when ptxas may unroll loops
    registers: int  # of a thread, then


def files() -> Iterator[tuple[str, Path]]:
    """Group and path of every PTX file of the set."""
    for group, folders in GROUPS.items():
        for folder in folders:
            top, _, rest = folder.partition("/")
            for path in sorted((data_dir(top) / rest).glob("*.ptx")):
                yield group, path


def count_module(tools: Disassembler, module: Module, arch: str) -> dict[str, tuple[Counter[str], int, int]]:
    """Of each kernel of `module`: its opcodes without unrolled loops; its instructions and registers with them."""
    plain, unrolled = (disassemble(tools, module, arch, unroll=unroll) for unroll in (False, True))
    needs = resources(tools.ptxas, module, arch)
    found = {}
    for name in module.kernels:
        codes = []
        for made in (plain, unrolled):
            if name not in made.functions:
                raise PptError(f"the disassembly has no kernel '{name}'", path=module.path)
            codes.append(counted(made.functions[name], {k: f for k, f in made.functions.items() if k != name}))
        found[name] = (codes[0], codes[1].total(), needs[name].registers)
    return found


def table() -> Path:
    return data_dir("validation") / "isa" / "counts.csv"


def read_counts() -> list[Counted]:
    """The rows of the table. PptError when it is missing or damaged."""
    path = table()
    try:
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
        return [
            Counted(
                row["group"], row["file"], row["sha256"], row["kernel"], row["arch"], row["tools"],
                _opcodes(row["opcodes"]), int(row["unrolled"]), int(row["registers"]),
            )
            for row in rows
        ]  # fmt: skip
    except (OSError, KeyError, ValueError) as error:
        raise PptError(f"cannot read the counts: {error}", path=path) from None


def _opcodes(text: str) -> Counter[str]:
    return Counter({name: int(count) for name, _, count in (item.partition(":") for item in text.split())})


def text_digest(text: bytes) -> str:
    return sha256(text).hexdigest()[:16]


def make() -> list[Counted]:
    """Count every kernel of the set on every architecture that it can be compiled for. PptError without the tools."""
    rows: list[Counted] = []
    for arch in ARCHS:
        disassembler(arch)
    for group, path in files():
        module = load_module(path)
        for arch in ARCHS:
            special = module.target.removeprefix("sm_")
            name = special if special.rstrip("af") == arch else arch  # sm_90a code is for exactly that GPU
            try:
                found = count_module(disassembler(name), module, name)
            except PptError as error:
                print(f"left out {path.name} for sm_{arch}: {error.message.splitlines()[-1].strip()}", file=sys.stderr)
                continue
            shown = f"{path.parent.relative_to(data_dir(GROUPS[group][0].partition('/')[0]).parent)}/{path.name}"
            digest, tools = text_digest(path.read_bytes()), disassembler(name).title
            rows += [
                Counted(group, shown, digest, kernel, arch, tools, opcodes, unrolled, registers)
                for kernel, (opcodes, unrolled, registers) in found.items()
            ]
    return rows


def write(rows: list[Counted]) -> None:
    lines = [",".join(COLUMNS)]
    for row in rows:
        opcodes = " ".join(f"{name}:{count}" for name, count in sorted(row.opcodes.items()))
        values = (row.group, row.file, row.sha256, row.kernel, row.arch, f'"{row.tools}"', row.opcodes.total())
        lines.append(",".join(map(str, (*values, row.unrolled, row.registers, opcodes))))
    write_whole(table(), "\n".join([*lines, ""]).encode())


if __name__ == "__main__":
    try:
        write(make())
    except PptError as error:
        sys.exit(f"error: {error}")
