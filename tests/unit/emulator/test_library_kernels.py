"""Kernels of the kinds that libraries hold, in both engines, against plain integers and NumPy."""

import numpy as np
from jit_kernels import check_against_interpreter, file_case, integer, pointer

from ppt_gpu.validate.coverage.case import corpus
from ppt_gpu.workload.value_text import parse_tensormap
from ppt_gpu.workload.workload import Buffer


def case(kernel, grid, block, arguments, buffers, **options):
    return file_case(corpus() / "library.ptx", kernel, grid, block, arguments, buffers, **options)


def test_division_of_wide_integers():
    x = np.random.default_rng(3).integers(0, 2**64, 96, dtype="u8")
    buffers = [Buffer("x", "u64", 96), Buffer("q", "u64", 64), Buffer("r", "u64", 64)]
    found = case("wide_integers", (1,), (32,), [pointer("x"), pointer("q"), pointer("r")], buffers, fill={"x": x})
    memory, _ = check_against_interpreter(found)
    whole = [int(v) for v in x]
    pairs = [divmod(whole[i] << 64 | whole[i + 32], (whole[i + 64] >> i) << i | 1) for i in range(32)]
    for name, values in zip("qr", zip(*pairs, strict=True), strict=True):
        low, high = memory.view(name, "u8").reshape(2, 32).tolist()
        assert [h << 64 | one for h, one in zip(high, low, strict=True)] == list(values)


def test_sums_that_look_back():
    blocks = 20
    x = np.random.default_rng(4).integers(0, 1000, blocks * 64, dtype="u4")
    buffers = [
        Buffer("x", "u32", len(x)),
        Buffer("o", "u32", len(x)),
        Buffer("s", "u64", blocks),
        Buffer("t", "u32", 1),
    ]
    arguments = [pointer(name) for name in "xost"]
    memory, trace = check_against_interpreter(case("look_back", (blocks,), (64,), arguments, buffers, fill={"x": x}))
    assert np.array_equal(memory.view("o", "u4"), np.cumsum(x))
    assert trace.warnings == ()


def factors(rows, columns, depth):
    rng, shapes = np.random.default_rng(5), ((rows, depth), (columns, depth))
    return [rng.integers(-3, 4, shape).astype("f2") for shape in shapes]


def buffers_for(a, b):
    return [Buffer("a", "f16", a.size), Buffer("b", "f16", b.size), Buffer("c", "f32", len(a) * len(b))]


def assert_product(memory, a, b):
    expected = a.astype("f4") @ b.astype("f4").T
    assert np.array_equal(memory.view("c", "f4").reshape(expected.shape), expected)


def test_a_product_in_three_stages():
    a, b = factors(64, 64, 96)
    arguments = [pointer("a"), pointer("b"), pointer("c"), integer(64), integer(96)]
    fill = {"a": a.ravel(), "b": b.ravel()}
    found = case("multistage", (1, 1), (128,), arguments, buffers_for(a, b), dynamic=3 * 8192, fill=fill)
    memory, trace = check_against_interpreter(found)
    assert_product(memory, a, b)
    assert trace.warnings == ()


def test_a_product_of_specialised_warps():
    a, b = factors(64, 32, 256)
    maps = [
        parse_tensormap(f"tensormap({name}, dims=256x{rows}, box=64x{rows}, type=f16, swizzle=128B)")
        for name, rows in (("a", 64), ("b", 32))
    ]
    arguments = [*maps, pointer("c"), integer(32), integer(256)]
    fill = {"a": a.ravel(), "b": b.ravel()}
    found = case("specialised", (1, 1), (256,), arguments, buffers_for(a, b), dynamic=2 * 12288, fill=fill)
    memory, _ = check_against_interpreter(found)
    assert_product(memory, a, b)
