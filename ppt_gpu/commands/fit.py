"""fit: the memory parameters of the MWP-CWP model, from the micro-benchmarks of its authors."""

from __future__ import annotations

import argparse

from ppt_gpu.commands.arguments import AddCommand, add_gpu, count


def add(command: AddCommand) -> None:
    fit = command("fit", _fit, "Fit Mem_LD and the departure delays of Hong and Kim's model to their micro-benchmarks.")
    add_gpu(fit)
    fit.add_argument(
        "--measured", metavar="FILE", help="CSV of measured times (docs/mwp_cwp.md); default: the simulation's"
    )
    fit.add_argument("--iterations", type=count, default=200, metavar="N", help="of each loop that is simulated")


def _fit(arguments: argparse.Namespace) -> str:
    from ppt_gpu.spec import load_gpu
    from ppt_gpu.validate.mwp.measured_times import read_measurements
    from ppt_gpu.validate.mwp.memory_fit import report, simulated_measurements

    gpu = load_gpu(arguments.gpu, arguments.set)
    if arguments.measured:
        measurements, machine = read_measurements(arguments.measured, gpu), arguments.measured
    else:
        measurements, machine = simulated_measurements(gpu, arguments.iterations), "the simulation"
    return report(gpu, measurements, machine, as_json=arguments.json)
