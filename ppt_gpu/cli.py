"""The command line: `ppt-gpu`, `python -m ppt_gpu`, `python run_sim.py`. Heavy imports wait for the command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ppt_gpu.errors import PptError, did_you_mean

EXAMPLES = """\
examples:
  ppt-gpu predict sgemm --gpu k40
  ppt-gpu predict my.cu --gpu a100 --grid 4096 --block 256 --arg 'f32[1048576]=random' --arg i32=1048576
  ppt-gpu predict my.ptx --gpu my_gpu.toml --grid 64,64 --block 16,16 --arg 'f32[1048576]=random' --arg i32=1024
  ppt-gpu predict sgemm --gpu k40 --set sm.count=30 --json
  ppt-gpu gpus k40
"""


class _Parser(argparse.ArgumentParser):
    """Argument errors in the form of every other error, with the nearest valid name."""

    def error(self, message: str) -> NoReturn:
        raise PptError(message, hint=f"see: {self.prog} --help")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            what = "command" if action.dest == "command" else (action.option_strings or [action.dest])[0]
            raise PptError(f"unknown {what} '{value}'", hint=did_you_mean(str(value), names))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, or 2 after printing one clear error on standard error."""
    try:
        arguments = _parser().parse_args(argv)
        output = arguments.run(arguments)
        _write(output, getattr(arguments, "output", None))
    except PptError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return 0


def _write(text: str, path: str | None) -> None:
    if path is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise PptError(f"cannot write: {error.strerror}", path=path) from error


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="ppt-gpu",
        description="Predicts how long a GPU kernel takes, without the GPU.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[argparse.Namespace], str], text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        added.add_argument("--json", action="store_true", help="one JSON document on standard output")
        return added

    predict = command("predict", _predict, "Predict the run time of a kernel and say what limits it.")
    _add_workload(predict)
    _add_gpu(predict)
    predict.add_argument("--level", choices=("steady", "workload"), default="steady", help="fidelity (default: steady)")
    predict.add_argument(
        "--blocks",
        type=_blocks,
        default="sample",
        metavar="sample|all|N",
        help="blocks run to see whether they differ (default: sample, more of them while they do)",
    )
    predict.add_argument("--policy", choices=("lrr", "gto", "gto_launch", "two_level"), help="warp scheduler policy")
    predict.add_argument(
        "--max-instructions",
        type=_count,
        metavar="N",
        help="budget of warp instructions of a functional run (default: 1000000000)",
    )
    predict.add_argument(
        "--max-memory", type=_bytes, metavar="SIZE", help="budget of device memory, such as '8 GiB' (the default)"
    )
    predict.add_argument(
        "--max-trace", type=_bytes, metavar="SIZE", help="budget of the trace of a run, such as '4 GiB' (the default)"
    )
    predict.add_argument("--strict", action="store_true", help="a warning is an error")
    predict.add_argument("--no-cache", action="store_true", help="run the kernels again, and keep no traces")
    predict.add_argument("--trace-out", metavar="FILE", help="write the traces to a file (docs/trace.md)")
    predict.add_argument(
        "--trace-in", metavar="FILE", help="take the traces from a file instead of running the kernels"
    )

    translate = command("translate", _translate, "Run a kernel functionally and write it as an editable task list.")
    _add_workload(translate)
    translate.add_argument("-o", "--output", metavar="FILE", help="write here instead of standard output")

    gpus = command("gpus", _gpus, "List the shipped GPUs, or every number of one with its source.")
    gpus.add_argument("name", nargs="?", help="a GPU's name or TOML file")
    _add_set(gpus)

    check = command("check", _check, "Read a PTX, GPU, workload, task-list or trace file and report every error in it.")
    check.add_argument("file")

    cache = command("cache", _cache, "Show what is kept between predictions, and where; or remove it.")
    cache.add_argument("--clear", action="store_true", help="remove it all")

    explain = command("explain", _explain, "Say what a metric means and where it comes from.")
    explain.add_argument("metric", nargs="?", help="a tag, such as kernel.time; none lists them all")

    validate = command("validate", _validate, "Predict a set of reference cases and print the errors.")
    validate.add_argument("set", nargs="?", default="gpgpusim", help="the set: gpgpusim (default) or coverage")
    validate.add_argument("--case", action="append", default=[], metavar="TEXT", help="only cases whose name has TEXT")
    return parser


def _blocks(text: str) -> str | int:
    if text in ("sample", "all"):
        return text
    if not text.isdecimal() or int(text) < 1:
        raise PptError(f"--blocks {text}: expected sample, all or a positive number")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise PptError(f"'{text}' is not a positive number")
    return int(text)


def _bytes(text: str) -> int:
    from ppt_gpu.units import parse_quantity

    try:
        return int(parse_quantity(text, "bytes"))
    except ValueError as error:
        raise PptError(str(error)) from None


