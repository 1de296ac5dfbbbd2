"""predict: the run time of a workload on a GPU."""

from __future__ import annotations

import argparse
from contextlib import nullcontext

from ppt_gpu.commands.opened import gpu_files, open_from
from ppt_gpu.commands.options.arguments import terminal
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.outputs import check_outputs
from ppt_gpu.inputs import files_of
from ppt_gpu.pipeline import predict
from ppt_gpu.sm.precompile import loop_beside
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.npy_file import inputs_may_be_absent

#: options that ask for more than a report
_MORE = ("html", "plot", "timeline", "warps", "pressure", "explain", "window")


def run(arguments: argparse.Namespace) -> str:
    with loop_beside():
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> str:
    outputs = None
    if any(getattr(arguments, name) for name in _MORE):
        from ppt_gpu.commands.predict_outputs import outputs_of  # pictures and timelines: few ask for them

        outputs = outputs_of(arguments)
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
        from ppt_gpu.commands.studies import options_of  # as the next: other predictions than this one
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
        window=outputs.window if outputs else None,
    )
    if arguments.advise:
        result = advised(result, workload, arguments.gpu, arguments.set, options_of(arguments))
    if outputs:
        outputs.write(result)
    if arguments.json:
        from ppt_gpu.report.json import to_json

        return to_json(result) + "\n"
    from ppt_gpu.report.text.text import render

    return render(result, **terminal(), more=outputs.sections if outputs else ())
