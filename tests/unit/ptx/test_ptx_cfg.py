"""Control flow of small kernels, worked out by hand."""

from ppt_gpu.ptx.cfg import ControlFlow, control_flow
from ppt_gpu.ptx.parsing.parser import parse_module


def flow_of(body: str) -> ControlFlow:
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    declared = ".reg .pred %p<9>; .reg .b32 %r<9>;"
    return control_flow(parse_module(f"{head}.entry k {{ {declared}\n{body}\n}}").kernels["k"])


ADD = "add.s32 %r1, %r1, 1;"


def test_straight_line() -> None:
    flow = flow_of(f"{ADD} {ADD} ret;")
    assert (flow.block_start, flow.block_end, flow.successors, flow.ipdom) == ((0,), (3,), ((1,),), (1,))
    assert flow.reconvergence == {} and flow.loop_heads == ()


def test_empty_body() -> None:
    assert flow_of("").block_start == ()


def test_if_else() -> None:
    flow = flow_of(f"@%p1 bra A; {ADD} bra B; A: {ADD} B: {ADD} ret;")
    assert flow.block_start == (0, 1, 3, 4)
    assert flow.successors == ((1, 2), (3,), (3,), (4,))
    assert flow.ipdom == (3, 3, 3, 4)
    assert flow.reconvergence == {0: 4, 2: 4}
    assert [flow.block_of(i) for i in range(6)] == [0, 1, 1, 2, 3, 3]


def test_loop() -> None:
    flow = flow_of(f"{ADD} L: {ADD} @%p1 bra L; ret;")
    assert flow.block_start == (0, 1, 3)
    assert flow.back_edges == ((1, 1),) and flow.loop_heads == (1,)
    assert flow.reconvergence == {2: 3}


def test_early_exit_reconverges_at_the_exit() -> None:
    flow = flow_of(f"@%p1 bra OUT; {ADD} ret; OUT: {ADD} ret;")
    assert flow.reconvergence == {0: -1}


def test_guarded_exit_falls_through() -> None:
    flow = flow_of(f"@%p1 ret; {ADD} ret;")
    assert flow.successors == ((1, 2), (2,)) and flow.ipdom == (2, 2)


def test_end_without_ret() -> None:
    flow = flow_of(f"@%p1 bra END; {ADD} END:")
    assert flow.successors == ((1, 2), (2,)) and flow.reconvergence == {0: -1}


def test_infinite_loop() -> None:
    flow = flow_of(f"L: {ADD} @%p1 bra M; {ADD} M: bra L;")
    assert flow.virtual_exits == (2,)
    assert flow.ipdom == (2, 2, 3)
    assert flow.reconvergence == {1: 3, 3: -1}


def test_infinite_loop_beside_an_exit() -> None:
    flow = flow_of(f"@%p1 bra L; ret; L: {ADD} bra L;")
    assert flow.virtual_exits == (2,) and flow.ipdom == (3, 3, 3)


def test_jump_list() -> None:
    flow = flow_of(f"T: .branchtargets A, B, A; brx.idx %r1, T; A: {ADD} bra C; B: {ADD} C: ret;")
    assert flow.successors[0] == (1, 2)
    assert flow.reconvergence[0] == 4


def test_branch_to_the_next_instruction() -> None:
    flow = flow_of(f"@%p1 bra N; N: {ADD} ret;")
    assert flow.successors == ((1,), (2,)) and flow.reconvergence == {0: 1}


def test_unreachable_code_is_a_block() -> None:
    flow = flow_of(f"ret; {ADD} ret;")
    assert flow.successors == ((2,), (2,)) and flow.ipdom == (2, 2)