def _add_workload(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("workload", help="a sample's name, or a .toml, .ptx, .cu or .tl file")
    parser.add_argument("--kernel", metavar="NAME", help="kernel of a file with several, as in C++ or as in PTX")
    parser.add_argument("--grid", metavar="X[,Y[,Z]]", help="blocks in the grid (.ptx, .cu and .tl files)")
    parser.add_argument("--block", metavar="X[,Y[,Z]]", help="threads in a block (.ptx and .cu files)")
    parser.add_argument("--cluster", metavar="X[,Y[,Z]]", help="blocks in a cluster (.ptx and .cu files)")
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="TYPE[COUNT]=INIT",
        help="kernel argument, in order: 'f32[1048576]=random', 'f32[64]=npy:x.npy', i32=1024",
    )
    parser.add_argument(
        "--dynamic-shared", type=int, default=0, metavar="BYTES", help="dynamic shared memory of a block"
    )
    parser.add_argument(
        "--assume",
        action="append",
        default=[],
        metavar="OPCODE=CLASS",
        help="time a PTX instruction as fp32, tensor, ... without executing it",
    )
    parser.add_argument(
        "--registers",
        metavar="N|ptxas|estimate",
        help="registers per thread (default: the workload's; of a .cu from ptxas if there is one; else an estimate)",
    )
    parser.add_argument(
        "--nvcc-option",
        action="append",
        default=[],
        metavar="OPTION",
        help="option for the compiler of a .cu file, such as --nvcc-option=-DTILE=32",
    )


def _add_gpu(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gpu", required=True, help="a shipped GPU's name or a TOML file")
    _add_set(parser)


def _add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change one number, such as sm.count=30"
    )


def _workload(arguments: argparse.Namespace) -> Any:
    from ppt_gpu.inputs import open_workload

    return open_workload(
        arguments.workload,
        kernel=arguments.kernel,
        grid=arguments.grid,
        block=arguments.block,
        cluster=arguments.cluster,
        args=arguments.arg,
        dynamic_shared=arguments.dynamic_shared,
        registers=arguments.registers,
        compiler_options=arguments.nvcc_option,
    )


def _predict(arguments: argparse.Namespace) -> str:
    from contextlib import nullcontext

    from ppt_gpu.exec.budget import Budget
    from ppt_gpu.exec.npy_file import inputs_may_be_absent
    from ppt_gpu.pipeline import predict

    limits = {
        "instructions": arguments.max_instructions,
        "memory": arguments.max_memory,
        "trace": arguments.max_trace,
    }
    with inputs_may_be_absent() if arguments.trace_in else nullcontext():
        workload = _workload(arguments)
    result = predict(
        workload,
        arguments.gpu,
        overrides=arguments.set,
        level=arguments.level,
        blocks=arguments.blocks,
        policy=arguments.policy,
        strict=arguments.strict,
        assume=arguments.assume,
        budget=Budget(**{name: limit for name, limit in limits.items() if limit is not None}),
        cache=not arguments.no_cache,
        trace_in=arguments.trace_in,
        trace_out=arguments.trace_out,
    )
    if arguments.json:
        from ppt_gpu.report.json import to_json

        return to_json(result) + "\n"
    from ppt_gpu.report.text import render

    return render(result, **_terminal())


def _terminal() -> dict[str, Any]:
    """Colours and the terminal's width when a person looks, a fixed plain page when a program does."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return {"width": 120, "color": False}
    import shutil

    return {"width": max(60, min(160, shutil.get_terminal_size().columns)), "color": True}


def _translate(arguments: argparse.Namespace) -> str:
    from ppt_gpu.pipeline import translate

    text = translate(_workload(arguments), assume=arguments.assume)
    if arguments.json:
        import json

        return json.dumps({"schema": 1, "tasklist": text}, indent=2) + "\n"
    return text


def _gpus(arguments: argparse.Namespace) -> str:
    from ppt_gpu.report import gpus

    if arguments.name is None:
        if arguments.set:
            raise PptError("--set needs the name of a GPU", hint="ppt-gpu gpus k40 --set sm.count=30")
        return gpus.listing(as_json=arguments.json)
    from ppt_gpu.spec import load_gpu

    return gpus.sheet(load_gpu(arguments.name, arguments.set), as_json=arguments.json)


def _check(arguments: argparse.Namespace) -> str:
    from ppt_gpu.inputs import check

    lines = check(arguments.file)
    if arguments.json:
        import json

        return json.dumps({"schema": 1, "file": arguments.file, "ok": True, "found": lines}, indent=2) + "\n"
    return "".join(f"{line}\n" for line in lines)


def _cache(arguments: argparse.Namespace) -> str:
    from ppt_gpu.report.cache import cache_report

    return cache_report(clear=arguments.clear, as_json=arguments.json)


def _explain(arguments: argparse.Namespace) -> str:
    from ppt_gpu.report.explain import explain

    return explain(arguments.metric, as_json=arguments.json)


def _validate(arguments: argparse.Namespace) -> str:
    from ppt_gpu.validate import validate

    return validate(arguments.set, arguments.case, as_json=arguments.json)


if __name__ == "__main__":
    raise SystemExit(main())
