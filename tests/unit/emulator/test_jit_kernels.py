"""Kernels made by nvcc: results against NumPy, memory and trace against the interpreter bit for bit."""

import numpy as np
from jit_kernels import check_against_interpreter, file_case, integer, pointer

from ppt_gpu.emulator.run.run import run
from ppt_gpu.workload.workload import Argument, Buffer


def test_divergent_loops_and_switch():
    n = 1000
    values = np.random.default_rng(1).integers(0, 1 << 16, n).astype("i4")
    case = file_case(
        "divergent.ptx", "divergent", (8,), (128,), [pointer("a"), pointer("o"), integer(n)],
        [Buffer("a", "s32", n), Buffer("o", "s32", n)], fill={"a": values},
    )  # fmt: skip
    memory, trace = check_against_interpreter(case)

    def expected(i, v):
        r = 0
        for k in range(v & 15):
            r = (r + r * 3 + v if v >> k & 1 else r ^ (v << (k & 7))) & 0xFFFFFFFF
        if v & 3 == 0:
            return r * 5 + 7
        if v & 3 == 1:
            r = (r ^ 0x55555555) - v
            for q in range(4):
                r = (r * r + q) & 0xFFFFFFFF
            return r
        if v & 3 == 2:
            return r + int(values[i * 7 % n])
        signed = r - (1 << 32) if r >> 31 else r
        return int(np.fmod(signed, 1021))

    want = [expected(i, v) & 0xFFFFFFFF for i, v in enumerate(values.tolist())]
    assert memory.view("o", "u4").tolist() == want
    assert trace.pc_threads.sum() < 0.8 * 32 * trace.pc_executed.sum()  # it did diverge
    assert trace.warp_threads.sum() == trace.pc_threads.sum()


def test_histogram_with_atomics():
    n = 5000
    case = file_case(
        "mixed.ptx", "histogram", (3,), (128,), [pointer("data"), pointer("bins"), integer(n)],
        [Buffer("data", "u8", n, "random", low=0, high=255), Buffer("bins", "u32", 64)],
    )  # fmt: skip
    memory, trace = check_against_interpreter(case)
    data = memory.view("data", "u1") & 63
    assert np.array_equal(memory.view("bins", "u4"), np.bincount(data, minlength=64))
    assert memory.view("total", "u4").tolist() == [8]
    assert set(trace.access_space) == {0, 1}


def test_warp_shuffles_and_votes():
    n = 200
    case = file_case(
        "mixed.ptx", "warp_sums", (2,), (128,), [pointer("in"), pointer("out"), pointer("votes"), integer(n)],
        [Buffer("in", "s32", n, "random", low=-99, high=99), Buffer("out", "s32", 8), Buffer("votes", "u32", 8)],
    )  # fmt: skip
    memory, _ = check_against_interpreter(case)
    padded = np.zeros(256, "i4")
    padded[:n] = memory.view("in", "i4")
    rows = padded.reshape(8, 32)
    assert memory.view("out", "i4").tolist() == rows.sum(1).tolist()
    votes = ((rows & 1).astype("u8") << np.arange(32, dtype="u8")).sum(1)
    assert memory.view("votes", "u4").tolist() == votes.tolist()


def test_local_arrays():
    n = 70
    case = file_case(
        "mixed.ptx", "local_sort", (2,), (64,), [pointer("in"), pointer("out"), integer(n)],
        [Buffer("in", "s32", 8 * n, "random", low=-50, high=50), Buffer("out", "s32", 8 * n)],
    )  # fmt: skip
    memory, trace = check_against_interpreter(case)
    assert np.array_equal(memory.view("out", "i4").reshape(n, 8), np.sort(memory.view("in", "i4").reshape(n, 8)))
    assert 2 in trace.access_space


def test_generic_addresses_and_dynamic_shared_memory():
    for shared in (0, 1):
        case = file_case(
            "mixed.ptx", "generic", (1,), (64,), [pointer("g"), integer(shared)],
            [Buffer("g", "s32", 64, "iota")], dynamic=256, symbols=[Buffer("table", "s32", 16, "iota")],
        )  # fmt: skip
        memory, trace = check_against_interpreter(case)
        lane = np.arange(64)
        source = (63 - lane) * 10 if shared else 63 - lane
        assert memory.view("g", "i4").tolist() == (source + lane % 16).tolist()
        loads = np.flatnonzero(np.array([i.opcode.startswith("ld.volatile.u32") for i in case.kernel.instructions]))
        assert trace.pc_executed[loads].tolist() == [2]


