"""Loads, stores and addresses in every form: both engines against values worked out with NumPy."""

import numpy as np
import pytest
from jit_kernels import check_against_interpreter, pointer, text_case
from reference.interpreter.interpreter import interpret

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.run.run import run
from ppt_gpu.workload.workload import Argument, Buffer

HEAD = (
    ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .f32 %f<12>; .reg .b64 %d<20>; .reg .b128 %q<4>;\n"
    "ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.s64 %d3, %d1, %d2;\n"
)


def kernel(body, *, count=256, before="", block=(32,), params=".param .u64 p", arguments=(), **options):
    """A kernel with one buffer of `count` words, their own numbers times 0x01010101; [%d3] is the thread's."""
    text = f"{before}\n.visible .entry k({params})\n{{\n{HEAD}{body}\nret;\n}}"
    values = (np.arange(count) * 0x01010101).astype("u4")
    case = text_case(text, (1,), block, [pointer("a"), *arguments], [Buffer("a", "u32", count)], **options)
    case.fill = {"a": values}
    return case


def words(case):
    memory, trace = check_against_interpreter(case)
    return memory.view("a", "u4"), trace


LANE = np.arange(32)
START = (np.arange(256) * 0x01010101).astype("u4")


@pytest.mark.parametrize(
    "load",
    ["ld.global.u32 %r2, [%d3];", "ld.u32 %r2, [%d3];", "ldu.global.u32 %r2, [%d3];",
     "ld.volatile.global.u32 %r2, [%d3];",
     "ld.relaxed.gpu.global.u32 %r2, [%d3];", "ld.acquire.sys.u32 %r2, [%d3];",
     "ld.mmio.relaxed.sys.global.u32 %r2, [%d3];",
     "ld.global.ca.nc.u32 %r2, [%d3];", "ld.global.nc.L1::no_allocate.L2::256B.u32 %r2, [%d3];",
     "ld.weak.global.cs.u32 %r2, [%d3];",
     "ld.global.nc.L1::evict_first.L2::evict_last.u32 %r2, [%d3];", "ld.global.u32 %r2, [%d3].unified;",
     "ld.global.L2::cache_hint.u32 %r2, [%d3], %d9;", "ld.global.v2.u32 {%r2, _}, [%d3+0];",
     "ld.global.b32 %f1, [%d3]; mov.b32 %r2, %f1;"],
)  # fmt: skip
def test_every_spelling_of_a_load(load):
    aligned = "shl.b64 %d4, %d2, 1; add.s64 %d3, %d1, %d4;" if "v2" in load else ""
    out, _ = words(
        kernel(f"{aligned} {load} add.u32 %r2, %r2, 1; add.s64 %d3, %d1, %d2; st.global.u32 [%d3+512], %r2;")
    )
    assert out[128:160].tolist() == (START[LANE * (2 if aligned else 1)] + 1).tolist()


@pytest.mark.parametrize(
    "store",
    ["st.global.u32 [%d3], 7;", "st.u32 [%d3], 7;", "st.volatile.global.u32 [%d3], 7;",
     "st.release.gpu.global.u32 [%d3], 7;",
     "st.mmio.relaxed.sys.global.u32 [%d3], 7;", "st.global.wt.u32 [%d3], 7;", "st.global.L1::evict_last.u32 [%d3], 7;",
     "st.global.L2::cache_hint.u32 [%d3], 7, %d9;", "st.weak.global.cg.u32 [%d3], 7;"],
)  # fmt: skip
def test_every_spelling_of_a_store(store):
    out, _ = words(kernel(f"createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %d9, 0.5; {store}"))
    assert out.tolist() == [7] * 32 + START[32:].tolist()


@pytest.mark.parametrize(
    ("kind", "vector", "registers"),
    [("u8", 4, "%r"), ("s8", 2, "%r"), ("b16", 4, "%h"), ("u16", 2, "%r"), ("b32", 4, "%r"), ("b32", 8, "%r"),
     ("f32", 8, "%f"), ("b64", 2, "%d1"), ("f64", 4, "%d1"), ("b64", 4, "%d1")],
)  # fmt: skip
def test_vectors_are_copied_whole(kind, vector, registers):
    """Every lane copies its vector from the first to the second half."""
    size = {"8": 1, "6": 2, "2": 4, "4": 8}[kind[-1]] * vector
    names = ", ".join(f"{registers}{2 + n}" for n in range(vector))
    out, trace = words(
        kernel(
            f"mul.wide.u32 %d4, %r1, {size}; add.s64 %d5, %d1, %d4;"
            f"ld.global.v{vector}.{kind} {{{names}}}, [%d5]; st.global.v{vector}.{kind} [%d5+1024], {{{names}}};",
            count=512,
        )
    )
    raw = out.view("u1")
    assert raw[1024 : 1024 + 32 * size].tolist() == raw[: 32 * size].tolist()
    assert trace.pattern_offset[trace.access_pattern].tolist() == [(LANE * size).tolist()] * 2


