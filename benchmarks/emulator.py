"""Speed of functional execution: CPU time of one core, medians over runs, on the shipped samples.

Print the figures with  python -m benchmarks exec
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Any

from ppt_gpu.emulator.jit.compiler.compile import compile_kernel
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.ptx import load_module
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.ptx.module import Kernel, Module
from ppt_gpu.ptx.parsing.parser import parse_module
from ppt_gpu.workload.binding import bind_workload
from ppt_gpu.workload.reader import load_workload
from ppt_gpu.workload.workload import Launch

#: (sample, most blocks that run): big enough that one run takes tens of milliseconds
SAMPLES = (
    ("sgemm", 64),
    ("vecadd", 4096),
    ("stencil7", 256),
    ("stencil7_shared", 64),
    ("reduction", 512),
    ("transpose_naive", 4096),
    ("transpose_tiled", 4096),
    ("spmv", 256),
    ("histogram", 320),
    ("mandelbrot", 1024),
)
#: samples whose last launch is the one to time
LAST_LAUNCH = ("spmv",)
#: of the kernel of 3000 instructions
LONG_PIECES = 250
LONG_HEAD = """.version 7.0
.target sm_80
.address_size 64
.visible .entry long(.param .u64 data)
{
.reg .pred %p<3>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>; .shared .align 4 .b8 tile[4096];
"""
LONG_PIECE = """ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
ld.global.f32 %f1, [%rd3+AT]; fma.rn.f32 %f2, %f1, %f1, %f2; shl.b32 %r2, %r1, 2; setp.gt.f32 %p1, %f2, 0f3F800000;
@%p1 bra LABEL; xor.b32 %r3, %r2, 124; st.shared.f32 [%r3], %f2;
LABEL: st.global.f32 [%rd3+AT], %f2;
"""


def bench_exec(runs: int = 7) -> list[dict[str, Any]]:
    """Figures {name, value, unit, inputs}: speed with and without trace, and compile time, by sample."""
    figures: list[dict[str, Any]] = []
    for name, most in SAMPLES:
        figures += _bench_sample(name, most, runs)
    return [*figures, *_bench_long_kernel(min(runs, 3))]


def long_kernel(pieces: int = LONG_PIECES) -> str:
    """PTX of one kernel: so many copies of a piece of 12 instructions that loads, computes, branches and stores."""
    body = "".join(LONG_PIECE.replace("LABEL", f"$L{n}").replace("AT", str(4 * n)) for n in range(pieces))
    return f"{LONG_HEAD}{body}ret;\n}}\n"


def _bench_long_kernel(runs: int) -> list[dict[str, Any]]:
    """Compile time of a long kernel: from its parsed text to machine code."""
    module = parse_module(long_kernel(), "long.ptx")
    kernel = module.kernels["long"]
    compiling = _median(lambda: compile_kernel(link(kernel, module), True), runs)
    size = {"kernel": kernel.name, "instructions": len(kernel.instructions)}
    return [figure(f"exec kernel of {len(kernel.instructions)} instructions, compile time", compiling, "s CPU", size)]


@dataclass(frozen=True)
class Prepared:
    """A launch of a sample, with memory as it finds it, and the blocks of it that run."""

    module: Module
    kernel: Kernel
    launch: Launch
    memory: DeviceMemory
    blocks: range

    def run(self, traced: bool, results: bool = True) -> Trace:
        given = self.kernel, self.module, self.launch, self.memory, self.blocks
        return run(*given, trace=traced, results=results)


def prepare(name: str, most: int) -> Prepared:
    """The launch of a sample that is timed, at most so many blocks of it."""
    workload = load_workload(name)
    module = load_module(workload.ptx_path)
    workload = bind_workload(workload, module)
    memory = DeviceMemory.build(module, workload.buffers, workload.symbols)
    for before in workload.launches[:-1]:  # what it reads
        run(module.kernels[before.kernel], module, before, memory, range(before.blocks), trace=False)
    launch = workload.launches[-1 if name in LAST_LAUNCH else 0]
    return Prepared(module, module.kernels[launch.kernel], launch, memory, range(min(launch.blocks, most)))


def _bench_sample(name: str, most: int, runs: int) -> list[dict[str, Any]]:
    prepared = prepare(name, most)
    module, kernel = prepared.module, prepared.kernel
    count = prepared.run(True).thread_instructions
    prepared.run(False)
    inputs = {"kernel": kernel.name, "blocks": len(prepared.blocks), "thread instructions": count}
    figures = []
    for label, traced in (("with trace", True), ("without trace", False)):
        seconds = _median(lambda t=traced: prepared.run(t), runs)
        figures.append(figure(f"exec {name}, {label}", count / seconds / 1e6, "M thread instructions/s", inputs))
    compiling = _median(lambda: compile_kernel(link(kernel, module), True), runs)
    per_instruction = compiling * 1e3 / len(kernel.instructions)
    size = {"kernel": kernel.name, "instructions": len(kernel.instructions)}
    figures.append(figure(f"exec {name}, compile time", per_instruction, "ms/instruction", size))
    return figures


def _median(action: Any, runs: int) -> float:
    """Median CPU seconds of an action."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return statistics.median(times)


def figure(name: str, value: float, unit: str, inputs: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit, "inputs": inputs}
