"""Kernels of one matrix instruction: each lane loads its registers of A, B, C and stores its registers of D."""

import numpy as np
from jit_kernels import Case, pointer

from ppt_gpu.emulator.forms.matrix_form import product_of
from ppt_gpu.ptx import parse_module
from ppt_gpu.workload.workload import Buffer

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"


def moves(name, registers, width, buffer, load):
    """PTX that loads or stores %name0 ... of each lane, one after another in `buffer`."""
    size = width // 8
    lines = [
        f"ld.param.u64 %q0, [{buffer}]; mul.wide.u32 %q1, %t0, {registers * size}; add.s64 %q0, %q0, %q1;",
    ]
    for r in range(registers):
        place = f"[%q0+{r * size}]"
        lines.append(f"ld.global.b{width} %{name}{r}, {place};" if load else f"st.global.b{width} {place}, %{name}{r};")
    return "\n".join(lines)


def vector(name, registers):
    return "{" + ", ".join(f"%{name}{r}" for r in range(registers)) + "}"


def source(opcode, product):
    """Kernel k(a, b, c, d, meta)."""
    parts = {"a": product.fragment_a(), "b": product.fragment_b()}
    parts |= {"c": product.fragment_c(product.c), "d": product.fragment_c(product.d)}
    lines = [".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u64 meta) {"]
    lines.append(".reg .b64 %q<4>; .reg .b32 %t<4>; mov.u32 %t0, %tid.x;")
    for name, f in parts.items():
        lines.append(f".reg .b{f.width} %{name}<{f.registers}>;")
        if name != "d":
            lines.append(moves(name, f.registers, f.width, name, True))
    lines.append(moves("t", 0, 32, "meta", True))
    lines.append("mul.wide.u32 %q1, %t0, 4; add.s64 %q0, %q0, %q1; ld.global.b32 %t1, [%q0];")
    extra = f", %t1, {product.selector}" if product.sparse else ""
    operands = ", ".join(vector(name, parts[name].registers) for name in "dabc")
    lines.append(f"{opcode} {operands}{extra};")
    lines.append(moves("d", parts["d"].registers, parts["d"].width, "d", False))
    return HEAD + "\n".join([*lines, "ret; }"]), parts


def registers_of(fragment, dense):
    """What each lane holds of the element bits `dense` (flat): bytes, lane by lane."""
    words = np.zeros((32, fragment.registers), f"u{fragment.width // 8}")
    for r, p in np.ndindex(fragment.place.shape[:2]):
        bits = dense[fragment.place[r, p]].astype(words.dtype)
        words[:, r] |= bits << words.dtype.type(p * fragment.bits)
    return words.ravel().view("u1")


def dense_of(fragment, raw):
    """The element bits of a matrix from what each lane holds."""
    words = raw.view(f"u{fragment.width // 8}").reshape(32, fragment.registers)
    dense = np.zeros(fragment.elements, "u8")
    for r, p in np.ndindex(fragment.place.shape[:2]):
        dense[fragment.place[r, p]] = words[:, r].astype("u8") >> p * fragment.bits & ((1 << fragment.bits) - 1)
    return dense


def case_of(opcode, dense, selector=0, metadata=None):
    """A case ready to run from the element bits of A, B and C (flat arrays)."""
    product = product_of(opcode, selector)
    text, parts = source(opcode, product)
    fill = {name: registers_of(parts[name], np.asarray(dense[name], "u8")) for name in "abc"}
    fill["meta"] = np.zeros(32, "u4") if metadata is None else np.asarray(metadata, "u4")
    buffers = [Buffer(name, "u8", values.nbytes) for name, values in fill.items()]
    buffers.append(Buffer("d", "u8", parts["d"].registers * parts["d"].width // 8 * 32))
    arguments = [pointer(name) for name in ("a", "b", "c", "d", "meta")]
    return Case(parse_module(text, "test.ptx"), "k", (1,), (32,), arguments, buffers, fill=fill), parts["d"]