def test_b128_moves_whole_registers():
    out, _ = words(
        kernel(
            "mul.wide.u32 %d4, %r1, 16; add.s64 %d5, %d1, %d4; ld.global.b128 %q1, [%d5]; mov.b128 {%d6, %d7}, %q1;"
            "mov.b128 %q2, {%d7, %d6}; setp.lt.u32 %p1, %r1, 9; @%p1 mov.b128 %q1, %q2; st.global.b128 [%d5+512], %q1;"
        )
    )
    rows = START[:128].reshape(32, 4)
    rows = np.where(LANE[:, None] < 9, rows[:, [2, 3, 0, 1]], rows)
    assert out[128:].tolist() == rows.ravel().tolist()


def test_narrow_loads_fill_wide_registers():
    out, _ = words(
        kernel(
            "ld.global.s8 %r2, [%d3+3]; ld.global.u8 %h1, [%d3]; cvt.u32.u16 %r3, %h1; ld.global.s16 %d4, [%d3+2];"
            "cvt.u32.u64 %r4, %d4; add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4; st.global.u32 [%d3+512], %r2;"
        )
    )
    bytes_of = START[:32].astype("u8") & 0xFF
    signed16 = (START[:32] >> 16).astype("u2").view("i2")
    expected = (bytes_of.astype("u1").view("i1").astype("i8") + bytes_of.astype("i8") + signed16).astype("u4")
    assert out[128:160].tolist() == expected.tolist()


def test_addresses_of_32_bits_are_extended_with_zeros():
    body = (
        "mov.u32 %r2, t; st.shared.u32 [%r2+-4], 5; ld.shared.u32 %r3, [4]; mov.u32 %r4, s; st.global.u32 [%d3], %r3;"
    )
    out, _ = words(kernel(body, before=".shared .align 4 .b8 s[8]; .shared .align 4 .b8 t[8];"))
    assert out[:32].tolist() == [5] * 32


def structure():
    fields = (Argument("f32", 1.5), Argument("s32", -7), Argument("s64", 0x1122334455667788), Argument("s32", 3))
    return Argument("", fields=fields)


def test_parameters_by_register_and_by_generic_address():
    """A by-value struct read with a computed offset, and through cvta.param as a grid constant."""
    out, trace = words(
        kernel(
            "mov.b64 %d4, s; and.b32 %r2, %r1, 3; mul.wide.u32 %d5, %r2, 4; add.s64 %d6, %d4, %d5;"
            "ld.param.u32 %r3, [%d6]; st.global.u32 [%d3], %r3; cvta.param.u64 %d7, %d6; ld.u32 %r4, [%d7+4];"
            "st.global.u32 [%d3+128], %r4; ld.param.v2.u32 {%r5, %r6}, [s+8]; st.global.v2.u32 [%d1+256], {%r5, %r6};",
            params=".param .u64 p, .param .align 8 .b8 s[24]",
            arguments=[structure()],
        )
    )
    block = np.frombuffer(np.float32(1.5).tobytes() + np.int32(-7).tobytes() + np.int64(0x1122334455667788).tobytes()
                          + np.int32(3).tobytes() + bytes(4), "u4")  # fmt: skip
    assert out[:32].tolist() == block[LANE & 3].tolist()
    assert out[32:64].tolist() == block[(LANE & 3) + 1].tolist()
    assert out[64:66].tolist() == block[2:4].tolist()
    masks = trace.pattern_mask[trace.access_pattern].tolist()
    assert masks[1] == 0, "a generic read of parameters reaches no memory that is recorded"


