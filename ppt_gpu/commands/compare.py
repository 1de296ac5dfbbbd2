"""compare: the simulation beside every analytical model, on the same input; or two saved results."""

from __future__ import annotations

import argparse

from ppt_gpu.commands.arguments import AddCommand, add_gpu, add_workload, blocks, open_from, terminal
from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.common.policies import POLICIES

SAVED = ".json"


def add(command: AddCommand) -> None:
    text = "Hold the simulation of a kernel against every analytical model, or two saved results against each other."
    compare = command("compare", run, text)
    add_workload(compare)
    compare.add_argument("other", nargs="?", help="with a result of predict --json as WORKLOAD: another one")
    add_gpu(compare, required=False)
    compare.add_argument("--policy", choices=POLICIES, help="warp scheduler policy")
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
    from ppt_gpu.sm.precompile import loop_beside

    if arguments.other is not None or arguments.workload.endswith(SAVED):
        return _saved(arguments)
    if arguments.gpu is None:
        raise PptError("--gpu is missing", hint="or two saved results: ppt-gpu compare a.json b.json")
    with loop_beside():
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> str:
    from ppt_gpu.comparison import compare
    from ppt_gpu.models.registry import find_model
    from ppt_gpu.report.commands.compare import render, to_json

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


def _saved(arguments: argparse.Namespace) -> str:
    """Two saved results beside each other."""
    from ppt_gpu.explore.saved import differences
    from ppt_gpu.report.commands.differences import Part, Row, render, to_json

    if arguments.other is None:
        raise PptError(f"{arguments.workload}: a saved result needs another one", hint="ppt-gpu compare a.json b.json")
    if not (arguments.workload.endswith(SAVED) and arguments.other.endswith(SAVED)):
        hint = "ppt-gpu compare a.json b.json, or ppt-gpu compare WORKLOAD --gpu GPU"
        raise PptError(f"{arguments.workload} and {arguments.other}: two files are two saved results", hint=hint)
    if arguments.gpu or arguments.set or arguments.model or arguments.explain:
        raise PptError("two saved results are compared as they are", hint="without --gpu, --set, --model and --explain")
    found = differences(arguments.workload, arguments.other)
    parts = [
        Part(
            launch.kernel,
            {
                title: [Row(one.name, one.unit, one.before, one.after, one.ratio) for one in rows if one.seen]
                for title, rows in (
                    ("metric", launch.metrics),
                    ("warp cycles by reason", launch.stalls),
                    ("bound", launch.bounds),
                )
            },
        )
        for launch in found.launches
    ]
    notes = [
        f"only in {name}: {', '.join(kernels)}"
        for name, kernels in zip(found.names, found.alone, strict=True)
        if kernels
    ]
    if arguments.json:
        return to_json(found.names, found.of, found.times, parts, notes)
    return render(found.of, found.times, parts, notes, **terminal())
