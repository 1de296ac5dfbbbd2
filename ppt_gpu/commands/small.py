"""The small commands: gpus, check, cache, explain, validate."""

from __future__ import annotations

import argparse

from ppt_gpu.commands.arguments import AddCommand, add_set, terminal
from ppt_gpu.common.errors import PptError
from ppt_gpu.validate import SETS


def add(command: AddCommand) -> None:
    gpus = command("gpus", _gpus, "List the shipped GPUs, or every number of one with its source.")
    gpus.add_argument("name", nargs="?", help="a GPU's name or TOML file")
    gpus.add_argument("--isa", action="store_true", help="with the numbers of its instructions")
    add_set(gpus)

    check = command("check", _check, "Read any input file and report every error in it.")
    check.add_argument("file")

    cache = command("cache", _cache, "Show what is kept between predictions, and where; or remove it.")
    cache.add_argument("action", nargs="?", choices=("info", "clear"), default="info", help="show (default) or remove")
    cache.add_argument("--clear", action="store_true", help="the same as clear")

    explain = command("explain", _explain, "Say what a metric means and where it comes from.")
    explain.add_argument(
        "metric", nargs="?", help="a tag, such as kernel.time, a stall reason or a model; none lists them"
    )

    validate = command("validate", _validate, "Predict a set of reference cases and print the errors.")
    validate.add_argument("set", nargs="?", default="gpgpusim", help=f"the set: {', '.join(SETS)} (default: gpgpusim)")
    validate.add_argument("--case", action="append", default=[], metavar="TEXT", help="only cases whose name has TEXT")
    validate.add_argument(
        "--capture", action="append", default=[], metavar="FILE", help="measured: only this file of the capture kit"
    )
    validate.add_argument(
        "--level", choices=("steady", "workload", "grid"), default="steady", help="of set gpgpusim (default: steady)"
    )
    validate.add_argument(
        "--speed", action="store_true", help="gpgpusim: CPU seconds beside the reference's, and equal counts"
    )
    validate.add_argument("--plot", default="", metavar="FILE", help="draw the set's figure: .png, .svg or .pdf")


def _gpus(arguments: argparse.Namespace) -> str:
    from ppt_gpu.report.commands import gpus

    if arguments.name is None:
        if arguments.set:
            raise PptError("--set needs the name of a GPU", hint="ppt-gpu gpus k40 --set sm.count=30")
        if arguments.isa:
            raise PptError("--isa needs the name of a GPU", hint="ppt-gpu gpus k40 --isa")
        return gpus.listing(as_json=arguments.json)
    from ppt_gpu.spec import load_gpu

    gpu = load_gpu(arguments.name, arguments.set)
    return gpus.sheet(gpu, as_json=arguments.json, isa=arguments.isa, width=terminal()["width"])


def _check(arguments: argparse.Namespace) -> str:
    from ppt_gpu.inputs import check
    from ppt_gpu.multicore.port.check import check_file

    lines = check_file(arguments.file) or check(arguments.file)
    if arguments.json:
        import json

        return json.dumps({"schema": 1, "file": arguments.file, "ok": True, "found": lines}, indent=2) + "\n"
    return "".join(f"{line}\n" for line in lines)


def _cache(arguments: argparse.Namespace) -> str:
    from ppt_gpu.report.commands.cache import cache_report

    return cache_report(clear=arguments.clear or arguments.action == "clear", as_json=arguments.json)


def _explain(arguments: argparse.Namespace) -> str:
    from ppt_gpu.report.commands.explain import explain

    return explain(arguments.metric, as_json=arguments.json, width=terminal()["width"])


def _validate(arguments: argparse.Namespace) -> str:
    from ppt_gpu.validate import validate

    return validate(
        arguments.set,
        arguments.case,
        as_json=arguments.json,
        plot=arguments.plot,
        captures=arguments.capture,
        level=arguments.level,
        speed=arguments.speed,
    )
