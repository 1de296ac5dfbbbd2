"""Programs on chips of known cores: from workloads to what figures 4.17, 4.18 and 5.6 of Blem show."""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.common.errors import PptError
from ppt_gpu.inputs import open_workload
from ppt_gpu.multicore.base.device_scaling import DeviceScaling
from ppt_gpu.multicore.dark_silicon.known_cores import KnownCores
from ppt_gpu.multicore.dark_silicon.known_custom import CustomTime, Part, Program, kernels_of
from ppt_gpu.multicore.dark_silicon.known_projection import KnownProjection, project_known
from ppt_gpu.multicore.dark_silicon.known_upper_bound import UpperBoundTime
from ppt_gpu.multicore.dark_silicon.study import Study, load_study
from ppt_gpu.representations import representations
from ppt_gpu.scale.occupancy.rules import OccupancyLimits, theoretical_occupancy
from ppt_gpu.spec import Gpu

#: shipped samples of the kinds that Blem's suite has
KERNELS = ("sgemm", "saxpy", "spmv", "histogram", "jacobi", "stencil7", "mandelbrot", "reduction")
#: largest random error of every input in figure 5.6 (section 5.5)
ERROR = 0.2


def project_figure(
    figure: str,
    known: KnownCores,
    tables: Sequence[DeviceScaling],
    programs: tuple[Program, ...],
    study: Study | None = None,
) -> list[KnownProjection]:
    """The projection that a figure shows, for each scaling; `study`: assumptions of 4.17, if not the shipped ones."""
    names = [program.name for program in programs]
    if figure == "4.17":
        time = UpperBoundTime(known, kernels_of(programs), study or load_study())
        return [project_known(known, names, table, "upper-bound model", time) for table in tables]
    exact = CustomTime(known, programs, resident)
    if figure == "4.18":
        return [project_known(known, names, table, "custom models", exact) for table in tables]
    model = f"custom models, every input off by up to {ERROR:.0%}"
    off = CustomTime(known, programs, resident, error=ERROR)
    return [project_known(known, names, table, model, off, exact) for table in tables]


def programs_of(kernels: Sequence[str]) -> tuple[Program, ...]:
    """The representations of samples or workload files, from functional runs. Raises PptError for unknown ones."""
    found: list[Program] = []
    for name in kernels:
        workload = open_workload(name)
        if workload.name in [program.name for program in found]:
            raise PptError(f"--kernel {name}: a second kernel '{workload.name}'")
        parts = tuple(
            Part(ir, registers, shared, runs)
            for ir, (registers, shared), runs in representations(workload, None, "sample", [])
        )
        found.append(Program(workload.name, parts))
    return tuple(found)


def resident(gpu: Gpu, threads: int, registers: int, shared: int) -> int:
    """Blocks that an SM holds at once; 0 where a block does not fit."""
    limits = OccupancyLimits.of(gpu)
    if threads > limits.max_threads_per_block:
        return 0
    return theoretical_occupancy(limits, threads, registers, shared).blocks_per_sm
