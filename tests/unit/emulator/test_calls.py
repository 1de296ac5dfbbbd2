"""Calls: results against Python, memory and trace of both engines bit for bit."""

import numpy as np
import pytest
from jit_kernels import check_against_interpreter, file_case, pointer, text_case
from reference.interpreter.interpreter import interpret

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.run.run import run
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Buffer

ENGINES = pytest.mark.parametrize("engine", [run, interpret])


def case(kernel, count=96, kind="s32", grid=(1,), values=None):
    fill = {} if values is None else {"o": values}
    return file_case("calls.ptx", kernel, grid, (count,), [pointer("o")], [Buffer("o", kind, count)], fill=fill)


def signed(value):
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def ackermann(m, n):
    if m == 0:
        return n + 1
    return ackermann(m - 1, 1) if n == 0 else ackermann(m - 1, ackermann(m, n - 1))


def walking(t):
    def step(which, n, depth):
        if which == 0:
            return step(n & 1, n // 2, depth - 1) * 3 + 1 if depth else n
        return step(n & 1, n // 2, depth - 1) * 5 + n if depth else -n

    return signed(step(t % 2, t, t % 6))


def depot(t):
    a = [0] * 32
    for i in range(32):
        a[(i * 7 + t) % 32] = i * t
    return sum(a[: 1 + t % 32])


EXPECTED = {
    "recursive": lambda t: fib(t % 10) + (t % 2 == 0),
    "virt": lambda t: t + 5 if t & 1 else t * 7,
    "depot": depot,
    "heap": lambda t: t * (t + 1) // 2,
    "allocas": lambda t: sum(i + t for i in range(t % 8 + 1)),
    "deep": lambda t: ackermann(t % 3, t % 4),
    "walking": walking,
}


@pytest.mark.parametrize("kernel", EXPECTED)
def test_results(kernel):
    memory, trace = check_against_interpreter(case(kernel))
    assert memory.view("o", "i4").tolist() == [EXPECTED[kernel](t) for t in range(96)]
    assert trace.warp_threads.sum() == trace.pc_threads.sum()


def test_structs_by_value():
    values = np.arange(96, dtype="f4") / 4
    memory, _ = check_against_interpreter(case("structs", kind="f32", values=values))
    assert np.array_equal(memory.view("o", "f4"), values * np.arange(96) + values * 9)


def test_table_of_functions():
    values = np.arange(96, dtype="f4")
    memory, trace = check_against_interpreter(case("pointers", kind="f32", values=values))
    want = np.choose(np.arange(96) % 3, [values + 3, values * 3, values - 3])
    assert np.array_equal(memory.view("o", "f4"), want)
    kernel = linked("pointers")
    for name in ("_Z3addff", "_Z3mulff", "_Z3subff"):  # they are in the trace, each for its lanes
        function = kernel.functions[name]
        assert trace.pc_executed[function.entry : function.end].tolist() == [3] * 5
        assert trace.pc_threads[function.entry] == 32


def linked(kernel):
    from ppt_gpu.ptx.linking.link import link

    found = case(kernel)
    return link(found.kernel, found.module)


def test_lanes_return_apart_and_exit_inside_a_function():
    values = np.arange(192, dtype="i4") % 4
    found = file_case(
        "calls.ptx", "returns", (1,), (96,), [pointer("o")], [Buffer("o", "s32", 192)], fill={"o": values}
    )
    memory, _ = check_against_interpreter(found)

    def early(n):
        if n % 7 == 3:
            return None
        if n % 3 == 0:
            return n * 2
        return next((i + 100 for i in range(n % 5) if values[n] == i), n)

    want = values.copy()
    for t in range(96):
        first = early(t)
        second = None if first is None else early(t + 64)
        if first is None:
            want[t] = -1
        elif second is None:
            want[t + 64] = -1
        if first is not None and second is not None:
            want[t] = first + second
    got = memory.view("o", "i4")
    clash = [t + 64 for t in range(32) if early(t) is not None and early(t + 64) is None]  # written twice
    keep = np.setdiff1d(np.arange(192), clash)
    assert np.array_equal(got[keep], want[keep])


@ENGINES
def test_printf(engine):
    _, trace = case("prints", 32).run(engine=engine)
    want = [f"t {t} abc {1.5 * t:f} {2.0 * t:5.2e} {chr(97 + t // 8)} {t << 40} 7%\n" for t in range(0, 32, 8)]
    assert trace.printed == "".join(want)


@ENGINES
def test_assertion(engine):
    values = np.zeros(96, "i4")
    values[40] = 10
    with pytest.raises(PptError) as caught:
        case("asserts", values=values).run(engine=engine)
    assert caught.value.message == (
        "assertion 'o[threadIdx.x] < 10' failed in void asserts(int *), calls.cu:27, block (0, 0, 0), thread (40, 0, 0)"
    )
    found = case("asserts")
    assert "call" in found.module.lines[caught.value.line - 1]


@ENGINES
def test_recursion_without_end(engine):
    with pytest.raises(PptError, match=r"'_Z7endlessi' calls deeper than its stack of 4096 bytes a thread allows, bl"):
        case("bottomless").run(engine=engine, budget=Budget(stack=4096))


def test_registers_and_values_as_arguments():
    text = """
.func (.reg .b32 %out) triple (.reg .b32 %a, .reg .b64 %unused) {
  .reg .pred %p; .reg .b32 %t;
  setp.gt.u32 %p, %a, 20; @%p mov.u32 %t, 1000; @!%p mov.u32 %t, 0;
  mad.lo.u32 %out, %a, 3, %t; ret; }
.visible .entry k(.param .u64 o) {
  .reg .b64 %d; .reg .b32 %r<4>; .reg .pred %p;
  ld.param.u64 %d, [o]; mov.u32 %r1, %tid.x; mad.wide.u32 %d, %r1, 4, %d;
  mov.u32 %r2, 5; setp.lt.u32 %p, %r1, 24;
  @%p call (%r2), triple, (%r1, 7);
  st.global.u32 [%d], %r2; }
"""
    found = text_case(text, (1,), (32,), [pointer("o")], [Buffer("o", "u32", 32)])
    memory, trace = check_against_interpreter(found)
    want = [(3 * t + (1000 if t > 20 else 0)) if t < 24 else 5 for t in range(32)]
    assert memory.view("o", "u4").tolist() == want
    assert trace.pc_executed[-5:].max() == 1


@ENGINES
def test_what_no_module_defines(engine):
    text = """
.extern .func (.param .b32 r) elsewhere (.param .b32 a);
.visible .entry k() { .reg .b32 %r<3>; mov.u32 %r1, 1;
{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1;
call (b), elsewhere, (a);
} }
"""
    with pytest.raises(PptError, match="cannot call: 'elsewhere' is declared on line 5, but this module") as caught:
        text_case(text, (1,), (32,), [], []).run(engine=engine)
    assert caught.value.line == 8


@ENGINES
def test_an_alias_is_the_function(engine):
    text = """
.func (.param .b32 r) twice (.param .b32 a) {
.reg .b32 %r<2>; ld.param.b32 %r1, [a]; add.u32 %r1, %r1, %r1; st.param.b32 [r], %r1; ret; }
.alias doubled, twice;
.visible .entry k(.param .u64 o) { .reg .b32 %r<4>; .reg .b64 %d<4>; mov.u32 %r1, 21;
{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), doubled, (a); ld.param.b32 %r2, [b]; }
mov.u64 %d1, doubled;
{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r2;
P: .callprototype (.param .b32 _) _ (.param .b32 _);
call (b), %d1, (a), P; ld.param.b32 %r3, [b]; }
ld.param.u64 %d2, [o]; st.global.v2.u32 [%d2], {%r2, %r3}; ret; }
"""
    memory, _ = text_case(text, (1,), (1,), [pointer("o")], [Buffer("o", "u32", 2)]).run(engine=engine)
    assert memory.view("o", "u4").tolist() == [42, 84]


@ENGINES
def test_a_kernel_that_launches_another_one(engine):
    text = """
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2 (.param .b64 a);
.visible .entry child() { ret; }
.visible .entry k() { .reg .b64 %d<3>; mov.u64 %d1, child;
{ .param .b64 a; .param .b64 b; st.param.b64 [a], %d1;
call (b), __cudaCDP2GetParameterBufferV2, (a);
} }
"""
    with pytest.raises(PptError, match="dynamic parallelism") as caught:
        text_case(text, (1,), (32,), [], []).run(engine=engine)
    assert caught.value.line == 9


@ENGINES
def test_a_pointer_to_no_function(engine):
    text = """
.func f () { ret; }
.visible .entry k() { .reg .b64 %d<3>; mov.u64 %d1, f; add.u64 %d1, %d1, 8;
P: .callprototype _ ();
call %d1, (), P;
ret; }
"""
    with pytest.raises(PptError, match=r"'call' calls an address that is no function it can call, block \(0, 0, 0\)"):
        text_case(text, (1,), (32,), [], []).run(engine=engine)


FORMS = """
.func (.reg .u32 r) add(.reg .u32 a, .reg .u32 b) { add.u32 r, a, b; ret; }
.func (.reg .u32 r) sub(.reg .u32 a, .reg .u32 b) { sub.u32 r, a, b; ret; }
.func (.reg .u32 r) mul(.reg .u32 a, .reg .u32 b) { mul.lo.u32 r, a, b; ret; }
.global .u64 table[4] = { add, sub, mul, add };
.func (.reg .u32 r) triangle(.reg .u32 n)
{
    .reg .pred p; .reg .u32 m, x;
    mov.u32 r, n;
    setp.eq.u32 p, n, 0;
    @p ret;
    sub.u32 m, n, 1;
    call (x), triangle, (m);
    add.u32 r, r, x;
    ret;
}
.func (.reg .u32 r) odd(.reg .u32 n, .reg .u32 d);
.func (.reg .u32 r) even(.reg .u32 n, .reg .u32 d)
{
    .reg .pred p; .reg .u64 f; .reg .u32 x, e;
    add.u32 r, n, 1000;
    setp.eq.u32 p, d, 0;
    @p ret;
    sub.u32 e, d, 1;
    mov.u64 f, odd;
    list: .calltargets even, odd;
    call (x), f, (n, e), list;
    add.u32 r, r, x;
    ret;
}
.func (.reg .u32 r) odd(.reg .u32 n, .reg .u32 d)
{
    .reg .pred p; .reg .u64 f; .reg .u32 x, e;
    add.u32 r, n, 1;
    setp.eq.u32 p, d, 0;
    @p ret;
    sub.u32 e, d, 1;
    mov.u64 f, even;
    list: .calltargets even, odd;
    call (x), f, (n, e), list;
    add.u32 r, r, x;
    ret;
}
.func (.reg .u32 r) aligned(.reg .u32 n)
{
    .local .align 64 .b8 wide[64]; .reg .u64 at, place;
    mov.u64 at, wide;
    and.b64 place, at, 63;
    cvt.u32.u64 r, place;
    st.local.u32 [wide+32], n;
    ld.local.u32 n, [wide+32];
    mad.lo.u32 r, r, 1000, n;
    ret;
}
.func (.param .b32 r) sum(.param .b32 count, .param .align 8 .b8 values[])
{
    .reg .pred p; .reg .u32 n, x, s; .reg .u64 at;
    ld.param.u32 n, [count];
    mov.u64 at, values;
    mov.u32 s, 0;
again:
    setp.eq.u32 p, n, 0;
    @p bra done;
    ld.local.u32 x, [at];
    add.u32 s, s, x;
    add.u64 at, at, 4;
    sub.u32 n, n, 1;
    bra again;
done:
    st.param.b32 [r], s;
    ret;
}
.visible .entry k(.param .u64 out)
{
    .reg .pred %p; .reg .u32 %t, %r<6>; .reg .u64 %o, %at, %f;
    ld.param.u64 %o, [out];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %at, %t, 4;
    add.u64 %o, %o, %at;
    and.b32 %r1, %t, 3;
    BODY
    st.global.u32 [%o], %r0;
    ret;
}
"""

#: what a thread does -> what it stores
BODIES = {
    # a table of functions in memory says what an indirect call may reach; results come back in registers
    "mul.wide.u32 %at, %r1, 8; mov.u64 %f, table; add.u64 %at, %at, %f; ld.global.u64 %f, [%at];"
    "call (%r0), %f, (%t, 7), table;": lambda t: [t + 7, t - 7, t * 7, t + 7][t % 4],
    "setp.lt.u32 %p, %r1, 2; mov.u64 %f, sub; @%p mov.u64 %f, mul; list: .calltargets add, sub, mul;"
    "mov.u32 %r0, 5; setp.ne.u32 %p, %r1, 1; @%p call (%r0), %f, (%t, 3), list;":
        lambda t: 5 if t % 4 == 1 else t * 3 if t % 4 == 0 else t - 3,
    # the register of the result holds a value that the recursive call must not change
    "call (%r0), triangle, (%r1);": lambda t: (t % 4) * (t % 4 + 1) // 2,
    "mov.u64 %f, even; setp.eq.u32 %p, %r1, 1; @%p mov.u64 %f, odd; list: .calltargets even, odd;"
    "call (%r0), %f, (%t, 3), list;": lambda t: 4 * t + 2002,
    # an array without a size, longer, shorter or left out
    "{ .param .b32 n; .param .align 8 .b8 v[12]; .param .b32 s; st.param.b32 [n], 3; st.param.b32 [v], %t;"
    "st.param.b32 [v+4], 10; st.param.b32 [v+8], %t; call (s), sum, (n, v); ld.param.b32 %r0, [s]; }"
    "{ .param .b32 n; .param .align 8 .b8 v[4]; .param .b32 s; st.param.b32 [n], 1; st.param.b32 [v], 1000;"
    "call (s), sum, (n, v); ld.param.b32 %r2, [s]; } add.u32 %r0, %r0, %r2;"
    "{ .param .b32 n; .param .b32 s; st.param.b32 [n], 0; call (s), sum, (n); ld.param.b32 %r2, [s]; }"
    "add.u32 %r0, %r0, %r2;": lambda t: 1010 + 2 * t,
    # a function's variables lie as they ask, wherever its frame begins
    "call (%r0), aligned, (%t);": lambda t: t,
    "mov.u64 %at, 40; alloca.u64 %f, %at, 128; st.local.u32 [%f+36], %t; alloca.u64 %at, %at, 64;"
    "st.local.u32 [%at+36], 7; ld.local.u32 %r0, [%f+36]; or.b64 %f, %f, %at; and.b64 %f, %f, 63; cvt.u32.u64 %r2, %f;"
    "mad.lo.u32 %r0, %r2, 1000, %r0;": lambda t: t,
    # a stack that is saved though nothing is allocated
    "stacksave.u64 %at; stackrestore.u64 %at; mov.u32 %r0, %t;": lambda t: t,
}  # fmt: skip


@pytest.mark.parametrize("body", BODIES)
def test_forms_of_calls(body):
    memory, _ = check_against_interpreter(
        text_case(FORMS.replace("BODY", body), (1,), (64,), [pointer("o")], [Buffer("o", "u32", 64)])
    )
    assert memory.view("o", "u4").tolist() == [BODIES[body](t) % (1 << 32) for t in range(64)]


def test_a_table_of_numbers_is_no_list_of_functions():
    body = "mov.u64 %f, add; call (%r0), %f, (%t, 7), table;"
    text = FORMS.replace("{ add, sub, mul, add }", "{ 1, 2 }").replace("BODY", body)
    with pytest.raises(PptError, match="no function of this module"):
        text_case(text, (1,), (64,), [pointer("o")], [Buffer("o", "u32", 64)]).run()
