"""Runs a few PTX instructions on given values, one thread a value: shared by the tests of functional execution."""

import numpy as np
from reference.interpreter.interpreter import interpret

from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.ptx import parse_module
from ppt_gpu.workload.workload import Argument, Buffer, Launch

NUMPY = {
    "b8": "u1", "u8": "u1", "s8": "i1", "b16": "u2", "u16": "u2", "s16": "i2", "f16": "f2", "bf16": "u2",
    "b32": "u4", "u32": "u4", "s32": "i4", "f32": "f4", "b64": "u8", "u64": "u8", "s64": "i8", "f64": "f8",
}  # fmt: skip
WIDTH = {kind: 8 * np.dtype(name).itemsize for kind, name in NUMPY.items()}


def register(kind):
    """The register type that holds `kind`: 8-bit values live in 16-bit registers."""
    return f"b{max(WIDTH[kind], 16)}"


def source(body, inputs, output):
    """PTX of kernel k(in0, in1, ..., out): %a, %b, %c, ... hold in0[i], in1[i], ...; %d goes to out[i]."""
    names = "abcefgh"[: len(inputs)]
    params = ", ".join(f".param .u64 p{i}" for i in range(len(inputs) + 1))
    lines = [
        ".version 8.0\n.target sm_80\n.address_size 64",
        f".visible .entry k({params})\n{{",
        ".reg .pred %p, %q; .reg .b32 %i, %t32, %u32; .reg .b64 %at, %t64, %u64; .reg .b16 %t16, %u16;",
        ".reg .b128 %q1;",
        f".reg .{register(output)} %d;",
        "mov.u32 %i, %tid.x;",
    ]
    for number, (name, kind) in enumerate(zip(names, inputs, strict=True)):
        size = WIDTH[kind] // 8
        lines += [
            f".reg .{register(kind)} %{name}; ld.param.u64 %at, [p{number}];",
            f"mul.wide.u32 %t64, %i, {size}; add.s64 %at, %at, %t64; ld.global.{kind} %{name}, [%at];",
        ]
    lines += [
        body,
        f"ld.param.u64 %at, [p{len(inputs)}]; mul.wide.u32 %t64, %i, {WIDTH[output] // 8};",
        f"add.s64 %at, %at, %t64; st.global.{output} [%at], %d;",
        "ret;\n}",
    ]
    return "\n".join(lines)


def lanes(body, inputs, output, *columns, run=interpret):
    """`out` as a NumPy array; `columns` are the values of each input, `inputs` and `output` PTX types."""
    module = parse_module(source(body, inputs, output), "test.ptx")
    count = max(len(c) for c in columns) if columns else 32
    buffers = [Buffer(f"in{i}", kind, count) for i, kind in enumerate(inputs)] + [Buffer("out", output, count)]
    memory = DeviceMemory.build(module, buffers)
    for number, (kind, column) in enumerate(zip(inputs, columns, strict=True)):
        raw = np.array(column, NUMPY[kind]) if kind != "bf16" else np.array(column, "u2")
        memory.view(f"in{number}", NUMPY[kind])[:] = raw
    arguments = tuple(Argument("u64", buffer=b.name) for b in buffers)
    run(module.kernels["k"], module, Launch("k", (1, 1, 1), (count, 1, 1), arguments), memory, [0])
    return memory.view("out", NUMPY[output]).copy()
