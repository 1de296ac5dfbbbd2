"""Random kernels: the trace of a run that computes only what decides it is that of a run that computes all.

Integers and predicates come from thread numbers, so that in most kernels no memory decides where control goes; floats
come from memory.
"""

import numpy as np
from equal_fields import assert_equal
from hypothesis import assume
from random_ptx import BLOCKS, ROW, ROW_PLACES, THREADS, kernels
from some_examples import examples

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.analysis.data_dependence import decided_by
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.ptx import parse_module
from ppt_gpu.workload.workload import Argument, Buffer, Launch

#: how a register of a type is made of the thread's number %i, and of its place
MADE = {
    "b64": "mul.wide.u32 {name}, %i, {odd};",
    "b32": "mul.lo.u32 {name}, %i, {odd}; shr.u32 {name}, {name}, 3;",
}


def of_threads(text):
    """The kernel with registers for integers that are made of thread numbers, not loaded."""
    for name, kind, offset in ROW_PLACES:
        if kind in MADE:
            load = f"ld.global.{kind} {name}, [%at+{offset}];"
            assert load in text
            text = text.replace(load, MADE[kind].format(name=name, odd=2654435761 + 2 * offset), 1)
    return text


def outcome(module, results):
    """The trace, or the message of what went wrong."""
    size = BLOCKS * THREADS * ROW
    memory = DeviceMemory.build(module, [Buffer("in", "b8", size), Buffer("out", "b8", 4 * size)])
    memory.bytes_of("in")[:] = np.random.default_rng(1).integers(0, 256, size, dtype=np.uint8) if results else 0
    arguments = (Argument("u64", buffer="in"), Argument("u64", buffer="out"))
    launch = Launch("k", (BLOCKS, 1, 1), (THREADS, 1, 1), arguments)
    try:
        return run(module.kernels["k"], module, launch, memory, range(BLOCKS), results=results)
    except PptError as error:
        return str(error)


def assert_same(text):
    """Returns whether the kernel is one that memory does not steer."""
    module = parse_module(text, "random.ptx")
    if decided_by(module.kernels["k"]) is None:
        return False
    found, expected = outcome(module, False), outcome(module, True)
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected, text
        return True
    assert_equal(found, expected, about=text)
    return True


@examples(8, 2000, kernels())
def test_random_kernels(text):
    assume(assert_same(of_threads(text)))
