"""check-isa: the instructions that PTX is expanded to, beside those of its machine code."""

from __future__ import annotations

import argparse

from ppt_gpu.commands.arguments import AddCommand, add_gpu


def add(command: AddCommand) -> None:
    check = command("check-isa", run, "Compare our machine instructions of PTX with ptxas's, by pipe and operation.")
    check.add_argument("kernel", help="a .ptx or .cu file, a workload's .toml, or a sample's name")
    check.add_argument("--only", action="append", default=[], metavar="NAME", help="only this kernel of the file")
    add_gpu(check)


def run(arguments: argparse.Namespace) -> str:
    from ppt_gpu.exec.workload import Workload
    from ppt_gpu.exec.workload_bind import chosen_kernel
    from ppt_gpu.inputs import open_module
    from ppt_gpu.spec import load_gpu
    from ppt_gpu.validate.isa import check_module
    from ppt_gpu.validate.isa_table import kernels_text, to_json

    gpu = load_gpu(arguments.gpu, arguments.set)
    module = open_module(arguments.kernel, gpu.compute_capability)
    names = [chosen_kernel(Workload(module.path, module.path, module.path, ()), module, n) for n in arguments.only]
    found = check_module(module, gpu, names)
    return to_json("check-isa", found) if arguments.json else kernels_text(found)
