"""The set `mwp`: Hong and Kim's model, GPUPerf and the M-core on the paper's GPUs, held against the simulation.

Every shipped sample on the four GPUs of Hong and Kim's Table 3. Samples were compiled for later GPUs; a launch whose
registers do not fit runs with as many as do, as a compiler told so would make it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ppt_gpu.common.errors import LackError, PptError
from ppt_gpu.common.paths import data_dir
from ppt_gpu.common.progress import parts
from ppt_gpu.comparison import compare
from ppt_gpu.inputs import open_workload
from ppt_gpu.models.hong_kim.tables import MACHINES
from ppt_gpu.scale.occupancy.occupancy import occupancy
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.validate.tables.rows import Row, is_asked
from ppt_gpu.workload.workload import Launch, Workload

MODELS = ("hong-kim", "gpuperf", "m-core")


def rows(texts: Sequence[str] = ()) -> list[Row]:
    """A row for every launch, GPU and model; only samples whose name contains one of `texts` (all when empty)."""
    names = sorted(path.stem for path in data_dir("tasklists").glob("*.toml"))
    chosen = [name for name in names if is_asked(name, texts)]
    asked = [(gpu, name) for gpu in MACHINES for name in chosen]
    return [row for gpu, name in parts(asked, "samples") for row in _of_sample(name, load_gpu(gpu, ()))]


def _of_sample(name: str, gpu: Gpu) -> list[Row]:
    """Nothing for a sample that the GPU cannot hold."""
    workload = fitting(open_workload(name), gpu)
    try:
        found = compare(workload, gpu, only=MODELS)
    except LackError:
        return []
    except PptError as error:
        if "exceed the limit" not in error.message:
            raise
        return []
    made = []
    for number, launch in enumerate(found.launches):
        case = f"{name}#{number + 1}" if len(found.launches) > 1 else name
        simulation, *estimates = launch.rows
        for row in estimates:
            if row.cycles is not None and simulation.cycles:
                made.append(Row(case, gpu.name, row.name, "steady", simulation.cycles, row.cycles, "cycles"))
    return made


def fitting(workload: Workload, gpu: Gpu) -> Workload:
    """The workload with no more registers a thread than let a block fit an SM, as a compiler for it would have it."""
    return replace(workload, launches=tuple(_with_registers(launch, gpu) for launch in workload.launches))


def _with_registers(launch: Launch, gpu: Gpu) -> Launch:
    """The launch with the most registers, up to its own, of which a block fits an SM."""
    for registers in range(launch.registers or 0, 0, -1):
        try:
            occupancy(gpu, launch.threads_per_block, registers, 0)
        except PptError:
            continue
        return replace(launch, registers=registers)
    return launch
