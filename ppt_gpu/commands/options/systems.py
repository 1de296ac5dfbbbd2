"""Options of the commands for clusters, other cores and whole chips."""

from __future__ import annotations

import argparse

from ppt_gpu.commands.options.arguments import AddCommand, add_set, add_workload_options, blocks, count, size
from ppt_gpu.common.errors import PptError


def _add_cluster(command: AddCommand) -> None:
    cluster = command(
        "cluster", "cluster:run", "Simulate an application on a cluster of GPUs; in parallel under mpirun."
    )
    cluster.add_argument("application", help="a shipped application's name, a .py file, or a task graph (.json)")
    cluster.add_argument("--machine", required=True, help="a shipped machine's name or a TOML file")
    cluster.add_argument(
        "--nodes", type=counts, metavar="N[,N...]", help="nodes (default: of the machine); several scale"
    )
    cluster.add_argument(
        "-p",
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the application; with several node counts as many values may be given, with commas",
    )
    add_set(cluster)
    cluster.add_argument("--scaling", choices=("weak", "strong"), default="weak", help="what efficiency means")
    cluster.add_argument("--sensitivity", action="store_true", help="say what each parameter of the machine changes")
    cluster.add_argument("--digest", action="store_true", help="SHA-256 over every arrival and event time")
    cluster.add_argument("--full", action="store_true", help="simulate every rank, even if one node stands for all")
    cluster.add_argument(
        "--jitter", type=jitter, default=0.0, metavar="SHARE", help="kernels take up to so much longer"
    )
    cluster.add_argument("--seed", type=count, default=1, help="of the jitter (default: 1)")
    cluster.add_argument(
        "--placement", choices=("block", "round_robin"), default="block", help="which process simulates which nodes"
    )
    cluster.add_argument(
        "--queue", choices=("windows", "simpy"), default="windows", help="the event queue; simpy is the reference"
    )
    cluster.add_argument(
        "--partitions", type=count, default=1, metavar="N", help="simulate in N parts, as N processes would"
    )
    cluster.add_argument("--timeline", metavar="FILE", help="write the timeline of some ranks (.json, .json.gz)")
    cluster.add_argument("--ranks", type=ranks, default=(0,), metavar="R[,R...]", help="which ranks (default: 0)")
    cluster.add_argument("--plot", metavar="FILE", help="draw the scaling: .png, .svg or .pdf")
    cluster.add_argument("--no-cache", action="store_true", help="predict kernels again, and keep nothing")


def counts(text: str) -> list[int]:
    return [count(part) for part in text.split(",")]


def ranks(text: str) -> tuple[int, ...]:
    if not all(part.isdecimal() for part in text.split(",")):
        raise PptError(f"--ranks {text}: expected numbers with commas between them, such as 0,1,8")
    return tuple(int(part) for part in text.split(","))


def jitter(text: str) -> float:
    try:
        found = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise PptError(f"--jitter {text}: expected a share between 0 and 1, such as 0.05 or 5%")
    return found


def _add_machines(command: AddCommand) -> None:
    machines = command("machines", "machines:run", "List the shipped machines, or every number of one with its source.")
    machines.add_argument("name", nargs="?", help="a machine's name or TOML file")
    machines.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change one number, such as nic.count=4"
    )