def test_one_generic_access_in_all_spaces():
    """Lanes 0, 4, ... read global memory, 1, 5, ... shared, 2, 6, ... local memory, 3, 7, ... a parameter."""
    body = (
        "mov.u64 %d4, s; cvta.shared.u64 %d4, %d4; add.s64 %d4, %d4, %d2; mov.u64 %d5, l; cvta.local.u64 %d5, %d5;"
        "mov.b64 %d6, x; cvta.param.u64 %d6, %d6; add.u32 %r9, %r1, 100; cvt.u32.u64 %r8, %d2; mov.u32 %r7, s;"
        "add.u32 %r8, %r8, %r7; st.shared.u32 [%r8], %r9; add.u32 %r9, %r1, 200; st.local.u32 [l], %r9;"
        "and.b32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 1; setp.eq.u32 %p2, %r2, 2; setp.eq.u32 %p3, %r2, 3;"
        "selp.b64 %d7, %d4, %d3, %p1; selp.b64 %d7, %d5, %d7, %p2; selp.b64 %d7, %d6, %d7, %p3;"
        "ld.u32 %r3, [%d7]; st.global.u32 [%d3+512], %r3; @!%p3 st.u32 [%d7], 77; ld.v2.u16 {%h1, %h2}, [%d7];"
        "cvt.u32.u16 %r4, %h1; st.global.u32 [%d3+640], %r4;"
    )
    case = kernel(
        body, before=".shared .align 4 .b8 s[128]; .local .align 4 .b8 l[4];",
        params=".param .u64 p, .param .u32 x", arguments=[Argument("u32", 4242)],
    )  # fmt: skip
    out, trace = words(case)
    kind = LANE & 3
    expected = np.choose(kind, [START[:32], LANE + 100, LANE + 200, 4242])
    assert out[128:160].tolist() == expected.tolist()
    assert out[160:192].tolist() == np.where(kind == 3, 4242, 77).tolist()
    assert out[:32].tolist() == np.where(kind == 0, 77, START[:32]).tolist()
    accesses = list(zip(trace.access_space.tolist(), trace.pattern_mask[trace.access_pattern].tolist(), strict=True))
    assert accesses[2] == (0, 0x11111111), "recorded: the lanes in the space of the lowest one"
    assert len(accesses) == 7


def test_tests_of_address_spaces():
    body = (
        "mov.u64 %d4, s; cvta.shared.u64 %d4, %d4; mov.u64 %d5, l; cvta.local.u64 %d5, %d5; mov.u64 %d6, c;"
        " cvta.const.u64 %d6, %d6;"
        "mov.b64 %d7, p; cvta.param.u64 %d7, %d7; mov.u32 %r2, 0;"
    )
    spaces = ("shared", "local", "const", "global", "param", "shared::cluster")
    for bit, (register, space) in enumerate((r, s) for r in ("%d1", "%d4", "%d5", "%d6", "%d7") for s in spaces):
        body += f"isspacep.{space} %p1, {register}; selp.u32 %r3, {1 << bit}, 0, %p1; or.b32 %r2, %r2, %r3;"
    case = kernel(
        body + "st.global.u32 [%d3], %r2;",
        before=".shared .align 4 .b8 s[4]; .const .align 4 .b8 c[4]; .local .align 4 .b8 l[4];",
    )
    out, _ = words(case)
    found = [[int(out[0]) >> (6 * row + k) & 1 for k in range(6)] for row in range(5)]
    assert found == [[0, 0, 0, 1, 0, 0], [1, 0, 0, 0, 0, 1], [0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 1, 0]]


def test_addresses_go_there_and_back():
    body = "mov.u32 %r2, 0;"
    for name, space in (("s", "shared"), ("l", "local"), ("c", "const"), ("p", "param"), ("g", "global")):
        body += (
            f"mov.u64 %d4, {name}; cvta.{space}.u64 %d5, %d4; cvta.to.{space}.u64 %d6, %d5; setp.eq.u64 %p1, %d4, %d6;"
            "selp.u32 %r3, 1, 0, %p1; add.u32 %r2, %r2, %r3;"
        )
    before = ".shared .b32 s; .const .b32 c; .global .b32 g; .local .b32 l;"
    out, _ = words(kernel(body + "st.global.u32 [%d3], %r2;", before=before))
    assert out[:32].tolist() == [5] * 32


def test_constants_with_content_and_addresses():
    """Constants of every width, an address of a global variable in an initialiser, read in three ways."""
    before = (
        ".global .align 4 .u32 table[4] = {11, 22, 33, 44}; .const .align 8 .u64 where[2] = {generic(table), table+8};"
        ".const .align 4 .f32 f[2] = {1.5, 0f40200000}; .const .align 2 .s16 small[4] = {-1, 2, -3, 4};"
    )
    body = (
        "and.b32 %r2, %r1, 1; mul.wide.u32 %d4, %r2, 8; mov.u64 %d5, where; add.s64 %d5, %d5, %d4;"
        " ld.const.u64 %d6, [%d5];"
        "ld.global.u32 %r3, [%d6+4]; ld.const.v2.f32 {%f1, %f2}, [f]; cvt.rzi.s32.f32 %r4, %f2; add.u32 %r3, %r3, %r4;"
        "mov.u64 %d7, small; cvta.const.u64 %d7, %d7; mul.wide.u32 %d8, %r2, 2; add.s64 %d7, %d7, %d8;"
        " ld.s16 %r5, [%d7];"
        "add.u32 %r3, %r3, %r5; st.global.u32 [%d3], %r3;"
    )
    out, _ = words(kernel(body, before=before))
    assert out[:32].tolist() == np.where(LANE & 1, 44 + 2 + 2, 22 + 2 - 1).tolist()


