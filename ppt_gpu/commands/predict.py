"""predict: the run time of a workload on a GPU."""

from __future__ import annotations

import argparse

from ppt_gpu.commands.arguments import (
    AddCommand,
    add_approximate,
    add_gpu,
    add_threads,
    add_workload,
    blocks,
    count,
    gpu_files,
    open_from,
    options_of,
    size,
    terminal,
)
from ppt_gpu.commands.predict_outputs import add_outputs, check_kinds, sections_of, window_of, write_outputs
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.policies import POLICIES


def add(command: AddCommand) -> None:
    predict = command("predict", run, "Predict the run time of a kernel and say what limits it.")
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
    add_outputs(predict)


def run(arguments: argparse.Namespace) -> str:
    from ppt_gpu.sm.precompile import loop_beside

    with loop_beside():
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> str:
    from contextlib import nullcontext

    from ppt_gpu.common.outputs import check_outputs
    from ppt_gpu.inputs import files_of
    from ppt_gpu.pipeline import predict
    from ppt_gpu.workload.budget import Budget
    from ppt_gpu.workload.npy_file import inputs_may_be_absent

    check_kinds(arguments)
    if arguments.advise and (arguments.trace_in or arguments.no_cache):
        raise PptError("--advise runs other forms of the kernel", hint="without --trace-in and --no-cache")
    limits = {
        "instructions": arguments.max_instructions,
        "memory": arguments.max_memory,
        "trace": arguments.max_trace,
    }
    with inputs_may_be_absent() if arguments.trace_in else nullcontext():
        workload = open_from(arguments)
    check_outputs(
        (arguments.trace_out, arguments.html, arguments.plot, arguments.timeline),
        lambda: (*files_of(workload), *gpu_files(arguments), arguments.trace_in),
    )
    if arguments.advise:
        from ppt_gpu.explore.advice import advised, check_advisable

        check_advisable(workload)
    result = predict(
        workload,
        arguments.gpu,
        overrides=arguments.set,
        level=arguments.level,
        blocks=arguments.blocks,
        policy=arguments.policy,
        approximate=arguments.approximate,
        strict=arguments.strict,
        assume=arguments.assume,
        budget=Budget(**{name: limit for name, limit in limits.items() if limit is not None}),
        cache=not arguments.no_cache,
        trace_in=arguments.trace_in,
        trace_out=arguments.trace_out,
        window=window_of(arguments),
    )
    if arguments.advise:
        result = advised(result, workload, arguments.gpu, arguments.set, options_of(arguments))
    write_outputs(arguments, result)
    if arguments.json:
        from ppt_gpu.report.json import to_json

        return to_json(result) + "\n"
    from ppt_gpu.report.text.text import render

    return render(result, **terminal(), more=sections_of(arguments))