def _add_port(command: AddCommand) -> None:
    port = command(
        "port", "port:run", "Predict a GPU kernel on CPU cores, or a CPU program on a GPU, and say with what error."
    )
    source = port.add_mutually_exclusive_group(required=True)
    source.add_argument("--from-gpu", dest="workload", metavar="WORKLOAD", help="a sample, .toml, .ptx or .cu file")
    source.add_argument("--from-cpu", metavar="FILE", help="counters: a CSV file, or the output of perf stat")
    source.add_argument("--from-ir", metavar="FILE", help="an intermediate representation, as -o writes it")
    port.add_argument("--to", required=True, metavar="NAME", help="a CPU core or GPU: shipped name or TOML file")
    add_set(port)
    add_workload_options(port)
    port.add_argument("--launch", type=count, metavar="N", help="only the N-th launch of a workload with several")
    port.add_argument("--blocks", type=blocks, metavar="all|N", help="blocks of the grid that are run (default: 16)")
    port.add_argument(
        "--counter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a counter that the file lacks, or another value",
    )
    port.add_argument("--cores", type=count, default=1, metavar="N", help="CPU cores (default: 1)")
    port.add_argument(
        "--parallel", type=share, metavar="SHARE", help="share that can be parallel (default: of the source)"
    )
    port.add_argument("--threads", type=count, metavar="N", help="threads of a block on the GPU (default: the fastest)")
    port.add_argument("--own-ilp", action="store_true", help="ILP of the kernel instead of the dissertation's 6.2")
    port.add_argument("--on-chip", type=size, metavar="SIZE", help="on-chip memory added to the footprint (Eq 5.1)")
    port.add_argument("--literal", action="store_true", help="the dissertation's equations and rules as printed")
    port.add_argument("--explain", action="store_true", help="every equation with its numbers")
    port.add_argument("--sensitivity", action="store_true", help="how the time moves with each input")
    port.add_argument("-o", "--output-ir", metavar="FILE", help="write the intermediate representation")


def share(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise PptError(f"'{text}' is no share: expected 0 to 1")
    return found


def _add_darksilicon(command: AddCommand) -> None:
    dark = command(
        "darksilicon", "darksilicon:run", "Project the fastest chips within a budget of area and power, node by node."
    )
    _add_chip_inputs(dark)
    dark.add_argument(
        "--scaling",
        action="append",
        metavar="NAME|FILE",
        help="device scaling: itrs, conservative, foundry_speed, foundry_power, or a .toml or .csv of your own; may be "
        "repeated (default: conservative and itrs)",
    )
    dark.add_argument("--node", action="append", default=[], help="only this technology node; may be repeated")
    dark.add_argument("--organisation", action="append", default=[], help="only cpu or gpu chips")
    dark.add_argument(
        "--topology", action="append", default=[], help="only symmetric, asymmetric, dynamic or composed chips"
    )
    dark.add_argument(
        "--figure",
        default="3.4",
        help="which of Blem's figures: 3.4 (default), 3.5 (both sweeps), 4.16 (known cores that fit), or kernels on "
        "known cores by the upper-bound (4.17) and the custom models (4.18), inputs off at random (5.6)",
    )
    dark.add_argument("--cores", default="blem", metavar="NAME|FILE", help="known cores of 4.16 to 5.6 (default: blem)")
    dark.add_argument(
        "--kernel",
        action="append",
        default=[],
        metavar="WORKLOAD",
        help="a kernel of 4.17 to 5.6, as for predict; may be repeated (default: eight samples)",
    )
    sweep = command(
        "upperbound",
        "darksilicon:run_sweeps",
        "Sweep one assumption of the projection: area, power, L2, bandwidth, SMT.",
    )
    sweep.add_argument("sweep", help="area, power, l2-share, bandwidth, smt or parallel")
    sweep.add_argument("values", nargs="*", type=float, help="values of the sweep (default: its usual ones)")
    _add_chip_inputs(sweep)
    sweep.add_argument("--scaling", default="itrs", metavar="NAME|FILE", help="device scaling (default: itrs)")
    sweep.add_argument("--node", default="45nm", help="technology node (default: 45nm)")
    sweep.add_argument("--organisation", default="cpu", help="cpu (default) or gpu")
    sweep.add_argument("--topology", default="symmetric", help="symmetric (default), asymmetric, dynamic or composed")


def _add_chip_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--suite", default="parsec", metavar="NAME|FILE", help="benchmarks (default: parsec)")
    parser.add_argument("--benchmark", help="only this benchmark of the suite")
    parser.add_argument("--study", default="isca11", metavar="NAME|FILE", help="assumptions (default: isca11)")
    parser.add_argument("--budget", metavar="W,MM2", help='what the cores may take, such as "125 W,111 mm2"')
    parser.add_argument("--plot", metavar="FILE", help="draw the speedups: .png, .svg or .pdf")
    add_set(parser)


def add(command: AddCommand) -> None:
    _add_cluster(command)
    _add_darksilicon(command)
    _add_machines(command)
    _add_port(command)
