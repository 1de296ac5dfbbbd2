"""compare: the simulation beside every analytical model, on the same input; or two saved results."""

from __future__ import annotations

import argparse

from ppt_gpu.commands.opened import open_from
from ppt_gpu.commands.options.arguments import terminal
from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.comparison import compare
from ppt_gpu.explore.saved import differences
from ppt_gpu.models.registry import find_model
from ppt_gpu.report import compare as comparison_report
from ppt_gpu.report import differences as differences_report
from ppt_gpu.report.differences import Part, Row
from ppt_gpu.sm.precompile import loop_beside

SAVED = ".json"


def run(arguments: argparse.Namespace) -> str:
    if arguments.other is not None or arguments.workload.endswith(SAVED):
        return _saved(arguments)
    if arguments.gpu is None:
        raise PptError("--gpu is missing", hint="or two saved results: ppt-gpu compare a.json b.json")
    with loop_beside():
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> str:
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
    if arguments.json:
        return comparison_report.to_json(found, explain)
    return comparison_report.render(found, explain=explain, **terminal())


def _saved(arguments: argparse.Namespace) -> str:
    """Two saved results beside each other."""
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
        return differences_report.to_json(found.names, found.of, found.times, parts, notes)
    return differences_report.render(found.of, found.times, parts, notes, **terminal())
