"""Constants at computed addresses: recorded by both ways of running a kernel, each word of a warp in turn, by lines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reference.interpreter.interpreter import interpret

from ppt_gpu.emulator.memory.initial_memory import device_memory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.inputs import open_workload
from ppt_gpu.pipeline import predict, workload_traces
from ppt_gpu.ptx.instructions import is_traced
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.scale.simulated_sm import TraceSm
from ppt_gpu.sm.lowering.constants import words_of_constants
from ppt_gpu.sm.program.program import KIND_COMPUTE, KIND_CONSTANT, op_issues
from ppt_gpu.spec import load_gpu
from ppt_gpu.task_lists import translate
from ppt_gpu.workload.budget import Budget

#: lane l reads word l / `lanes` of a table, the word 3 and, the first half of the warp only, word 0
KERNEL = """.version 6.4
.target sm_70
.address_size 64
.const .align 4 .b8 table[256];
.visible .entry look(.param .u64 out, .param .u32 lanes) {
  .reg .b32 %r<8>; .reg .b64 %d<6>; .reg .pred %p;
  ld.param.u32 %r1, [lanes];
  mov.u32 %r2, %laneid;
  div.u32 %r3, %r2, %r1;
  mov.u64 %d1, table;
  mul.wide.u32 %d2, %r3, 4;
  add.u64 %d3, %d1, %d2;
  ld.const.u32 %r4, [%d3];
  ld.const.u32 %r5, [table+12];
  setp.lt.u32 %p, %r2, 16;
  @%p ld.const.u32 %r6, [%d1];
  add.u32 %r4, %r4, %r5;
  ld.param.u64 %d4, [out];
  st.global.u32 [%d4], %r4;
  ret;
}
"""


def look(folder: Path, lanes: int, block: int = 32) -> str:
    (folder / "look.ptx").write_text(KERNEL)
    path = folder / "look.toml"
    path.write_text(
        f'ptx = "look.ptx"\ngrid = 160\nblock = {block}\nregisters = 16\narguments = ["out", "i32={lanes}"]\n'
        '[buffers]\nout = "u32[1]"\n'
    )
    return str(path)


def test_both_ways_record_them(tmp_path: Path) -> None:
    workload = open_workload(look(tmp_path, 4))
    traces, _ = workload_traces(workload, load_gpu("v100"), {}, Budget(), (), False, None)
    launch = traces.launch(0)
    kernel, module = link(launch.module.kernels["look"], launch.module), launch.module
    assert [is_traced(i) for i in kernel.instructions if i.base == "ld" and "const" in i.opcode] == [True, False, True]

    def made(by: object) -> Trace:
        memory = device_memory(module, traces.workload, {}, Budget())
        return by(kernel, module, launch.launch, memory, [0, 1])  # type: ignore[operator, no-any-return]

    compiled, plain = made(run), made(interpret)
    for found in (compiled, plain):
        assert found.access_space.tolist() == [3, 3, 0] * 2
        assert np.diff(found.access_base[:2].astype(np.int64)).tolist() == [0]  # both from the table's first word on
    assert np.array_equal(compiled.pattern_offset, plain.pattern_offset)
    assert np.array_equal(compiled.pattern_mask, plain.pattern_mask)


@pytest.mark.parametrize(("lanes", "words"), [(1, 32), (2, 16), (4, 8), (16, 2), (32, 1)])
def test_each_word_takes_its_turn(tmp_path: Path, lanes: int, words: int) -> None:
    gpu = load_gpu("v100")
    traces, _ = workload_traces(open_workload(look(tmp_path, lanes)), gpu, {}, Budget(), (), False, None)
    sm = TraceSm.of(traces.launch(0), gpu, None)
    trace = sm.traces.run([0])
    traced = np.array([is_traced(i) for i in sm.kernel.instructions])
    found = words_of_constants(sm.kernel, trace, traced)
    load = next(i.index for i in sm.kernel.instructions if "ld.const" in i.opcode)
    assert found == ({load: words} if words > 1 else {})
    program, _ = sm.lower([0, 80])
    loads = [n for n, name in enumerate(program.op_name) if name.startswith("load.constant")]
    slow = [n for n in loads if program.op_ii[n] > 2]
    assert [int(program.op_ii[n]) for n in slow] == [2 * words] * (words > 1)
    for n in slow:
        assert program.op_kind[n] == KIND_COMPUTE
        assert program.op_latency[n] == gpu.memory.constant_latency + 2 * (words - 1)
    assert len(program.constant_start) == 0  # they fit the cache
    assert all(program.op_kind[n] == KIND_CONSTANT for n in loads if n not in slow)


def test_the_simulator_s_constants_are_there_at_once(tmp_path: Path) -> None:
    """GPUs whose constants pass the load/store unit have them by lines, which is not modelled: nothing changes."""
    gpu = load_gpu("gpgpusim_qv100")
    assert gpu.memory.constant_queued
    cycles = [float(predict(look(tmp_path, n), gpu, cache=False).launches[0].value("kernel.cycles")) for n in (1, 32)]
    assert cycles[0] == cycles[1]


@pytest.mark.parametrize("lanes", [1, 32])
def test_lines_are_looked_up_where_they_do_not_fit(tmp_path: Path, lanes: int) -> None:
    """A cache of one line of 16 B: the words of 32 lanes are in eight."""
    gpu = load_gpu("v100")
    gpu = replace(gpu, constants=replace(gpu.constants, size=16, line=16))
    traces, _ = workload_traces(open_workload(look(tmp_path, lanes)), gpu, {}, Budget(), (), False, None)
    program, _ = TraceSm.of(traces.launch(0), gpu, None).lower([0, 80])
    if lanes == 32:
        assert len(program.constant_start) == 0
        return
    used = program.op_looked_up & (op_issues(program) > 0)
    # not the one whose address is known
    assert [program.op_name[n] for n in np.flatnonzero(used)] == ["load.constant"] * 2
    assert program.constant_start.tolist() == [0, 9, 18]
    assert program.constant_line.tolist() == [0, *range(8)] * 2  # the guarded one goes first
    assert program.constant_last.tolist() == ([True] + [False] * 7 + [True]) * 2
    slow = used & (program.op_ii > 2)
    assert program.op_kind[slow].tolist() == [KIND_CONSTANT]
    assert program.op_latency[slow].tolist() == [gpu.memory.constant_latency + 2 * 31]


def test_four_words_are_two_loads() -> None:
    for name in ("v100", "t4", "a100", "h100", "b200", "rtx5090"):
        assert load_gpu(name).isa.expansion("ld.const.v4.f32") == ("load.constant", "load.constant")
        assert load_gpu(name).isa.expansion("ld.const.v2.f32") is None


def test_a_kernel_of_many_words_takes_as_long_for_each(tmp_path: Path) -> None:
    """Two blocks of 32 warps on each of 80 SMs: 32 words a warp keep the unit for 4,096 cycles."""
    few, many = (predict(look(tmp_path, n, 1024), "v100", cache=False).launches[0] for n in (32, 1))
    unit = 2 * 32 * 32 * 2
    assert unit <= float(many.value("kernel.cycles")) <= unit + float(few.value("kernel.cycles"))


def test_a_task_list_says_that_it_has_them_as_one_broadcast(tmp_path: Path) -> None:
    said = "its lanes read different constants"
    assert said in translate(look(tmp_path, 4)) and said not in translate(look(tmp_path, 32))
