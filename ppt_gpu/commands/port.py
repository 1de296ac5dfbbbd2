"""port: the run time of a program on the other side, a GPU kernel on CPU cores or a CPU program on a GPU."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ppt_gpu.commands.opened import open_from
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.outputs import check_outputs, write_whole
from ppt_gpu.inputs import files_of
from ppt_gpu.multicore.base.core import SCore
from ppt_gpu.multicore.base.target import load_target
from ppt_gpu.multicore.port import port
from ppt_gpu.multicore.representation.counter_files import read_counters
from ppt_gpu.multicore.representation.ir_text import read_ir, write_ir
from ppt_gpu.report.commands.port import render, to_json
from ppt_gpu.representations import representations
from ppt_gpu.scale.occupancy.rules import OccupancyLimits, theoretical_occupancy
from ppt_gpu.spec.files import files_of as hardware_files

if TYPE_CHECKING:
    from ppt_gpu.workload.workload import Workload

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
