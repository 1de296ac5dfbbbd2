"""port: the run time of a program on the other side, a GPU kernel on CPU cores or a CPU program on a GPU."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from ppt_gpu.commands.opened import open_from
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.outputs import check_outputs, write_whole
from ppt_gpu.common.units import format_bytes, format_count, format_time
from ppt_gpu.inputs import files_of
from ppt_gpu.multicore.base.core import SCore
from ppt_gpu.multicore.base.target import load_target
from ppt_gpu.multicore.core_models.m_core import MTime
from ppt_gpu.multicore.port import port
from ppt_gpu.multicore.port.accuracy import Accuracy
from ppt_gpu.multicore.port.port import Ported
from ppt_gpu.multicore.port.sensitivity import STEP, Sensitivity, sensitivities
from ppt_gpu.multicore.representation.counter_files import read_counters
from ppt_gpu.multicore.representation.ir_text import read_ir, write_ir
from ppt_gpu.representations import representations
from ppt_gpu.scale.occupancy.rules import OccupancyLimits, theoretical_occupancy
from ppt_gpu.spec.files import files_of as hardware_files

if TYPE_CHECKING:
    from ppt_gpu.workload.workload import Workload


SCHEMA = 1
WIDTH = 80
#: a launch's prediction and how often it runs
Counted = tuple[Ported, int]


def render(ported: Sequence[Counted], *, explain: bool = False, sensitivity: bool = False) -> str:
    """The terminal report."""
    lines: list[str] = []
    for each, count in ported:
        lines += _one(each, count)
        if sensitivity:
            lines += _sensitivity_lines(sensitivities(each))
        if explain:
            lines += ["", *(f"  {step.line()}" for step in each.result.steps)]
        lines.append("")
    if sum(count for _, count in ported) > 1:
        lines += [f"all launches on {ported[0][0].target}: {format_time(total_time(ported))}", ""]
    return "\n".join(lines[:-1]) + "\n"


def total_time(ported: Sequence[Counted]) -> float:
    """Seconds of all launches."""
    return sum(each.time * count for each, count in ported)


def _one(ported: Ported, count: int) -> list[str]:
    result = ported.result
    times = f", one of {count} runs" if count != 1 else ""
    lines = [f"{ported.program} on {ported.target}{times}"]
    if ported.ir is not None:
        lines.append(f"  from        {ported.ir.origin}")
    lines.append(f"  time        {format_time(ported.time)} = {format_count(result.cycles)} cycles")
    if isinstance(result, MTime):
        lines += _gpu_lines(result, ported)
    else:
        shares = sorted(result.parts.items(), key=lambda item: -item[1])
        total = sum(result.parts.values()) or 1.0
        shown = ", ".join(f"{name} {part / total:.0%}" for name, part in shares if part / total >= 0.005)
        lines.append(f"  parts       {shown}")
    if ported.generic is not None:
        lines.append(f"  generic     {format_time(ported.generic)} on one core, by the interval model alone")
    if ported.measured:
        lines.append(f"  measured    {format_time(ported.measured)} {_against(ported)}")
    lines += _accuracy_lines(ported.accuracy, ported.time)
    lines += [f"  {'notes' if not at else '':12}{note}" for at, note in enumerate(result.notes)]
    return lines


def _gpu_lines(result: MTime, ported: Ported) -> list[str]:
    grid = f"{format_count(result.blocks)} blocks of {result.block} threads"
    searched = f", the fastest of {len(ported.tried)} sizes" if ported.tried else ""
    return [
        f"  launch      {grid}{searched}; {result.resident_warps:g} warps on each of {result.active_sms} SMs",
        f"  limited by  {result.limiter}",
    ]


def _against(ported: Ported) -> str:
    """How the prediction stands to the time measured on the source."""
    assert ported.measured
    ratio = ported.measured / ported.time
    if ported.ir is None:
        return f"(this run: predicted {ported.time / ported.measured - 1:+.0%})"
    return f"on the source, {ratio:.3g} times the prediction"


def _accuracy_lines(found: Accuracy, time: float) -> list[str]:
    parts = []
    if found.low is not None and found.high is not None:
        parts.append(f"{found.low:+.0%} to {found.high:+.0%}")
    if found.mean is not None:
        parts.append(f"mean {found.mean:+.0%}")
    if found.mean_absolute is not None:
        parts.append(f"mean absolute {found.mean_absolute:.0%}")
    where = f" ({found.source})" if found.source else ""
    errors = ", ".join([*parts, *([found.note] if found.note else [])])
    said = f"  error       of speedups in Blem's tests, {found.kind}{where}: {errors}"
    lines = wrap(said, WIDTH, subsequent_indent=" " * 14)
    times = found.times(time)
    if times:
        lines.append(f"              with such errors it takes {format_time(times[0])} to {format_time(times[1])}")
    return lines


def _sensitivity_lines(found: Sequence[Sensitivity]) -> list[str]:
    def text(ratio: float | None) -> str:
        return f"{ratio:10.3f}" if ratio is not None else f"{'-':>10}"

    head = f"  {'input':16}{'value':>12}{f'-{STEP:.0%}':>10}{f'+{STEP:.0%}':>10}  time over the time above"
    return ["", head, *(f"  {each.name:16}{each.value:12.4g}{text(each.lower)}{text(each.higher)}" for each in found)]


def to_json(ported: Sequence[Counted], *, explain: bool = False, sensitivity: bool = False) -> str:
    """The same as one JSON document."""
    runs = [_document(each, count, explain, sensitivity) for each, count in ported]
    return json.dumps({"schema": SCHEMA, "time_s": total_time(ported), "launches": runs}, indent=2) + "\n"


def _document(ported: Ported, count: int, explain: bool, sensitivity: bool) -> dict[str, Any]:
    result = ported.result
    found: dict[str, Any] = {
        "program": ported.program,
        "target": ported.target,
        "runs": count,
        "time_s": ported.time,
        "cycles": result.cycles,
        "limiter": result.limiter,
        "accuracy": asdict(ported.accuracy),
        "inputs": {name: value for name, value in asdict(ported.inputs).items() if name != "notes"},
        "notes": list(result.notes),
    }
    if isinstance(result, MTime):
        found |= {"block": result.block, "blocks": result.blocks, "resident_warps": result.resident_warps}
        found |= {"active_sms": result.active_sms, "tried": dict(ported.tried)}
    else:
        found["parts"] = dict(result.parts)
    if ported.generic is not None:
        found["generic_s"] = ported.generic
    if ported.measured:
        found["measured_s"] = ported.measured
    if ported.ir is not None:
        found["footprint"] = format_bytes(ported.ir.footprint)
    if explain:
        found["steps"] = [asdict(step) for step in result.steps]
    if sensitivity:
        found["sensitivity"] = [asdict(each) for each in sensitivities(ported)]
    return found


#: registers a thread of a program that no compiler has seen for the GPU; few enough not to limit occupancy
REGISTERS = 16


def run(arguments: argparse.Namespace) -> str:
    target = load_target(arguments.to, arguments.set)
    workload = open_from(arguments) if arguments.workload else None
    check_outputs(
        [arguments.output_ir],
        lambda: (
            *(() if workload is None else files_of(workload)),
            *(file for kind in ("cores", "gpus") for file in hardware_files(kind, arguments.to, arguments.set)),
            arguments.from_cpu,
            arguments.from_ir,
        ),
    )
    ported = _ported(arguments, target, workload)
    if arguments.output_ir:
        made = [each.ir for each, _ in ported]
        if len(made) > 1:
            raise PptError(
                f"-o writes one representation, the workload has {len(made)} launches", hint="add --launch 1"
            )
        if made[0] is None:
            raise PptError("counters go to a CPU core without a representation", hint="-o needs --to with a GPU")
        write_whole(arguments.output_ir, write_ir(made[0]).encode())
    show = to_json if arguments.json else render
    return show(ported, explain=arguments.explain, sensitivity=arguments.sensitivity)


def _ported(arguments: argparse.Namespace, target: Any, workload: Workload | None) -> list[Any]:
    """(prediction, how often) of each launch."""
    settings = port.Settings(
        literal=arguments.literal,
        cores=arguments.cores,
        own_ilp=arguments.own_ilp,
        on_chip=arguments.on_chip,
        parallel=arguments.parallel,
        block=arguments.threads,
    )
    on_cpu = isinstance(target, SCore)
    _check_options(arguments, on_cpu)
    if arguments.from_cpu:
        from pathlib import Path

        counters = read_counters(arguments.from_cpu, arguments.counter)
        name = Path(arguments.from_cpu).stem
        if on_cpu:
            return [(port.counters_to_core(counters, target, name, settings), 1)]
        return [(port.counters_to_gpu(counters, target, name, resident(arguments, target, None), settings), 1)]
    found = []
    for ir, launch, runs in _representations(arguments, workload):
        if on_cpu:
            found.append((port.to_core(ir, target, settings), runs))
        else:
            found.append((port.to_gpu(ir, target, resident(arguments, target, launch), settings), runs))
    return found


def _check_options(arguments: argparse.Namespace, on_cpu: bool) -> None:
    """Options that would do nothing are mistakes."""
    no_kernel = not arguments.workload
    wrong = {
        "--counter": arguments.counter and not arguments.from_cpu,
        "--launch": arguments.launch and no_kernel,
        "--blocks": arguments.blocks and no_kernel,
        "--kernel": arguments.kernel and no_kernel,
        "--grid": arguments.grid and no_kernel,
        "--block": arguments.block and no_kernel,
        "--cluster": arguments.cluster and no_kernel,
        "--arg": arguments.arg and no_kernel,
        "--dynamic-shared": arguments.dynamic_shared and no_kernel,
        "--assume": arguments.assume and no_kernel,
        "--nvcc-option": arguments.nvcc_option and no_kernel,
        "--registers": arguments.registers and no_kernel and on_cpu,
        "--cores": arguments.cores != 1 and not on_cpu,
        "--parallel": arguments.parallel is not None and not on_cpu,
        "--own-ilp": arguments.own_ilp and (not on_cpu or arguments.from_cpu),
        "--on-chip": arguments.on_chip and (not on_cpu or arguments.from_cpu),
        "--threads": arguments.threads and on_cpu,
    }
    given = [name for name, bad in wrong.items() if bad]
    if given:
        raise PptError(f"{', '.join(given)}: does nothing here", hint="see: ppt-gpu port --help")


def _representations(arguments: argparse.Namespace, workload: Workload | None) -> list[Any]:
    """(representation, its launch or None, how often it runs)."""
    if arguments.from_ir:
        ir = read_ir(arguments.from_ir)
        registers = int(arguments.registers) if (arguments.registers or "").isdecimal() else REGISTERS
        return [(ir, (registers, int(ir.scratch)), 1)]

    assert workload is not None
    return representations(workload, arguments.launch, arguments.blocks or "sample", arguments.assume)


def resident(arguments: argparse.Namespace, gpu: Any, launch: Any) -> Any:
    """Blocks of so many threads that an SM holds; `launch`: (registers, B of shared memory), None: neither known."""
    registers = int(arguments.registers) if (arguments.registers or "").isdecimal() else REGISTERS
    shared = 0
    if launch is not None:
        registers, shared = launch
    limits = OccupancyLimits.of(gpu)

    def held(threads: int) -> int:
        if threads > limits.max_threads_per_block:
            return 0
        return theoretical_occupancy(limits, threads, registers, shared).blocks_per_sm

    return held
