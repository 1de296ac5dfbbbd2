"""Our machine expansion of PTX held against real machine code: instructions by pipe and by operation.

Counts are static: each instruction of a kernel once, in all its blocks (`ppt_gpu.sass.counts` says what counts of a
disassembly). `check-isa` compares one module, compiled on the spot; the set `isa` compares every shipped kernel with
the committed counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.paths import data_dir
from ppt_gpu.frontends.arch import number, of_capability
from ppt_gpu.frontends.disassemble import Disassembler, disassemble, disassembler
from ppt_gpu.frontends.ptxas import ptxas_arch
from ppt_gpu.machine.code import MachineCode, machine_code
from ppt_gpu.machine.registers import compiled_registers
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.ptx.linking.liveness import allocated
from ppt_gpu.ptx.linking.mangling import source_name
from ppt_gpu.ptx.module import Kernel, Module
from ppt_gpu.ptx.parsing.parser import load_module
from ppt_gpu.sass.latencies import Distance, distances
from ppt_gpu.sass.operations import known_operation
from ppt_gpu.spec.gpu import Gpu, Isa
from ppt_gpu.spec.isa import load_isa
from ppt_gpu.tasklist.expand import machine_operations, operations_of
from ppt_gpu.validate.isa.counts import Counted, count_module, read_counts, text_digest
from ppt_gpu.validate.tables.rows import Row, is_asked

#: letters of a kernel's name in a table
LONGEST = 44
#: 32-bit registers of a thread: they decide about the order only, which does not count
_REGISTERS = 255


def expanded(kernel: Kernel, isa: Isa, *, unroll: bool = False) -> Counter[str]:
    """How often each machine operation is in the code of `kernel`, linked with its functions, on a GPU of this ISA.

    unroll: with the iterations that unrolled loops have side by side; else loops are those of the PTX.
    """
    if not isa.scheduled:
        return Counter(name for each in kernel.instructions for name in machine_operations(each, isa))
    if not unroll:
        kernel = replace(kernel, rolled=frozenset(range(len(kernel.instructions))))
    made = machine_code(kernel, _REGISTERS, isa)
    return Counter(name for place in _places(made) for name in operations_of(made.kernel, place, isa))


def _places(made: MachineCode) -> list[int]:
    """Instructions of `made`: of each block the longest straight-line code that it is in, unrolled or not."""
    places: list[int] = []
    chosen: set[frozenset[int]] = set()
    covered: set[int] = set()
    for template in sorted(made.templates, key=lambda template: -len(set(template.blocks))):
        blocks = frozenset(template.blocks)
        if blocks in chosen or not covered & blocks:
            chosen.add(blocks)
            covered |= blocks
            places += template.code.tolist()
    for block, (first, end) in enumerate(zip(made.flow.block_start, made.flow.block_end, strict=True)):
        if block not in covered:
            places += range(first, end)
    return places


@dataclass(frozen=True)
class Comparison:
    """One kernel: how often each operation is in our expansion and in the machine code."""

    kernel: str
    arch: str  # "80"
    group: str
    isa: Isa
    ours: Counter[str]
    theirs: Counter[str]
    unrolled: int  # machine instructions when ptxas may unroll loops
    ours_unrolled: int  # ours when we may
    registers: int  # of a thread, by ptxas
    ours_registers: int  # as they are allocated
    tools: str

    @property
    def row(self) -> Row:
        """Loops as in the PTX."""
        counts = (float(self.theirs.total()), float(self.ours.total()))
        return Row(self.kernel, f"sm_{self.arch}", self.group, "static", *counts, "instructions")

    @property
    def unrolled_row(self) -> Row:
        """Loops as ptxas and we unroll them."""
        counts = (float(self.unrolled), float(self.ours_unrolled))
        return Row(self.kernel, f"sm_{self.arch}", self.group, "static", *counts, "instructions")

    @property
    def register_difference(self) -> int:
        """Our registers of a thread less ptxas's, as they are allocated."""
        return self.ours_registers - allocated(self.registers)

    @property
    def resident_warps(self) -> tuple[int, int]:
        """Warps that fit an SM of this architecture by registers alone: (ours, ptxas's)."""
        ours, theirs = (
            min(self.isa.sm_threads // 32, self.isa.sm_registers // (32 * allocated(each)))
            for each in (self.ours_registers, self.registers)
        )
        return ours, theirs


def regrouped(counts: Counter[str], group: Callable[[str], str]) -> Counter[str]:
    """The sums of `counts` over names of one `group`."""
    total: Counter[str] = Counter()
    for name, count in counts.items():
        total[group(name)] += count
    return total


def by_pipe(counts: Counter[str], isa: Isa) -> Counter[str]:
    """The same instructions by the pipe that they run on."""
    return regrouped(counts, lambda name: isa.op(name).pipe)


def kind(name: str) -> str:
    """The operation without what no disassembly tells: "fp32.fma", "load.global", "tensor", "sfu.rcp"."""
    parts = name.split(".")
    if parts[0] in ("tensor", "shuffle", "fence", "barrier"):
        return parts[0]
    if parts[-1] == "alu":
        parts = parts[:-1]
    return ".".join(parts[:2])


def check_module(module: Module, gpu: Gpu, kernels: Sequence[str] = ()) -> list[Comparison]:
    """Every kernel of `module`, or those named, compiled for `gpu` now.

    Raises PptError when a tool is missing, does not know the GPU, or refuses the PTX, or a kernel is not there.
    """
    own = of_capability(gpu.compute_capability)
    tools, arch = _tools(module, gpu)
    found = count_module(tools, module, arch)
    rows = []
    for name in kernels or found:
        opcodes, unrolled, registers = found[name]
        theirs = regrouped(opcodes, known_operation)
        kernel = link(module.kernels[name], module)
        ours, more = expanded(kernel, gpu.isa), expanded(kernel, gpu.isa, unroll=True).total()
        estimate = compiled_registers(kernel, gpu.isa).count
        rows.append(Comparison(name, own, "", gpu.isa, ours, theirs, unrolled, more, registers, estimate, tools.title))
    return rows


def check_latencies(module: Module, gpu: Gpu) -> list[Distance]:
    """Latencies that the stall counts of `module`, compiled for `gpu`, show. Raises as `check_module`."""
    tools, arch = _tools(module, gpu)
    return distances(list(disassemble(tools, module, arch).functions.values()), gpu.isa)


def _tools(module: Module, gpu: Gpu) -> tuple[Disassembler, str]:
    """What compiles `module` for `gpu`, and the architecture to compile for."""
    own = of_capability(gpu.compute_capability)
    tools = disassembler(own)
    arch = ptxas_arch(tools.ptxas, module, gpu.compute_capability)
    if number(arch) != int(own):
        raise PptError(f"this PTX is for {module.target}, not for sm_{own} of {gpu.name}", path=module.path)
    return tools, arch


def comparisons(texts: Sequence[str] = ()) -> list[Comparison]:
    """Every committed kernel whose "file kernel sm_80" contains one of `texts` (all when empty)."""
    return [_comparison(row) for row in read_counts() if is_asked(f"{row.file} {row.kernel} sm_{row.arch}", texts)]


def _comparison(row: Counted) -> Comparison:
    module, digest = _module(row.file)
    if digest != row.sha256:
        hint = "python -m ppt_gpu.validate.isa.counts makes the counts again"
        raise PptError("this file is not the one whose machine code was counted", path=module.path, hint=hint)
    isa = load_isa(f"sm_{row.arch}")
    kernel = link(module.kernels[row.kernel], module)
    ours, more = expanded(kernel, isa), expanded(kernel, isa, unroll=True).total()
    name = f"{Path(row.file).stem}:{source_name(row.kernel)}"[:LONGEST]
    return Comparison(
        name,
        row.arch,
        row.group,
        isa,
        ours,
        regrouped(row.opcodes, known_operation),
        row.unrolled,
        more,
        row.registers,
        compiled_registers(kernel, isa).count,
        row.tools,
    )


@lru_cache(maxsize=4)
def _module(file: str) -> tuple[Module, str]:
    top, _, rest = file.partition("/")
    path = data_dir(top) / rest
    return load_module(path), text_digest(path.read_bytes())
