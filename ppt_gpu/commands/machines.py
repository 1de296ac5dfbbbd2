"""machines: the shipped clusters, or everything about one."""

from __future__ import annotations

import argparse

from ppt_gpu.commands.options.arguments import terminal
from ppt_gpu.common.errors import PptError
from ppt_gpu.report.commands import machines
from ppt_gpu.spec.load_cluster import load_machine_spec


def run(arguments: argparse.Namespace) -> str:
    if arguments.name is None:
        if arguments.set:
            raise PptError("--set needs the name of a machine", hint="ppt-gpu machines dgx_h100 --set nic.count=4")
        return machines.listing(as_json=arguments.json, width=terminal()["width"])

    spec = load_machine_spec(arguments.name, arguments.set)
    return machines.sheet(spec, as_json=arguments.json, width=terminal()["width"])