def test_dynamic_shared_memory_starts_after_the_static():
    out, _ = words(
        kernel(
            "mov.u32 %r2, d; mov.u32 %r3, s; sub.u32 %r4, %r2, %r3; st.global.u32 [%d3], %r4;"
            " st.shared.u32 [%r2+60], 9;"
            "ld.shared.u32 %r5, [%r2+60]; st.global.u32 [%d3+128], %r5;",
            before=".extern .shared .align 16 .b8 d[]; .shared .align 4 .b8 s[20];", dynamic=64,
        )
    )  # fmt: skip
    assert out[:64].tolist() == [32] * 32 + [9] * 32


def test_hints_change_nothing():
    out, trace = words(
        kernel(
            "prefetch.global.L2 [%d1+1000000]; prefetchu.L1 [%d1]; discard.global.L2 [%d1], 128;"
            "applypriority.global.L2::evict_normal [%d1+128], 128; prefetch.global.L2::evict_last [0];"
        )
    )
    assert out.tolist() == START.tolist() and len(trace.access_base) == 0


def test_multicast_addresses_are_those_of_the_buffer():
    out, trace = words(
        kernel(
            "multimem.ld_reduce.relaxed.gpu.global.add.u32 %r2, [%d3]; add.u32 %r2, %r2, 1;"
            " multimem.st.global.u32 [%d3+128], %r2;"
            "multimem.red.relaxed.gpu.global.add.u32 [%d1+256], %r1;"
        )
    )
    assert out[32:64].tolist() == (START[:32] + 1).tolist() and out[64] == START[64] + 496
    assert len(trace.access_base) == 3


ERRORS = [
    ("ld.global.b128 %q1, [%d3+8];", "is misaligned", "is not aligned to the 16 bytes"),
    ("ld.global.v8.b32 {%r2,%r3,%r4,%r5,%r6,%r7,%r8,%r9}, [%d1+16];", "is misaligned", "is not aligned to the 32"),
    ("discard.global.L2 [%d1+64], 128;", "is misaligned", "is not aligned to the 128"),
    ("applypriority.global.L2::evict_normal [%d1+1024], 128;", "0 bytes after the end of 'a'", "0 bytes after the end"),
    ("mov.b64 %d4, p; ld.param.u64 %d5, [%d4+8];", "byte 8 of the parameters, which have 8 bytes",
    "outside the 8 param"),
    ("mov.b64 %d4, p; cvta.param.u64 %d4, %d4; ld.u64 %d5, [%d4+4];", "is misaligned", "is not aligned to the 8"),
    ("mov.b64 %d4, p; cvta.param.u64 %d4, %d4; st.u64 [%d4], %d1;", "does not work there",
    "does not work in param memory"),
    ("mov.u64 %d4, l; cvta.local.u64 %d4, %d4; atom.add.u32 %r2, [%d4], 1;", "address 0x0 of local memory",
     "does not work in local memory"),
    ("ld.global.u32 %r2, [%d1+-1000000]; ", "bytes before 'a'", "bytes before 'a'"),
    ("mov.u64 %d4, -4; ld.global.u32 %r2, [%d4];", "bytes after the end of 'a'", "after the end of 'a'"),
    ("multimem.st.global.u32 [%d1+1022], %r1;", "is misaligned", "is not aligned"),
    ("atom.global.v4.f32.add {%f1,%f2,%f3,%f4}, [%d1+8], {%f1,%f2,%f3,%f4};", "is misaligned", "not aligned to the 16"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "compiled", "interpreted"), ERRORS, ids=[error[0][:40] for error in ERRORS])
def test_bad_addresses_are_named(body, compiled, interpreted):
    case = kernel(body, before=".local .align 8 .b8 l[8];")
    for engine, text in ((run, compiled), (interpret, interpreted)):
        with pytest.raises(PptError) as caught:
            case.run(engine=engine)
        assert text in str(caught.value)
        assert caught.value.line is not None


