"""Our SMs of GPGPU-Sim beside ones written from what the simulator does, cycle by cycle, under perfect memory.

`python hardware/tools/collectors.py` prints the cycles of launches of the reference (validation/gpgpusim) on QV100 and
GTX480, found by the SM of the simulator (simulator_sm, simulator_sm_gtx480) and by ours, both with the blocks of one
SM: those of another one, or all together, may take longer. And, on QV100, of samples and kernels (unseen) that the
reference does not have, where the former is the truth. `python hardware/tools/collectors.py jacobi scan` prints those
only. `python hardware/tools/collectors.py whole` prints the launches with all SMs of the simulator's GTX480.

A load waits in a slot of its scheduler, then in one of its two collector units, then in a slot behind them, from which
the load/store unit takes the oldest of all schedulers. The units are asked in the same order every time: while loads
come to the first one without a gap, the load in the second one stays. Its warp is the last to get through the loop,
alone, at the latency of a load and a multiply-add a step.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from simulator_kernels import GTX480, QV100, beside, device_launches, programs
from simulator_sm_gtx480 import Chip
from unseen import LAUNCHES, unseen

from ppt_gpu.pipeline import open_workload
from ppt_gpu.validate.gpgpusim.launches import case_name

#: launches of the reference, by the beginning of their names
KNOWN = (
    "vecadd(", "saxpy(", "strided(", "transpose(", "reduction(", "reduction_600k", "divergent(", "stencil_naive(",
    "ilp_fma", "transcend(", "sgemm16(", "sgemm32(", "alulat", "pchase", "transpose_512",
)  # fmt: skip
#: samples that it does not have
UNSEEN = ("jacobi", "spmv", "stencil7", "transpose_tiled", "histogram")


def known(gpu: str, cases: Sequence[str]) -> Iterator[tuple[str, int, int | None, int]]:
    """(launch, cycles of the reference, of the simulator's SM, of ours)."""
    for parts in programs(gpu, "perfect", cases):
        for part in parts:
            for row, (truth, own) in zip(part.rows, beside(part.workload, part.contents, gpu), strict=True):
                if row is not None:
                    yield case_name(row), int(row["gpu_sim_cycle"]), truth, own


def whole() -> Iterator[tuple[str, int, int]]:
    """(launch, cycles of the reference, of all SMs of the simulator's GTX480)."""
    for parts in programs(GTX480, "perfect"):
        chip = Chip()
        for part in parts:
            for row, found in zip(part.rows, device_launches(chip, part.workload, part.contents), strict=True):
                if row is not None:
                    yield case_name(row), int(row["gpu_sim_cycle"]), found


def unknown(names: Sequence[str]) -> Iterator[tuple[str, int | None, int]]:
    """(launch, cycles of the simulator's SM, of ours)."""
    kernels = {name: workload for name, workload in unseen() if name in names}
    for name in names:
        for number, (truth, own) in enumerate(beside(kernels.get(name) or open_workload(name))):
            yield f"{name}#{number + 1}", truth, own


def error(found: int | None, truth: int | None) -> str:
    return f"{found:9} {found / truth - 1:+7.1%}" if found and truth else f"{found or '-':>9}        "


def mean(errors: Sequence[float]) -> str:
    return f"mean {sum(errors) / len(errors):.1%}, worst {max(errors):.1%} of {len(errors)}" if errors else ""


def main() -> None:
    names = sys.argv[1:]
    if names == ["whole"]:
        for name, reference, found in whole():
            print(f"{name:30} {reference:9} {error(found, reference)}", flush=True)
        return
    for gpu in () if names else (QV100, GTX480):
        print(f"{gpu:30} {'reference':>9} {'the SM':>9} {'':7} {'ours':>9}")
        truths, ours = [], []
        for name, reference, truth, own in known(gpu, KNOWN):
            print(f"{name:30} {reference:9} {error(truth, reference)} {error(own, reference)}", flush=True)
            truths += [abs(truth / reference - 1)] if truth else []
            ours.append(abs(own / reference - 1))
        print(f"the SM: {mean(truths)}; ours: {mean(ours)}")
    print(f"{'launch':30} {'the SM':>9} {'ours':>9}")
    errors = []
    for name, truth, own in unknown(names or (*UNSEEN, *LAUNCHES)):
        print(f"{name:30} {truth or '-':>9} {error(own, truth)}", flush=True)
        errors += [abs(own / truth - 1)] if truth else []
    print(f"ours: {mean(errors)}")


if __name__ == "__main__":
    main()
