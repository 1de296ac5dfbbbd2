"""The set `cluster`: collectives and messages measured on clusters, against the machines that stand for them.

NCCL's all-reduce, Alps' osu_bw and osu_alltoall, and systems that nothing was fitted to. Parameters are a machine's,
never a row's. osu_bw sends windows of 64 messages, each answered by 4 bytes; osu_alltoall copies a rank's own part too.

The table of `validate cluster`: geometric mean errors by group and machine, beside the limits aimed for.
"""

from __future__ import annotations

import csv
import functools
import json
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby

from ppt_gpu.cluster.engine.rank import Rank
from ppt_gpu.cluster.engine.request import Request
from ppt_gpu.cluster.engine.simulate import simulate
from ppt_gpu.cluster.load import ClusterMachine, load_machine
from ppt_gpu.cluster.model.machine import PS_PER_S, Place
from ppt_gpu.common.paths import data_dir
from ppt_gpu.common.units import format_bytes
from ppt_gpu.report.text.columns import columns
from ppt_gpu.validate.tables.rows import Row, is_asked


@dataclass(frozen=True)
class Group:
    """Errors of some rows: e = ln(predicted / reference)."""

    group: str
    machine: str  # "all": every machine of the group
    cases: int
    error: float  # exp(mean |e|) - 1
    bias: float  # exp(mean e) - 1
    worst: float  # predicted / reference - 1 of the largest |e|
    limit: float | None


def groups(rows: Sequence[Row], limits: Mapping[str, float]) -> list[Group]:
    """A line a group and machine, in order of appearance, and one over all machines of a group."""
    found = []
    for name in dict.fromkeys(row.mode for row in rows):
        members = [row for row in rows if row.mode == name]
        for machine in dict.fromkeys(row.gpu for row in members):
            found.append(_group(name, machine, [row for row in members if row.gpu == machine], None))
        found.append(_group(name, "all", members, limits.get(name)))
    return found


def _group(name: str, machine: str, rows: Sequence[Row], limit: float | None) -> Group:
    logs = [math.log(row.predicted / row.reference) for row in rows]
    worst = max(rows, key=lambda row: abs(math.log(row.predicted / row.reference)))
    mean = math.exp(sum(map(abs, logs)) / len(logs)) - 1
    return Group(name, machine, len(rows), mean, math.exp(sum(logs) / len(logs)) - 1, worst.error, limit)


def to_json(rows: Sequence[Row], limits: Mapping[str, float]) -> str:
    document = {
        "schema": 1,
        "set": "cluster",
        "rows": [asdict(row) | {"error": row.error} for row in rows],
        "summary": [asdict(group) for group in groups(rows, limits)],
    }
    return json.dumps(document, indent=2) + "\n"


def to_text(rows: Sequence[Row], limits: Mapping[str, float]) -> str:
    lines: list[str] = []
    for machine, own in groupby(rows, key=lambda row: row.gpu):
        table = [(machine, "reference", "predicted", "", "error")]
        for row in own:
            table.append((row.case, f"{row.reference:,.5g}", f"{row.predicted:,.5g}", row.unit, f"{row.error:+.1%}"))
        lines += [*columns(table), ""]
    lines += ["cluster, geometric mean errors: exp(mean |ln(predicted / reference)|) - 1", ""]
    summary = [("group", "machine", "cases", "error", "bias", "worst", "limit")]
    for each in groups(rows, limits):
        errors = (f"{each.error:.1%}", f"{each.bias:+.1%}", f"{each.worst:+.1%}")
        limit = "" if each.limit is None else f"{each.limit:.0%}"
        summary.append((each.group, each.machine, str(each.cases), *errors, limit))
    lines += columns(summary, left=2)
    return "\n".join(lines) + "\n"


LARGE = "NCCL, over 64 MiB"
MIDDLE = "NCCL, 1 KiB to 64 MiB"
SMALL = "NCCL, below 1 KiB"
OSU = "OSU"
OTHERS = "kept aside"
SINGLE = "single messages"
#: group -> the largest geometric mean error that is aimed for
LIMITS = {LARGE: 0.15, MIDDLE: 0.30, OSU: 0.15}

WINDOW, ANSWER = 64, 4  # of osu_bw


def rows(cases: Sequence[str] = ()) -> list[Row]:
    """Every row whose case name has one of the texts: `gpu` is the machine, `mode` the group."""
    made = (*_nccl(), *_osu(), *_messages(), *_others())
    return [row for row in made if is_asked(f"{row.gpu} {row.case}", cases)]


@functools.cache
def _machine(name: str, nodes: int, overrides: tuple[str, ...] = ()) -> ClusterMachine:
    return load_machine(name, nodes, overrides)


