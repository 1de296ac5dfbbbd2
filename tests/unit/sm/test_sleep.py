"""`nanosleep` holds up its warp for the time that it names."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ppt_gpu.machine.code import machine_code
from ppt_gpu.machine.trace import as_machine_code
from ppt_gpu.sm.lowering.code import sleep_times
from ppt_gpu.sm.lowering.lower import lower_trace
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.spec import load_gpu
from ppt_gpu.workload.workload import Buffer

sys.path.insert(0, str(Path(__file__).parents[1] / "emulator"))
from jit_kernels import check_against_interpreter, integer, pointer, text_case

GPU = load_gpu("a100")


def case_of(code: str):
    text = f""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 time)
{{ .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<4>;
ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 31;
{code}
mad.wide.u32 %d2, %r1, 4, %d1; st.global.u32 [%d2], %r1; ret; }}"""
    return text_case(text, (1,), (64,), [pointer("out"), integer(500)], [Buffer("out", "u32", 64)])


@pytest.mark.parametrize(
    "code, time",
    [
        ("nanosleep.u32 1000;", 1000),
        ("mov.u32 %r2, 725; nanosleep.u32 %r2;", 725),
        ("@%p1 nanosleep.u32 64;", 64),
        ("mov.u32 %r2, 8; @%p1 mov.u32 %r2, 8; nanosleep.u32 %r2;", None),  # may be nobody's to set
        ("mov.u32 %r2, 8; nanosleep.u32 %r2; mov.u32 %r2, 16; nanosleep.u32 %r2;", None),
        ("ld.param.u32 %r2, [time]; nanosleep.u32 %r2;", None),
        ("mov.u32 %r2, %tid.x; nanosleep.u32 %r2;", None),
    ],
)
def test_times_that_are_constants(code, time):
    kernel = case_of(code).kernel
    times = sleep_times(kernel)
    assert set(times.values()) == ({time} - {None})
    machine = machine_code(kernel, 32, GPU.isa).kernel
    assert set(sleep_times(machine).values()) == set(times.values())
    assert all(machine.instructions[pc].base == "nanosleep" for pc in sleep_times(machine))


@pytest.mark.parametrize("machine", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_warp_sleeps(machine):
    """One of two warps does; both simulations agree."""
    cycles = []
    for time in (0, 1000, 100_000):
        case = case_of(f"@%p1 bra ASLEEP; bra DONE; ASLEEP: mov.u32 %r2, {time}; nanosleep.u32 %r2; DONE:")
        _, trace = check_against_interpreter(case)
        kernel = case.kernel
        if machine:
            code = machine_code(kernel, 32, GPU.isa)
            kernel, trace = code.kernel, as_machine_code(trace, code)
        program = lower_trace(kernel, trace, GPU, launch=case.launch, active_sms=1)
        found = simulate(program, GPU, resident_blocks=1, active_sms=1)
        assert found.cycles == simulate(program, GPU, resident_blocks=1, active_sms=1, reference=True).cycles
        cycles.append(found.cycles)
    for more, time in zip(cycles[1:], (1000, 100_000), strict=True):
        assert more - cycles[0] == pytest.approx(time * 1e-9 * GPU.sm.clock, abs=40)
