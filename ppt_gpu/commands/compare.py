"""compare: the simulation beside every analytical model, on the same input."""

from __future__ import annotations

import argparse

from ppt_gpu.commands.arguments import AddCommand, add_gpu, add_workload, blocks, open_from, terminal
from ppt_gpu.errors import PptError, did_you_mean


def add(command: AddCommand) -> None:
    compare = command("compare", run, "Hold the simulation of a kernel against every analytical model.")
    add_workload(compare)
    add_gpu(compare)
    compare.add_argument("--policy", choices=("lrr", "gto", "gto_launch", "two_level"), help="warp scheduler policy")
    compare.add_argument(
        "--literal", action="store_true", help="equations as printed, where their authors erred (docs/models.md)"
    )
    compare.add_argument("--model", action="append", default=[], metavar="NAME", help="only this model; repeatable")
    compare.add_argument("--explain", metavar="MODEL", help="show this model equation by equation")
    compare.add_argument("--caches", action="store_true", help="hit rates too: of the simulation and of cache models")
    compare.add_argument(
        "--blocks", type=blocks, default="sample", metavar="sample|all|N", help="blocks run to see whether they differ"
    )
    compare.add_argument("--no-cache", action="store_true", help="run and simulate again, and keep nothing")


def run(arguments: argparse.Namespace) -> str:
    from ppt_gpu.analytic.models import find_model
    from ppt_gpu.comparison import compare
    from ppt_gpu.report.compare import render, to_json

    explain = arguments.explain
    if explain:
        find_model(explain)
        if arguments.model and explain not in arguments.model:
            raise PptError(
                f"--explain {explain}: not among the models asked for", hint=did_you_mean(explain, arguments.model)
            )
    found = compare(
        open_from(arguments),
        arguments.gpu,
        overrides=arguments.set,
        policy=arguments.policy,
        literal=arguments.literal,
        only=arguments.model,
        caches=arguments.caches,
        blocks=arguments.blocks,
        assume=arguments.assume,
        cache=not arguments.no_cache,
    )
    return to_json(found, explain) if arguments.json else render(found, explain=explain, **terminal())
