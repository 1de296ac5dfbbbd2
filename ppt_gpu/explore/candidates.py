"""Forms of a kernel to choose among: files, block sizes, limits of registers; and what each needs to be predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ppt_gpu.common.errors import PptError
from ppt_gpu.explore.launch_keys import with_values
from ppt_gpu.frontends.prepare import prepare
from ppt_gpu.frontends.ptxas import NO_PTXAS
from ppt_gpu.frontends.registers import with_at_most
from ppt_gpu.inputs import CUDA, must_exist, open_workload
from ppt_gpu.machine.registers import compiled_registers
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.scale.occupancy.rules import OccupancyLimits, theoretical_occupancy
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.workload.workload import Dim3, Launch, Workload

REGISTERS = "registers"
STEPS = 3  # of occupancy that fewer registers are tried for
FEWEST = 16  # registers a thread: with fewer no kernel of some size is compiled well
THREADS = (32, 64, 128, 256, 512, 1024)

OCCUPANCY_ONLY = "occupancy only: that the compiler can do with so few registers is assumed, no ptxas was found"


@dataclass(frozen=True)
class Candidate:
    """A form of the kernel. `values` as text; `spills`: bytes a thread in local memory, which is not simulated.

    With an `error` it cannot be made.
    """

    variant: str
    values: Mapping[str, str]
    workload: Workload
    note: str = ""
    spills: int = 0
    error: str = ""


def variant_workload(base: Workload, file: str) -> Workload:
    """The workload with the kernel of another file: a .ptx or .cu with the same launch, or a workload of its own."""
    path = Path(file)
    if path.suffix not in (".ptx", *CUDA):
        return open_workload(file)
    if base.tasklist_path or base.machine_path:
        raise PptError(f"--variant {file}: '{base.name}' has no kernel file, which another could replace")
    must_exist(path)
    # Registers that were given are those of the first file.
    launches = tuple(
        replace(launch, registers=None, register_source="", static_shared=None) for launch in base.launches
    )
    changed = replace(base, ptx_path=str(path), ptx_text="", launches=launches)
    if len(prepare(base).module.kernels) == 1:
        changed = replace(changed, launches=tuple(replace(launch, kernel="") for launch in launches))
    return changed


def candidate(variant: str, workload: Workload, values: Mapping[str, str], gpu: Gpu) -> Candidate:
    """The form with these values. Registers are a limit for ptxas; without one, what is said in the note."""
    shape = {key: text for key, text in values.items() if key != REGISTERS}
    made = with_values(workload, shape)
    if REGISTERS not in values:
        return Candidate(variant, values, made)
    limited = with_values(made, {REGISTERS: values[REGISTERS]})
    prepared = prepare(made, gpu.compute_capability)
    launch, most = prepared.workload.launches[0], limited.launches[0].registers or 0
    try:
        found, says = with_at_most(launch, prepared.module, gpu.compute_capability, most)
    except PptError as error:
        if error.hint != NO_PTXAS:
            raise
        return Candidate(variant, values, limited, OCCUPANCY_ONLY)
    spills = says.spill_stores + says.spill_loads
    note = f"ptxas: {says.registers} registers" + (f", {spills} B a thread spilled, not simulated" if spills else "")
    launches = (replace(made.launches[0], registers=found.registers, register_source=found.register_source),)
    return Candidate(variant, values, replace(made, launches=launches), note, spills)


def block_values(launch: Launch, gpu: Gpu) -> list[str]:
    """Blocks to try: of one axis all powers of two; of more, powers of two along both that fill whole warps."""
    most = gpu.sm.max_threads_per_block
    if launch.block[1:] == (1, 1):
        return [str(threads) for threads in THREADS if threads <= most]
    depth = launch.block[2]
    sizes = [(x, y, depth) for x in (8, 16, *THREADS[:4]) for y in (1, 2, 4, 8, 16, 32)]
    wanted = [size for size in sizes if 64 <= _threads(size) <= min(most, 1024) and _threads(size) % 32 == 0]
    return ["x".join(str(part) for part in size[: 3 if depth > 1 else 2]) for size in sorted(wanted)]


def register_values(workload: Workload, gpu: Gpu) -> list[str]:
    """Limits of registers with which an SM holds more blocks of the launch: the most for each step."""
    prepared = prepare(workload, gpu.compute_capability)
    launch, limits = prepared.workload.launches[0], OccupancyLimits.of(gpu)
    kernel = link(prepared.module.kernels[launch.kernel], prepared.module)
    registers = compiled_registers(kernel, gpu.isa, launch.registers).count

    def held(number: int) -> int:
        return theoretical_occupancy(limits, launch.threads_per_block, number, 0).blocks_per_sm

    found: list[str] = []
    now = held(registers)
    for number in range(registers - 1, FEWEST - 1, -1):
        if held(number) > now:
            now = held(number)
            found.append(str(number))
    return found[:STEPS]


def values_text(values: Mapping[str, str]) -> str:
    """ "block 128, registers 32"."""
    return ", ".join(f"{key} {text}" for key, text in values.items())


def _threads(block: Dim3) -> int:
    return block[0] * block[1] * block[2]


def names_of(files: Sequence[str]) -> list[str]:
    """Short names of files: their last parts, whole paths where these are not enough."""
    names = [Path(file).name for file in files]
    return [name if names.count(name) == 1 else file for name, file in zip(names, files, strict=True)]
