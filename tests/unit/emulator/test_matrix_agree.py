"""Random matrix products of every form: any element bits, both engines leave the same memory."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from jit_kernels import check_against_interpreter
from matrix_kernels import case_of

from ppt_gpu.emulator.forms.matrix_form import MMA_SHAPES, SPARSE_SHAPES, product_of

FORMS = [(kind, shape, False) for kind, shapes in MMA_SHAPES.items() for shape in shapes]
FORMS += [(kind, shape, True) for kind, shapes in SPARSE_SHAPES.items() for shape in shapes]


@st.composite
def opcodes(draw: st.DrawFn) -> str:
    kind, shape, sparse = draw(st.sampled_from(FORMS))
    head = ("mma.sp::ordered_metadata" if sparse else "mma") + f".sync.aligned.{shape}.row.col"
    if kind == "f64":
        return f"{head}.f64.f64.f64.f64"
    if kind == "b1":
        return f"{head}.s32.b1.b1.s32.{draw(st.sampled_from(['and', 'xor']))}.popc"
    others = {"s8": ("s8", "u8"), "u8": ("s8", "u8"), "s4": ("s4", "u4"), "u4": ("s4", "u4")}
    if kind in others:
        saturate = draw(st.sampled_from(["", ".satfinite"]))
        return f"{head}{saturate}.s32.{kind}.{draw(st.sampled_from(others[kind]))}.s32"
    narrow = ("e4m3", "e5m2", *(() if shape == "m16n8k16" and not sparse else ("e3m2", "e2m3", "e2m1")))
    b = draw(st.sampled_from(narrow)) if kind in narrow else kind
    d = draw(st.sampled_from(["f16", "f32"])) if kind == "f16" or kind in narrow else "f32"
    return f"{head}.{d}.{kind}.{b}.{d}"


def bits(rng: np.random.Generator, count: int, width: int, extreme: bool) -> np.ndarray:
    """Any bits, or numbers of moderate size mixed with zeros, all ones and single bits."""
    values = rng.integers(0, 1 << width, count, dtype=np.uint64, endpoint=False) if width < 64 else rng.bytes(8 * count)
    values = np.frombuffer(values, np.uint64) if isinstance(values, bytes) else values
    special = np.uint64(1) << rng.integers(0, width, count).astype(np.uint64)
    chosen = rng.integers(0, 6 if extreme else 60, count)
    return np.select([chosen == 0, chosen == 1], [np.uint64(0), special], values)


@given(opcodes(), st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=15, deadline=None)
def test_both_engines_agree(opcode: str, seed: int, extreme: bool) -> None:
    product, rng = product_of(opcode), np.random.default_rng(seed)
    parts = {"a": product.fragment_a(), "b": product.fragment_b(), "c": product.fragment_c(product.c)}
    dense = {name: bits(rng, f.elements, f.bits, extreme) for name, f in parts.items()}
    metadata = rng.integers(0, 1 << 32, 32) if product.a != "tf32" else np.full(32, 0x4E4EE4E4)
    check_against_interpreter(case_of(opcode, dense, 0, metadata)[0])
