"""Floating-point operations of instructions, tensor cores included."""

from __future__ import annotations

import pytest

from ppt_gpu import predict
from ppt_gpu.bounds.flops import flops
from ppt_gpu.ptx.instructions import operation
from ppt_gpu.ptx.parsing.parser import parse_module, select_kernel


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fma.rn.f32 %f1, %f1, %f1, %f1;", ("fp32", 2)),
        ("add.f64 %d1, %d1, %d1;", ("fp64", 1)),
        ("fma.rn.f16x2 %r1, %r1, %r1, %r1;", ("fp16", 4)),
        ("add.s32 %r1, %r1, %r1;", ("", 0)),
        ("ld.global.f32 %f1, [%rd1];", ("", 0)),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r1,%r2}, {%f1,%f2,%f3,%f4};",
            ("tensor", 2 * 16 * 8 * 16 / 32),
        ),
        (
            "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%r1,%r2,%r3,%r4}, {%r1,%r2}, {%r3}, {%r1,%r2,%r3,%r4};",
            ("", 0),
        ),
    ],
)
def test_of_an_instruction(text: str, expected: tuple[str, float]) -> None:
    source = f""".version 8.0
.target sm_80
.address_size 64
.visible .entry k() {{
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    .reg .f32 %f<9>;
    .reg .f64 %d<9>;
    {text}
    ret;
}}
"""
    (instruction, _) = select_kernel(parse_module(source)).instructions
    assert flops(operation(instruction), instruction.modifiers) == expected


def test_products_of_groups_and_sparse_ones() -> None:
    words = ("mma_async", "sync", "aligned", "m64n128k16", "f32", "f16", "f16")
    assert flops("tensor.wgmma.n128", words) == ("tensor", 2 * 64 * 128 * 16 / 128)
    assert flops("tensor.mma.f16.m16n8k16", ("sp::ordered_metadata", "m16n8k32", "f32", "f16")) == ("tensor", 128)
    assert flops("tensor.mma.f16.m8n8k4", ("m8n8k4", "row", "col", "f32", "f16")) == ("tensor", 4 * 16)
    assert flops("tensor.mma.tf32.m16n8k8") == ("tensor", 64)  # of a task list
    assert flops("tensor.movmatrix") == ("", 0.0)


def test_a_product_on_tensor_cores_has_a_roofline() -> None:
    """2 n^3 operations; the roof of halves on an A100 is 312 TFLOP/s (data sheet), at its boost clock of 1.41 GHz."""
    roofs = predict("hgemm", "a100").launches[0].detail.roofs
    assert (roofs.kind, roofs.flops) == ("tensor", pytest.approx(2 * 1024**3, rel=0.01))
    assert roofs.peak == pytest.approx(312e12, rel=0.01)
    assert roofs.achieved < roofs.peak
