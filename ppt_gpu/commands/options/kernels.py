"""Options of the commands for one kernel, and of the small commands. Heavy imports wait for what runs them."""

from __future__ import annotations

import argparse

from ppt_gpu.commands.options.arguments import (
    AddCommand,
    add_approximate,
    add_gpu,
    add_set,
    add_threads,
    add_workload,
    blocks,
    count,
    size,
)
from ppt_gpu.common.policies import POLICIES
from ppt_gpu.validate import SETS


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--html", metavar="FILE", help="write the report as one page for a browser (.html)")
    parser.add_argument(
        "--timeline",
        metavar="FILE",
        help="write what one SM does, cycle by cycle, for a trace viewer (.json, .json.gz)",
    )
    parser.add_argument("--plot", metavar="FILE", help="draw roofline and CPI stacks: .png, .svg or .pdf")
    parser.add_argument("--warps", action="store_true", help="show what warps do over time, a letter a stall reason")
    parser.add_argument("--pressure", action="store_true", help="show how each line occupies the execution pipes")
    parser.add_argument(
        "--explain", action="append", default=[], metavar="METRIC", help="say how this number comes about; repeatable"
    )
    parser.add_argument(
        "--window",
        metavar="FIRST:CYCLES",
        help="cycles of the simulated SM that timelines show (default: 0:2000)",
    )


def _add_predict(command: AddCommand) -> None:
    predict = command("predict", "predict:run", "Predict the run time of a kernel and say what limits it.")
    add_workload(predict)
    add_gpu(predict)
    predict.add_argument(
        "--level", choices=("steady", "workload", "grid"), default="steady", help="fidelity (default: steady)"
    )
    predict.add_argument(
        "--blocks",
        type=blocks,
        default="sample",
        metavar="sample|all|N",
        help="blocks run to see whether they differ (default: sample, more of them while they do)",
    )
    add_threads(predict)
    predict.add_argument("--policy", choices=POLICIES, help="warp scheduler policy")
    add_approximate(predict)
    predict.add_argument(
        "--max-instructions",
        type=count,
        metavar="N",
        help="budget of warp instructions of a functional run (default: 1000000000)",
    )
    predict.add_argument(
        "--max-memory", type=size, metavar="SIZE", help="budget of device memory, such as '8 GiB' (the default)"
    )
    predict.add_argument(
        "--max-trace", type=size, metavar="SIZE", help="budget of the trace of a run, such as '4 GiB' (the default)"
    )
    predict.add_argument("--strict", action="store_true", help="a warning is an error")
    predict.add_argument("--no-cache", action="store_true", help="run the kernels again, and keep no traces")
    predict.add_argument("--trace-out", metavar="FILE", help="write the traces to a file (docs/trace.md)")
    predict.add_argument(
        "--trace-in", metavar="FILE", help="take the traces from a file instead of running the kernels"
    )
    predict.add_argument("--advise", action="store_true", help="simulate changes of the kernel and say which help")
    _add_outputs(predict)


def _add_compare(command: AddCommand) -> None:
    text = "Hold the simulation of a kernel against every analytical model, or two saved results against each other."
    compare = command("compare", "compare:run", text)
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


def _add_translate(command: AddCommand) -> None:
    translate = command(
        "translate", "translate:run", "Write a kernel as an editable task list, from a run of it or from its code."
    )
    add_workload(translate)
    translate.add_argument(
        "--trip",
        action="append",
        default=[],
        metavar="LABEL=N",
        help="how often a loop of machine code runs (.sass and .cubin files)",
    )
    translate.add_argument("-o", "--output", metavar="FILE", help="write here instead of standard output")


def _add_check_isa(command: AddCommand) -> None:
    check = command(
        "check-isa", "check_isa:run", "Compare our machine instructions of PTX with ptxas's, by pipe and operation."
    )
    check.add_argument("kernel", help="a .ptx or .cu file, a workload's .toml, or a sample's name")
    check.add_argument("--only", action="append", default=[], metavar="NAME", help="only this kernel of the file")
    check.add_argument("--latencies", action="store_true", help="also latencies, from the stall counts of the code")
    add_gpu(check)


def _add_others(command: AddCommand) -> None:
    gpus = command("gpus", "show:show_gpus", "List the shipped GPUs, or every number of one with its source.")
    gpus.add_argument("name", nargs="?", help="a GPU's name or TOML file")
    gpus.add_argument("--isa", action="store_true", help="with the numbers of its instructions")
    add_set(gpus)

    check = command("check", "check:run", "Read any input file and report every error in it.")
    check.add_argument("file")

    cache = command("cache", "cache:run", "Show what is kept between predictions, and where; or remove it.")
    cache.add_argument("action", nargs="?", choices=("info", "clear"), default="info", help="show (default) or remove")
    cache.add_argument("--clear", action="store_true", help="the same as clear")

    explain = command("explain", "show:show_explain", "Say what a metric means and where it comes from.")
    explain.add_argument(
        "metric", nargs="?", help="a tag, such as kernel.time, a stall reason or a model; none lists them"
    )

    validate = command("validate", "validate:run", "Predict a set of reference cases and print the errors.")
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


def add(command: AddCommand) -> None:
    _add_predict(command)
    _add_compare(command)
    _add_translate(command)
    _add_check_isa(command)
    _add_others(command)
