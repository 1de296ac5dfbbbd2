"""Our levels beside all of GPGPU-Sim's QV100, cycle by cycle, with crossbars and slices of the L2 (simulator_chip).

`python hardware/tools/whole_chip.py` prints launches of the reference with default memory: its cycles, those of the
chip of the simulator, of level grid and level steady. DRAM is left out there, so these are launches that find
everything in the L2. Then kernels (unseen) that the reference does not have, where the chip is the truth, with
everything that they read in the L2. `python hardware/tools/whole_chip.py scan "strided("` prints those only.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from collectors import error, mean
from numpy.typing import NDArray
from simulator_chip import Chip
from simulator_kernels import QV100, each_launch, paths_of, programs
from unseen import LAUNCHES, unseen

from ppt_gpu.pipeline import predict
from ppt_gpu.validate.gpgpusim.launches import case_name
from ppt_gpu.workload.workload import Workload

#: launches that find all in the L2, by the beginning of their names
KNOWN = ("vecadd(", "saxpy(", "strided(", "transpose(", "transcend(", "ilp_fma(", "reduction(", "vecadd_300b")
LEVELS = ("grid", "steady")


def cycles(chip: Chip, workload: Workload, contents: Mapping[str, NDArray] | None = None) -> Iterator[int]:
    """Of the launches on the chip, one after another."""
    for launch, sm in each_launch(workload, contents):
        paths = paths_of(launch, sm, range(launch.launch.blocks), QV100)
        yield chip.run(paths, sm.occupancy.blocks_per_sm, sm.occupancy.l1_bytes)


def ours(workload: Workload, contents: Mapping[str, NDArray] | None = None) -> list[list[int]]:
    """[launches, LEVELS] cycles."""
    found = [predict(workload, QV100, contents=contents, level=level).launches for level in LEVELS]
    return [[round(float(of.value("kernel.cycles"))) for of in launches] for launches in zip(*found, strict=True)]


def known(cases: Sequence[str]) -> Iterator[tuple[str, int, int, list[int]]]:
    """(launch, cycles of the reference, of the chip, ours)."""
    for parts in programs(QV100, "default", cases):
        chip = Chip()
        for part in parts:
            mine = ours(part.workload, part.contents)
            for row, truth, own in zip(part.rows, cycles(chip, part.workload, part.contents), mine, strict=True):
                if row is not None:
                    yield case_name(row), int(row["gpu_sim_cycle"]), truth, own


def unknown(names: Sequence[str]) -> Iterator[tuple[str, int, list[int]]]:
    """(kernel, cycles of the chip, ours)."""
    for name, workload in unseen():
        if name in names:
            warm = replace(workload, buffers=tuple(replace(buffer, copied=True) for buffer in workload.buffers))
            yield name, next(cycles(Chip(), warm)), ours(warm)[0]


def _errors(found: Sequence[int], truth: int) -> str:
    return "".join(error(cycles, truth) for cycles in found)


def main() -> None:
    names, levels = sys.argv[1:], "".join(f"{level:>9} {'':7}" for level in LEVELS)
    shown = list(known(names or KNOWN))
    if shown:
        print(f"{'launch':24} {'reference':>9} {'the chip':>9} {'':7}{levels}")
    for name, reference, truth, own in shown:
        print(f"{name:24} {reference:9} {_errors([truth, *own], reference)}")
    print(f"{'kernel':24} {'the chip':>9}{levels}")
    errors: list[list[float]] = [[] for _ in LEVELS]
    for name, truth, own in unknown(names or tuple(LAUNCHES)):
        print(f"{name:24} {truth:9}{_errors(own, truth)}", flush=True)
        for level, found in enumerate(own):
            errors[level].append(abs(found / truth - 1))
    for level, of_level in zip(LEVELS, errors, strict=True):
        if of_level:
            print(f"{level}: {mean(of_level)}")


if __name__ == "__main__":
    main()