def _read(name: str) -> list[dict[str, str]]:
    with (data_dir("validation") / "cluster" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _nccl() -> Iterator[Row]:
    for line in _read("nccl_allreduce.csv"):
        nodes, gpus, nbytes = int(line["nodes"]), int(line["gpus"]), int(line["bytes"])
        found = _machine(line["machine"], nodes).collective("all_reduce", nbytes, nodes, gpus // nodes, "nccl")
        group = LARGE if nbytes > 64 << 20 else MIDDLE if nbytes >= 1024 else SMALL
        case = f"all_reduce {format_bytes(nbytes)} on {nodes}x{gpus // nodes}, {found.algorithm}"
        yield Row(case, line["machine"], group, "", float(line["time_us"]), found.duration / 1e6, "us")


def _osu() -> Iterator[Row]:
    tests: dict[str, Callable[[ClusterMachine, str, str, int], float]] = {"osu_bw": _osu_bw, "osu_alltoall": _alltoall}
    for line in _read("osu_alps.csv"):
        nbytes = int(line["bytes"])
        machine = _machine(line["machine"], 2)
        predicted = tests[line["test"]](machine, line["memory"], line["where"], nbytes)
        place = "" if line["test"] == "osu_alltoall" else f" {line['where']}"
        case = f"{line['test']} {line['memory']}{place} {format_bytes(nbytes)}"
        yield Row(case, line["machine"], OSU, "", float(line["value"]), predicted, line["unit"])


def _osu_bw(machine: ClusterMachine, memory: str, where: str, nbytes: int) -> float:
    """MB/s: messages follow each other at the pace of the slowest host or port."""
    here = Place(0, 0, memory)
    there = Place(0, 1, memory) if where == "node" else Place(1, 0, memory)
    return WINDOW * nbytes / (window_time(machine, here, there, nbytes) / PS_PER_S) / 1e6


def window_time(machine: ClusterMachine, here: Place, there: Place, nbytes: int) -> int:
    """Picoseconds of a window of messages and its answer."""
    one, answer = machine.transfer(here, there, nbytes), machine.transfer(there, here, ANSWER)
    pace = max(one.send_overhead, *(time for _, time in (*one.source_ports, *one.target_ports)))
    return (WINDOW - 1) * pace + one.duration + answer.duration


def _alltoall(machine: ClusterMachine, memory: str, where: str, nbytes: int) -> float:
    """Microseconds of `nbytes` from every rank to every rank, 4 ranks on each of 2 nodes, all at once."""

    def app(rank: Rank) -> Generator[list[Request], None, None]:
        away = range(1, rank.size)
        receives = [rank.irecv((rank.index - step) % rank.size, nbytes, memory=memory) for step in away]
        yield receives + [rank.isend((rank.index + step) % rank.size, nbytes, memory=memory) for step in away]

    own = machine.transfer(Place(0, 0, memory), Place(0, 0, memory), nbytes)
    return (simulate(machine, app, collapse=False).time + own.duration) / 1e6


def _messages() -> Iterator[Row]:
    """Half of a ping-pong between two nodes, as time or as bytes over it."""
    for line in _read("messages.csv"):
        nbytes = int(line["bytes"])
        machine = _machine(line["machine"], 2, (line["set"],) if line["set"] else ())
        one = machine.transfer(Place(0, 0, line["memory"]), Place(1, 0, line["memory"]), nbytes)
        seconds = one.duration / PS_PER_S
        predicted = seconds * 1e6 if line["unit"] == "us" else nbytes / seconds / 1e9
        staged = ", staged" if line["set"] else ""
        case = f"message of {format_bytes(nbytes)}, {line['memory']}{staged}"
        yield Row(case, line["machine"], SINGLE, "", float(line["value"]), predicted, line["unit"])


#: bus bandwidth over algorithm bandwidth, as nccl-tests defines them
_BUS: dict[str, Callable[[int], float]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0,
}


def _others() -> Iterator[Row]:
    for line in _read("other_systems.csv"):
        nodes, gpus, nbytes = int(line["nodes"]), int(line["gpus"]), int(line["bytes"])
        machine = _machine(line["machine"], nodes, (line["set"],) if line["set"] else ())
        found = machine.collective(line["test"], nbytes, nodes, gpus // nodes, "nccl")
        predicted = nbytes / (found.duration / PS_PER_S) * _BUS[line["test"]](gpus) / 1e9
        case = f"{line['test']} {format_bytes(nbytes)} on {nodes}x{gpus // nodes}, {found.algorithm}"
        yield Row(case, line["machine"], OTHERS, "", float(line["busbw_GBps"]), predicted, "GB/s")
