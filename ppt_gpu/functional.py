"""launch(): a kernel run on the CPU for its results. Nothing is timed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Unpack

import numpy as np

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.memory.initial_memory import device_memory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.frontends.arch import DEFAULT_CAPABILITY
from ppt_gpu.frontends.call import CallOptions
from ppt_gpu.frontends.prepare import prepare
from ppt_gpu.pipeline import open_any
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.workload.budget import Budget


def launch(
    source: object,
    /,
    *,
    gpu: Gpu | str | Path | None = None,
    budget: Budget | None = None,
    **call: Unpack[CallOptions],
) -> None:
    """Run the whole grid of kernel `source` functionally, on the CPU; the NumPy arrays in `args` hold its results then.

    `source` and the options are those of `predict`; `gpu` only chooses the architecture to compile for. Nothing is
    timed. Raises PptError for bad input and for faults of the kernel, BudgetError when the budget is used up.
    """
    target = load_gpu(str(gpu)) if isinstance(gpu, str | Path) else gpu
    capability = DEFAULT_CAPABILITY if target is None else target.compute_capability
    opened, arrays = open_any(source, capability, call)
    if opened.tasklist_path or len(opened.launches) != 1:
        raise PptError(
            "launch() runs one launch of a kernel", hint="such as launch(kernel, grid=1, block=32, args=[x])"
        )
    prepared = prepare(replace(opened, launches=(replace(opened.launches[0], registers_from="estimate"),)), capability)
    memory = device_memory(prepared.module, prepared.workload, arrays, budget or Budget())
    one = prepared.workload.launches[0]
    module, blocks = prepared.module, range(one.blocks)
    run(module.kernels[one.kernel], module, one, memory, blocks, trace=False, budget=budget)
    for name, array in arrays.items():
        left = memory.view(name, array.dtype)
        if array.flags.writeable:
            np.ravel(array, order="K")[:] = left
        elif np.ravel(array, order="K").tobytes() != left.tobytes():
            raise PptError(f"the kernel writes '{name}', an array that is read-only", hint="pass a copy of it")
