"""machines: the shipped clusters, or everything about one."""

from __future__ import annotations

import argparse

from ppt_gpu.commands.arguments import AddCommand, terminal
from ppt_gpu.common.errors import PptError


def add(command: AddCommand) -> None:
    machines = command("machines", _machines, "List the shipped machines, or every number of one with its source.")
    machines.add_argument("name", nargs="?", help="a machine's name or TOML file")
    machines.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change one number, such as nic.count=4"
    )


def _machines(arguments: argparse.Namespace) -> str:
    from ppt_gpu.report.commands import machines

    if arguments.name is None:
        if arguments.set:
            raise PptError("--set needs the name of a machine", hint="ppt-gpu machines dgx_h100 --set nic.count=4")
        return machines.listing(as_json=arguments.json, width=terminal()["width"])
    from ppt_gpu.spec.load_cluster import load_machine_spec

    spec = load_machine_spec(arguments.name, arguments.set)
    return machines.sheet(spec, as_json=arguments.json, width=terminal()["width"])
