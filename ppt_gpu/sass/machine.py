"""Machine code in the terms of later stages: a kernel whose instructions are timed as they are.

Instructions with addresses become the PTX instructions that access memory in the same way. All others get the opcode
"?sass.OPERATION", which no text can have and which is timed as this operation. A GPU that runs them must expand, merge
and move nothing: `machine_gpu`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ppt_gpu.common.errors import PptError
from ppt_gpu.ptx.linking.linked import LinkedKernel
from ppt_gpu.ptx.module import Imm, Instruction, Module, Operand, Reg, Sink
from ppt_gpu.ptx.table import SASS
from ppt_gpu.sass.operations import known_operation
from ppt_gpu.sass.registers import REGISTERS, data_bytes, number, widths
from ppt_gpu.spec.gpu import Gpu, Isa

#: architectures that traces and disassembly may be of
ARCHS = (35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121)
_PLAIN = {
    "LDG": "ld.global", "LD": "ld", "LDS": "ld.shared", "LDL": "ld.local", "LDC": "ld.const", "LDCU": "ld.const",
    "STG": "st.global", "ST": "st", "STS": "st.shared", "STL": "st.local",
    "ATOMG": "atom.global.add", "ATOM": "atom.add", "ATOMS": "atom.shared.add", "RED": "red.global.add",
    "REDG": "red.global.add",
}  # fmt: skip
#: tracers list their result among the sources, because a predicate stands before it
_RESULT_BEHIND_PREDICATE = ("SHFL", "ATOM", "ATOMG")
_BULK = ("UTMALDG", "UTMASTG", "UTMAPF", "UTMAREDG", "UBLKCP", "UBLKPF", "UBLKRED")


def machine_gpu(gpu: Gpu, arch: int, path: str) -> Gpu:
    """`gpu` with an instruction set that leaves instructions as they are.

    Raises PptError, naming the file `path`, when machine code of sm_`arch` does not run on it: it runs on GPUs of the
    same major and at least the same minor compute capability.
    """
    major, minor = gpu.compute_capability
    if major != arch // 10 or minor < arch % 10:
        message = f"this is machine code of sm_{arch}, which {gpu.name} (sm_{major}{minor}) does not run"
        raise PptError(message, path=path, hint=f"take a GPU of compute capability {arch // 10}.{arch % 10} or later "
                       f"{arch // 10}.x, or predict the PTX")  # fmt: skip
    return replace(gpu, isa=Isa(gpu.isa.name, gpu.isa.ops))


def opcode_of(sass: str, operation: str, transfers: bool) -> str:
    """The opcode that stands for machine opcode `sass`. transfers: it moves data at addresses."""
    head = sass.partition(".")[0]
    if head in _PLAIN and (transfers or head in ("LDC", "LDCU")):
        return f"{_PLAIN[head]}.b{8 * data_bytes(sass)}"
    if head in ("LDSM", "STSM") and transfers:
        return ("ldmatrix" if head == "LDSM" else "stmatrix") + ".sync.aligned.m8n8.x4.shared.b16"
    if head == "LDGSTS" and transfers:
        return "cp.async.cg.shared.global" if ".BYPASS" in sass else "cp.async.ca.shared.global"
    if head == "LDGDEPBAR":
        return "cp.async.commit_group"
    if head == "BAR":
        return "bar.arrive" if ".ARV" in sass else "bar.sync"
    return f"{SASS}.{operation}"


def instruction(
    index: int,
    sass: str,
    results: Sequence[int],
    sources: Sequence[int],
    *,
    transfers: bool = False,
    wait: int | None = None,
    reads: Sequence[int] = (),
    writes: Sequence[int] = (),
) -> Instruction:
    """Instruction `index`, on line index + 1 of the listing.

    results, sources: the first general registers of its operands, 255 for RZ. reads, writes: ids of further registers.
    transfers: it moves data at recorded addresses. wait: groups of asynchronous copies that it lets stand open.
    Raises PptError, without a place, for an unknown opcode and for what cannot be timed from a trace.
    """
    operation = known_operation(sass)
    head = sass.partition(".")[0]
    if head in _BULK:
        raise PptError(f"{head} moves data that the trace does not show as accesses of lanes: it cannot be timed")
    if head in _RESULT_BEHIND_PREDICATE and not results and sources:
        results, sources = sources[:1], sources[1:]
    wide, firsts, further = widths(sass)
    opcode = opcode_of(sass, operation, transfers)
    operands: tuple[Operand, ...] = tuple(Reg(number("R", r)) for r in (*results, *sources) if r < 255)
    if opcode.startswith("cp.async.cg"):
        operands = (*(*operands, Sink(), Sink())[:2], Imm(data_bytes(sass)))
    elif wait is not None:
        opcode, operands = "cp.async.wait_group", (Imm(wait),)
    return Instruction(
        index=index,
        opcode=opcode,
        operands=operands,
        guard=None,
        reads=tuple(dict.fromkeys((*_groups(sources, firsts, further), *reads))),
        writes=tuple(dict.fromkeys((*_groups(results, (), max(wide, 1)), *writes))),
        line=index + 1,
        column=1,
    )


def _groups(firsts: Sequence[int], widths_: tuple[int, ...], further: int) -> list[int]:
    """Ids of all registers of the operands that begin at `firsts`."""
    found = []
    for position, first in enumerate(firsts):
        width = widths_[position] if position < len(widths_) else further
        found += [number("R", first + k) for k in range(width) if first + k < 255]
    return found


def machine_kernel(name: str, instructions: Sequence[Instruction]) -> LinkedKernel:
    """A kernel of machine instructions."""
    return LinkedKernel(name, (), REGISTERS, (), tuple(instructions), {}, own_end=len(instructions))


def machine_module(path: str, arch: int, kernel: LinkedKernel, listing: Sequence[str]) -> Module:
    """A module of one kernel. listing: the text of each instruction."""
    return Module(path, (0, 0), f"sm_{arch}", 64, {kernel.name: kernel}, {}, {}, tuple(listing))
