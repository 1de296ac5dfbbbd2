"""fit: the memory parameters of the MWP-CWP model, from the micro-benchmarks of its authors."""

from __future__ import annotations

import argparse

from ppt_gpu.spec import load_gpu
from ppt_gpu.validate.mwp.memory_fit import read_measurements, report, simulated_measurements


def run(arguments: argparse.Namespace) -> str:
    gpu = load_gpu(arguments.gpu, arguments.set)
    if arguments.measured:
        measurements, machine = read_measurements(arguments.measured, gpu), arguments.measured
    else:
        measurements, machine = simulated_measurements(gpu, arguments.iterations), "the simulation"
    return report(gpu, measurements, machine, as_json=arguments.json)
