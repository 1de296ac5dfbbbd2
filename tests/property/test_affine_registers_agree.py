"""What is called affine is what a run computes: random integer programs, straight and in a loop."""

from __future__ import annotations

import numpy as np
from hypothesis import event
from hypothesis import strategies as st
from some_examples import examples

from ppt_gpu.emulator.memory.initial_memory import device_memory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.frontends.call import open_call
from ppt_gpu.frontends.prepare import prepare
from ppt_gpu.models.affine.affine import Affine
from ppt_gpu.models.affine.registers import _Interpreter, counter
from ppt_gpu.models.affine.values import assign
from ppt_gpu.ptx.cfg import control_flow
from ppt_gpu.ptx.module import Reg
from ppt_gpu.workload.budget import Budget

THREADS, BLOCKS, TRIPS = 64, 3, 3
TEXT = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<64>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %laneid;
    mad.lo.u32 %r5, %r2, %r3, %r1;
    mul.lo.u32 %r6, %r5, {trips};
    mov.u32 %r7, 0;
    {before}
loop:
    {inside}
    add.u32 %r8, %r6, %r7;
    mul.wide.u32 %rd2, %r8, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], {result};
    add.u32 %r7, %r7, 1;
    setp.lt.u32 %p1, %r7, {trips};
    @%p1 bra loop;
    ret;
}}
"""
FIRST = 10  # registers of the program are %r10 and on
#: opcode -> largest immediate of its second source; "": a register may stand there, too
OPERATIONS = {"add": "", "sub": "", "mul.lo": "8", "shl": "3", "shr": "6", "and": "255", "or": "", "xor": "",
              "rem": "64", "div": "64", "mad.lo": "8", "min": ""}  # fmt: skip


@st.composite
def operations(draw: st.DrawFn, first: int, last: int) -> list[str]:
    """Instructions that write %r{first} to %r{last - 1}, or one of those again."""
    lines = []
    for target in range(first, last):
        name = draw(st.sampled_from(sorted(OPERATIONS)))
        known = st.sampled_from([1, 2, 4, 5, 7, *range(FIRST, target)])
        limit = OPERATIONS[name]
        least = 1 if name in ("rem", "div") else 0
        small = draw(st.integers(least, int(limit) if limit else 64))
        second = f"%r{draw(known)}" if not limit and draw(st.booleans()) else str(small)
        third = f", %r{draw(known)}" if name == "mad.lo" else ""
        kind = "b32" if name in ("shl", "and", "or", "xor") else "s32"
        again = draw(st.booleans()) and target > FIRST
        written = draw(st.integers(FIRST, target - 1)) if again else target
        guard = "setp.lt.s32 %p2, %r1, 9; @%p2 " if draw(st.integers(0, 7)) == 0 else ""
        lines += [f"mov.u32 %r{target}, 0;"] if again or guard else []
        lines.append(f"{guard}{name}.{kind} %r{written}, %r{draw(known)}, {second}{third};")
    return lines


@examples(40, 1500, operations(FIRST, FIRST + 5), operations(FIRST + 5, FIRST + 9), st.integers(FIRST, FIRST + 8))
def test_affine_registers_hold_what_they_are_said_to(before: list[str], inside: list[str], result: int) -> None:
    text = TEXT.format(trips=TRIPS, before="\n".join(before), inside="\n".join(inside), result=f"%r{result}")
    out = np.zeros(THREADS * BLOCKS * TRIPS, np.uint32)
    made = open_call(text, (8, 0), {"grid": BLOCKS, "block": THREADS, "args": [out]})
    prepared = prepare(made.workload, (8, 0))
    launch = prepared.workload.launches[0]
    kernel = prepared.module.kernels[launch.kernel]
    flow = control_flow(kernel)
    store = next(item for item in kernel.instructions if item.base == "st")
    block = flow.block_of(store.index)
    state = _Interpreter(kernel, launch, flow).run()[block]
    assert state is not None
    for at in range(flow.block_start[block], store.index):
        assign(state, kernel.instructions[at])
    value = store.operands[1]
    assert isinstance(value, Reg)
    said = state.registers[value.id]
    event("not known" if said is None else "constant" if said.is_constant else "affine")
    if said is None:
        return
    memory = device_memory(prepared.module, prepared.workload, made.contents, Budget())
    run(kernel, prepared.module, launch, memory, range(BLOCKS), trace=False)
    name = prepared.workload.buffers[0].name
    assert np.array_equal(memory.view(name, np.dtype(np.uint32)), evaluated(said, counter(block)))


def evaluated(value: Affine, loop: str) -> np.ndarray:
    """Of every thread and iteration, in the order of the stores' addresses."""
    thread = np.arange(THREADS * BLOCKS).repeat(TRIPS)
    tid, iteration = thread % THREADS, np.tile(np.arange(TRIPS), THREADS * BLOCKS)
    found = np.full(len(thread), value.constant, np.int64)
    for name, factor in value.terms:
        symbol, _, part = name.partition(" ")
        parts = {"tid.x": tid, "ctaid.x": thread // THREADS, "laneid": tid % 32}
        if name == loop:
            number = iteration
        else:
            word, _, unit = part.partition(" ")
            number = parts[symbol]
            number = number if not word else number % int(unit) if word == "mod" else number // int(unit)
        found += factor * number
    return found.astype(np.uint32)
