"""gpus and explain: what there is, and what it means."""

from __future__ import annotations

import argparse

from ppt_gpu.commands.options.arguments import terminal
from ppt_gpu.common.errors import PptError
from ppt_gpu.report.commands import gpus
from ppt_gpu.report.commands.explain import explain
from ppt_gpu.spec import load_gpu


def show_gpus(arguments: argparse.Namespace) -> str:
    if arguments.name is None:
        if arguments.set:
            raise PptError("--set needs the name of a GPU", hint="ppt-gpu gpus k40 --set sm.count=30")
        if arguments.isa:
            raise PptError("--isa needs the name of a GPU", hint="ppt-gpu gpus k40 --isa")
        return gpus.listing(as_json=arguments.json)

    gpu = load_gpu(arguments.name, arguments.set)
    return gpus.sheet(gpu, as_json=arguments.json, isa=arguments.isa, width=terminal()["width"])


def show_explain(arguments: argparse.Namespace) -> str:
    return explain(arguments.metric, as_json=arguments.json, width=terminal()["width"])
