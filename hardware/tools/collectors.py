"""Our SM of GPGPU-Sim's QV100 beside one written from what the simulator does, cycle by cycle, under perfect memory.

`python hardware/tools/collectors.py` prints the cycles of short launches of the reference (validation/gpgpusim), found
by the SM of the simulator (simulator_sm) and by ours, and of samples that the reference does not have, where the former
is the truth. Samples are named as for `predict`: `python hardware/tools/collectors.py jacobi spmv` prints those only.

A load waits in a slot of its scheduler, then in one of its two collector units, then in a slot behind them, from which
the load/store unit takes the oldest of all schedulers. The units are asked in the same order every time: while loads
come to the first one without a gap, the load in the second one stays. Its warp is the last to get through the loop,
alone, at the latency of a load and a multiply-add a step.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from simulator_kernels import GPU, launches

from ppt_gpu.pipeline import open_workload, predict
from ppt_gpu.validate.gpgpusim import case_name, chosen, parts_of

#: launches of the reference, by the beginning of their names
KNOWN = (
    "vecadd(", "saxpy(", "strided(", "transpose(", "reduction(", "reduction_600k", "divergent(", "stencil_naive(",
    "ilp_fma", "transcend(", "sgemm16(",
)  # fmt: skip
#: samples that it does not have
UNSEEN = ("jacobi", "spmv", "stencil7", "transpose_tiled", "histogram")
PERFECT = ("perfect_memory=true",)


def known(cases: Sequence[str]) -> Iterator[tuple[str, int, int | None, float]]:
    """(launch, cycles of the reference, of the simulator's SM, of ours)."""
    for members in chosen(cases):
        if (members[0]["config"], members[0]["mem"]) != ("SM7_QV100", "perfect"):
            continue
        for part in parts_of(members):
            found = launches(part.workload, part.contents)
            ours = predict(part.workload, GPU, overrides=PERFECT, contents=part.contents).launches
            for row, truth, one in zip(part.rows, found, ours, strict=True):
                if row is not None:
                    yield case_name(row), int(row["gpu_sim_cycle"]), truth, float(one.value("kernel.cycles"))


def unseen(names: Sequence[str]) -> Iterator[tuple[str, int | None, float]]:
    """(launch, cycles of the simulator's SM, of ours)."""
    for name in names:
        workload = open_workload(name)
        ours = predict(workload, GPU, overrides=PERFECT).launches
        for number, (truth, one) in enumerate(zip(launches(workload), ours, strict=True)):
            yield f"{name}#{number + 1}", truth, float(one.value("kernel.cycles"))


def _error(found: float | None, truth: float | None) -> str:
    return f"{found:9.0f} {found / truth - 1:+7.1%}" if found and truth else f"{found or '-':>9}        "


def _mean(errors: Sequence[float]) -> str:
    return f"mean {sum(errors) / len(errors):.1%}, worst {max(errors):.1%} of {len(errors)}" if errors else ""


def main() -> None:
    names = sys.argv[1:]
    if not names:
        print(f"{'launch':30} {'reference':>9} {'the SM':>9} {'':7} {'ours':>9}")
        truths, ours = [], []
        for name, reference, truth, own in known(KNOWN):
            print(f"{name:30} {reference:9} {_error(truth, reference)} {_error(own, reference)}", flush=True)
            truths += [abs(truth / reference - 1)] if truth else []
            ours.append(abs(own / reference - 1))
        print(f"the SM: {_mean(truths)}; ours: {_mean(ours)}")
    print(f"{'launch':30} {'the SM':>9} {'ours':>9}")
    errors = []
    for name, truth, own in unseen(names or UNSEEN):
        print(f"{name:30} {truth or '-':>9} {_error(own, truth)}", flush=True)
        errors += [abs(own / truth - 1)] if truth else []
    print(f"ours: {_mean(errors)}")


if __name__ == "__main__":
    main()