def test_by_value_struct():
    shape = Argument("struct", fields=(Argument("f64", 1.5), Argument("s32", 3), Argument("s8", 7)))
    case = file_case("mixed.ptx", "by_value", (1,), (32,), [shape, pointer("out")], [Buffer("out", "f64", 32)])
    memory, _ = check_against_interpreter(case)
    assert memory.view("out", "f8").tolist() == (1.5 * np.arange(32) + 10).tolist()


def test_vector_accesses():
    n = 50
    case = file_case(
        "mixed.ptx", "vectors", (1,), (64,), [pointer("in"), pointer("out"), integer(n)],
        [Buffer("in", "f32", 4 * n, "iota"), Buffer("out", "f32", 4 * n)],
    )  # fmt: skip
    memory, _ = check_against_interpreter(case)
    assert memory.view("out", "f4").tolist() == list(range(4 * n - 1, -1, -1))


def test_integer_mix():
    n = 300
    case = file_case(
        "mixed.ptx", "integers", (3,), (128,), [pointer("a"), pointer("b"), pointer("out"), integer(n)],
        [
            Buffer("a", "s64", n, "random", low=-(2**62), high=2**62),
            Buffer("b", "s32", n, "random", low=-5, high=5),
            Buffer("out", "s64", n),
        ],
    )  # fmt: skip
    check_against_interpreter(case)


def test_float_mix():
    n = 300
    case = file_case(
        "mixed.ptx", "floats", (3,), (128,), [pointer(x) for x in "abxy"] + [integer(n)],
        [
            Buffer("a", "f32", n, "random", low=0, high=1),
            Buffer("b", "f64", n, "random", low=0, high=100),
            Buffer("x", "f32", n),
            Buffer("y", "f64", n),
        ],
    )  # fmt: skip
    memory, _ = check_against_interpreter(case)
    a, b = memory.view("a", "f4").astype("f8"), memory.view("b", "f8")
    want = a / (1 + a * a) + np.sqrt(a) + 1 / (a + 2) + 1 / np.sqrt(a + 1)
    want += np.trunc(a * 1000) + np.floor(a * 10) + np.rint(a * 7) + np.minimum(a, 0.5) - np.maximum(a, 0.25)
    want += b + a + a * a + a
    np.testing.assert_allclose(memory.view("x", "f4"), want, rtol=1e-6)
    s = b / (1 + b) + np.sqrt(b) + a + np.trunc(b * 1e6) + np.ceil(b) + np.trunc(b * 3)
    np.testing.assert_allclose(memory.view("y", "f8"), s * b + 1, rtol=1e-14)


def test_lanes_that_wait_for_lanes_of_their_warp():
    case = file_case(
        "mixed.ptx", "locked", (2,), (64,), [pointer("lock"), pointer("counter"), pointer("order")],
        [Buffer("lock", "s32", 1), Buffer("counter", "s32", 1), Buffer("order", "s32", 128)],
    )  # fmt: skip
    memory, trace = case.run()
    assert memory.view("counter", "i4").tolist() == [128]
    assert sorted(memory.view("order", "i4").tolist()) == sorted([*range(64), *range(64)])
    assert int(trace.warp_threads.sum()) == int(trace.pc_threads.sum())


def test_warps_that_wait_for_each_other():
    case = file_case("mixed.ptx", "relay", (1,), (256,), [pointer("out")], [Buffer("out", "s32", 8)])
    memory, _ = case.run()
    assert memory.view("out", "i4").tolist() == [7, 6, 5, 4, 3, 2, 1, 0]


def test_engine_is_cached_by_module_text():
    from ppt_gpu.emulator.run import run as module

    arguments = [pointer("in"), pointer("out"), integer(4)]
    buffers = [Buffer("in", "f32", 16), Buffer("out", "f32", 16)]
    for _ in range(2):
        file_case("mixed.ptx", "vectors", (1,), (32,), arguments, buffers).run(engine=run)
        hits = module._engine.cache_info().hits
        file_case("mixed.ptx", "vectors", (1,), (32,), arguments, buffers).run(engine=run)
        assert module._engine.cache_info().hits == hits + 1
