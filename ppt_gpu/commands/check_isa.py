"""check-isa: the instructions that PTX is expanded to, beside those of its machine code."""

from __future__ import annotations

import argparse

from ppt_gpu.inputs import open_module
from ppt_gpu.spec import load_gpu
from ppt_gpu.validate.isa.expansions import check_latencies, check_module
from ppt_gpu.validate.isa.table import kernels_text, latencies_text, to_json
from ppt_gpu.workload.binding import chosen_kernel
from ppt_gpu.workload.workload import Workload


def run(arguments: argparse.Namespace) -> str:
    gpu = load_gpu(arguments.gpu, arguments.set)
    module = open_module(arguments.kernel, gpu.compute_capability)
    names = [chosen_kernel(Workload(module.path, module.path, module.path, ()), module, n) for n in arguments.only]
    found = check_module(module, gpu, names)
    shown = check_latencies(module, gpu) if arguments.latencies else []
    if arguments.json:
        return to_json("check-isa", found, shown)
    return kernels_text(found) + (f"\n{latencies_text(shown)}" if arguments.latencies else "")
