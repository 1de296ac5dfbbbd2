"""Runs the cases: the whole grid functionally, its results compared; then a prediction, and what was executed."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.memory.initial_memory import device_memory
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.frontends.call import Call, open_call
from ppt_gpu.frontends.prepare import prepare
from ppt_gpu.frontends.texture_argument import ArrayTexture
from ppt_gpu.pipeline import predict
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.ptx.linking.mangling import matching
from ppt_gpu.ptx.module import Module
from ppt_gpu.ptx.parsing.parser import load_module
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.validate.coverage.case import Case, Data
from ppt_gpu.workload.budget import Budget

_SHARED = re.compile(r"^// dynamic shared memory: (\d+) B")
BUDGET = Budget(instructions=20_000_000)


@dataclass(frozen=True)
class Outcome:
    """What became of a case. An opcode is whole here, with its modifiers."""

    case: Case
    opcodes: Counter[str]  # of the kernel and the functions that it calls
    executed: frozenset[str]  # of these, what some warp ran, the results being right
    execution: str  # "", or why it did not run, or how its results differ
    timing: str  # "", or why it was not predicted


def outcome(case: Case) -> Outcome:
    """Run and predict one case. Never raises PptError: what went wrong is in the outcome."""
    module = module_of(case.path)
    ran: frozenset[str] = frozenset()
    try:
        wrong, ran = execute(case)
    except PptError as error:
        wrong = error.message.splitlines()[0]
    late = ""
    try:
        data = case.make()
        call = called(case, data)
        predict(call.workload, gpu_of(module), contents={**call.contents, **data.variables}, budget=BUDGET)
    except PptError as error:
        late = error.message.splitlines()[0]
    return Outcome(case, opcodes_of(module, case), frozenset() if wrong else ran, wrong, late)


@lru_cache(maxsize=64)
def module_of(path: Path) -> Module:
    """The module of a case, parsed once."""
    return load_module(path)


def gpu_of(module: Module) -> Gpu:
    """A GPU that runs the module: H100 as of sm_90, A100 below."""
    return load_gpu("h100" if module.target >= "sm_90" or len(module.target) > 6 else "a100")


def stated_shared(module: Module) -> int:
    """Bytes of dynamic shared memory that the header of a file from a front end asks for."""
    return next((int(match[1]) for line in module.lines[:4] if (match := _SHARED.search(line))), 0)


def called(case: Case, data: Data) -> Call:
    """The case as a workload."""
    return open_call(
        str(case.path),
        gpu_of(module_of(case.path)).compute_capability,
        {
            "kernel": case.kernel,
            "grid": case.grid,
            "block": case.block,
            "args": data.args,
            "dynamic_shared": case.dynamic_shared or stated_shared(module_of(case.path)),
            "registers": "estimate",
        },
    )


def execute(case: Case) -> tuple[str, frozenset[str]]:
    """Run the whole grid and compare. Returns ("" or the difference, opcodes that some warp executed)."""
    data = case.make()
    call = called(case, data)
    prepared = prepare(call.workload)
    contents = {**call.contents, **data.variables}
    memory = device_memory(prepared.module, prepared.workload, contents, BUDGET)
    launch = prepared.workload.launches[0]
    kernel = prepared.module.kernels[launch.kernel]
    linked = link(kernel, prepared.module)
    trace = run(kernel, prepared.module, launch, memory, range(launch.blocks), budget=BUDGET)
    executed = {i.opcode for i, times in zip(linked.instructions, trace.pc_executed, strict=True) if times}
    return differences(case, data, call, memory), frozenset(executed)


def differences(case: Case, data: Data, call: Call, memory: DeviceMemory) -> str:
    """How the results differ from what is expected; "" when they do not."""
    for key, expected in data.expected.items():
        given = expected if isinstance(key, str) else array_of(data.args[key])
        name = key if isinstance(key, str) else next(n for n, array in call.contents.items() if array is given)
        got = memory.bytes_of(name)[: given.nbytes]
        dtype = given.dtype
        wrong = case.differs(got.view(dtype), np.asarray(expected))
        if wrong:
            return f"{name}: {wrong}"
    return ""


def array_of(argument: Any) -> NDArray:
    """The array of an argument that holds results: itself, or what a surface lies over."""
    return np.asarray(argument.array if isinstance(argument, ArrayTexture) else argument)


def opcodes_of(module: Module, case: Case) -> Counter[str]:
    """How often each opcode stands in the kernel and the functions that it calls."""
    (name,) = matching(case.kernel, module.kernels)
    return Counter(instruction.opcode for instruction in link(module.kernels[name], module).instructions)
