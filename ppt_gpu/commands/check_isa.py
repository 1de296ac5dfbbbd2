"""check-isa: the instructions that PTX is expanded to, beside those of its machine code."""

from __future__ import annotations

import argparse

from ppt_gpu.commands.arguments import AddCommand, add_gpu


def add(command: AddCommand) -> None:
    check = command("check-isa", run, "Compare our machine instructions of PTX with ptxas's, by pipe and operation.")
    check.add_argument("kernel", help="a .ptx or .cu file, a workload's .toml, or a sample's name")
    check.add_argument("--only", action="append", default=[], metavar="NAME", help="only this kernel of the file")
    check.add_argument("--latencies", action="store_true", help="also latencies, from the stall counts of the code")
    add_gpu(check)


def run(arguments: argparse.Namespace) -> str:
    from ppt_gpu.inputs import open_module
    from ppt_gpu.spec import load_gpu
    from ppt_gpu.validate.isa.expansions import check_latencies, check_module
    from ppt_gpu.validate.isa.table import kernels_text, latencies_text, to_json
    from ppt_gpu.workload.binding import chosen_kernel
    from ppt_gpu.workload.workload import Workload

    gpu = load_gpu(arguments.gpu, arguments.set)
    module = open_module(arguments.kernel, gpu.compute_capability)
    names = [chosen_kernel(Workload(module.path, module.path, module.path, ()), module, n) for n in arguments.only]
    found = check_module(module, gpu, names)
    shown = check_latencies(module, gpu) if arguments.latencies else []
    if arguments.json:
        return to_json("check-isa", found, shown)
    return kernels_text(found) + (f"\n{latencies_text(shown)}" if arguments.latencies else "")
