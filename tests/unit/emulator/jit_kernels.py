"""Runs kernels of tests/data/exec in the compiled engine and in the interpreter, and compares everything they leave."""

from pathlib import Path

import numpy as np
from equal_fields import assert_equal
from reference.interpreter.interpreter import interpret

from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.ptx import load_module, parse_module
from ppt_gpu.workload.workload import Argument, Launch

DATA = Path(__file__).parents[2] / "data" / "exec"


def pointer(name, offset=0):
    return Argument("u64", buffer=name, offset=offset)


def integer(value):
    return Argument("s32", value)


class Case:
    """A kernel with its memory, ready to run."""

    def __init__(self, module, kernel, grid, block, arguments, buffers, *, dynamic=0, symbols=(), fill=None):
        self.module = module
        self.kernel = next(k for name, k in module.kernels.items() if kernel in name)
        dims = [(*d, 1, 1)[:3] for d in (grid, block)]
        self.launch = Launch(self.kernel.name, *dims, tuple(arguments), dynamic)
        self.buffers, self.symbols, self.fill = buffers, symbols, fill or {}

    def memory(self):
        memory = DeviceMemory.build(self.module, self.buffers, self.symbols)
        for name, values in self.fill.items():
            memory.view(name, values.dtype)[:] = values
        return memory

    def run(self, *, blocks=None, engine=run, **options):
        """(memory after the run, trace)."""
        memory = self.memory()
        wanted = range(self.launch.blocks) if blocks is None else blocks
        trace = engine(self.kernel, self.module, self.launch, memory, wanted, **options)
        return memory, trace


def file_case(file, kernel, *arguments, **options):
    return Case(load_module(DATA / file), kernel, *arguments, **options)


def text_case(text, *arguments, **options):
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    return Case(parse_module(head + text, "test.ptx"), "k", *arguments, **options)


def assert_same_trace(one, other):
    """Equal but for the numbers of the patterns, which are free."""
    assert np.array_equal(one.pattern_offset[one.access_pattern], other.pattern_offset[other.access_pattern])
    assert np.array_equal(one.pattern_mask[one.access_pattern], other.pattern_mask[other.access_pattern])
    assert len(one.pattern_mask) == len(other.pattern_mask)
    assert_equal(one, other, ("access_pattern", "pattern_offset", "pattern_mask", "warnings"))


def check_against_interpreter(case, **options):
    """Run in both engines, with and without trace; returns the compiled engine's memory and trace."""
    memory, trace = case.run(**options)
    plain, plain_trace = case.run(engine=interpret, **options)
    untraced, _ = case.run(trace=False, **options)
    assert memory.data.tobytes() == plain.data.tobytes()
    assert memory.data.tobytes() == untraced.data.tobytes()
    assert_same_trace(trace, plain_trace)
    return memory, trace