def test_bits_loaded_or_moved_into_a_float_register_are_floats():
    body = (
        "ld.global.b32 %f1, [%d3]; mov.b32 %r2, 0x40000000; mov.b32 %f2, %r2; add.f32 %f3, %f2, %f2; mov.b32 %f4, %f1;"
    )
    out, _ = words(kernel(body + "sub.f32 %f5, %f4, %f1; add.f32 %f5, %f5, %f3; st.global.f32 [%d3], %f5;"))
    assert out[:32].view("f4").tolist() == [4.0] * 32


def test_addresses_of_variables_as_numbers_of_every_type():
    """An address moved as a float keeps its low bits."""
    text = """.visible .entry k(.param .u64 out) { .reg .b64 %d<4>; .reg .f64 %g; .reg .f32 %f; .reg .b16 %h;
    .reg .b32 %r; .shared .align 16 .b8 first[272]; .shared .align 16 .b8 s[16]; ld.param.u64 %d1, [out];
    mov.u32 %r, first; mov.f64 %g, s; mov.f32 %f, s; mov.u16 %h, s;
    st.global.f64 [%d1], %g; st.global.f32 [%d1+8], %f; st.global.u16 [%d1+12], %h; ret; }"""
    case = text_case(text, (1,), (1,), [pointer("out")], [Buffer("out", "u32", 4)])
    memory, _ = check_against_interpreter(case)
    assert memory.view("out", "u4").tolist() == [272, 0, 272, 272]


def test_st_bulk_stores_zeros():
    body = (
        "mov.u32 %r2, s; add.u32 %r3, %r2, 0; shl.b32 %r4, %r1, 2; add.u32 %r3, %r3, %r4; st.shared.u32 [%r3], 7;"
        "bar.sync 0; setp.eq.u32 %p1, %r1, 1; add.u32 %r5, %r2, 8; mov.u64 %d5, 64;"
        "@%p1 st.bulk.shared::cta [%r5], %d5, 0;"
        "bar.sync 0; ld.shared.u32 %r6, [%r3]; st.global.u32 [%d3], %r6;"
    )
    out, _ = words(kernel(body, before=".shared .align 16 .b8 s[128];"))
    assert out[:32].tolist() == [7] * 2 + [0] * 16 + [7] * 14


@pytest.mark.parametrize(("size", "place"), [(12, 0), (16, 4), (136, 0)])
@pytest.mark.parametrize("engine", [run, interpret])
def test_st_bulk_in_the_wrong_place(engine, size, place):
    body = f"mov.u32 %r2, s; add.u32 %r2, %r2, {place}; mov.u64 %d5, {size}; st.bulk.shared::cta [%r2], %d5, 0;"
    case = kernel(body, before=".shared .align 16 .b8 s[128];")
    with pytest.raises(PptError) as caught:
        case.run(engine=engine)
    assert caught.value.line is not None


def test_asynchronous_accesses_to_global_memory():
    """They need no mbarrier, which those to shared memory of a cluster have."""
    out, _ = words(kernel("st.async.release.gpu.global.u32 [%d3], %r1; red.async.release.gpu.global.add.u32 [%d3], 5;"))
    assert out[:32].tolist() == (LANE + 5).tolist()


def test_a_policy_for_everything():
    out, _ = words(
        kernel(
            "createpolicy.fractional.L2::evict_last.b64 %d9; ld.global.L2::cache_hint.u32 %r2, [%d3], %d9;"
            "st.global.u32 [%d3], %r2;"
        )
    )
    assert np.array_equal(out, START)


def test_special_registers_as_vectors():
    body = (
        "mov.v4.u32 {%r2, %r3, %r4, %r5}, %ntid; mov.v4.u32 {%r6, _, %r7, %r8}, %tid; .reg .v4 .u32 q;"
        "mov.v4.u32 q, %nctaid; mad.lo.u32 %r2, %r2, 100, %r3; mad.lo.u32 %r2, %r2, 10, %r4; add.u32 %r2, %r2, %r5;"
        "add.u32 %r2, %r2, %r6; add.u32 %r2, %r2, %r7; add.u32 %r2, %r2, %r8; add.u32 %r2, %r2, q.w;"
        "mov.v4.u32 q, q; mad.lo.u32 %r2, q.r, 100000, %r2; mad.lo.u32 %r2, q.a, 50000, %r2; st.global.u32 [%d3], %r2;"
    )
    out, _ = words(kernel(body))
    assert out[:32].tolist() == (132011 + LANE).tolist()  # a fourth element is always 0
