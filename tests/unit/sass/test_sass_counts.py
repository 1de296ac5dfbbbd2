from collections import Counter

from disassembly_texts import CUOBJDUMP, NVDISASM

from ppt_gpu.sass.counts import counted
from ppt_gpu.sass.disassembly import read_disassembly


def test_slow_paths_padding_and_the_last_branch_do_not_count() -> None:
    """By hand: MOV at 0, the loop without 40 to 60, 64-bit division at both its calls, EXIT."""
    found = counted(read_disassembly(NVDISASM).functions["halve"])
    assert found == Counter(
        {"MOV": 1, "MUFU.RCP": 1, "FCHK": 1, "BRA": 2, "CALL.REL.NOINC": 2, "EXIT": 1, "IMAD.WIDE.U32": 2,
         "RET.REL.NODEC": 2}
    )  # fmt: skip


def test_code_behind_the_exit_does_not_count() -> None:
    found = counted(read_disassembly(CUOBJDUMP).functions["copy"])
    assert found == Counter(("SHFL.IDX", "LDG.E.SYS", "BRA", "EXIT"))


def test_functions_of_the_program_count_once_wherever_they_stand() -> None:
    text = """\t.target\tsm_80
\t.section\t.text.main,
.text.main:
        /*0000*/    CALL.REL.NOINC `(main$mine) ;
        /*0010*/    CALL.REL.NOINC `(main$mine) ;
        /*0020*/    CALL.ABS.NOINC `(other) ;
        /*0030*/    EXIT ;
main$mine:
        /*0040*/    FADD R0, R0, R0 ;
        /*0050*/    RET.REL.NODEC R4 `(main) ;
\t.section\t.text.other,
        /*0000*/    FMUL R0, R0, R0 ;
        /*0010*/    RET.ABS.NODEC R20 0x0 ;
"""
    functions = dict(read_disassembly(text).functions)
    found = counted(functions.pop("main"), functions)
    assert found["FADD"] == found["FMUL"] == 1
    assert found.total() == 8


def test_a_branch_on_a_uniform_predicate_may_not_be_taken() -> None:
    """Blackwell writes the condition as an operand of BRA.U, not as a guard; one on UPT is always taken."""
    text = """\t.target\tsm_100
\t.section\t.text.main,
.text.main:
        /*0000*/    UISETP.GE.AND UP0, UPT, UR6, 0x1, UPT ;
        /*0010*/    BRA.U !UP0, `(.L_x_0) ;
        /*0020*/    FADD R0, R0, R0 ;
.L_x_0:
        /*0030*/    BRA.U UPT, `(.L_x_1) ;
        /*0040*/    FMUL R0, R0, R0 ;
.L_x_1:
        /*0050*/    EXIT ;
"""
    found = counted(read_disassembly(text).functions["main"])
    assert found == Counter({"BRA.U": 2, "UISETP.GE.AND": 1, "FADD": 1, "EXIT": 1})


def test_where_warps_go_whose_lanes_are_apart_does_not_count() -> None:
    text = """\t.target\tsm_80
\t.section\t.text.main,
.text.main:
        /*0000*/    BRA.DIV ~URZ, `(.L_x_1) ;
        /*0010*/    SHFL.DOWN PT, R8, R10, 0x1, 0x1f ;
.L_x_2:
        /*0020*/    EXIT ;
.L_x_1:
        /*0030*/    WARPSYNC 0xffffffff ;
        /*0040*/    BRA `(.L_x_2) ;
"""
    found = counted(read_disassembly(text).functions["main"])
    assert found == Counter(("BRA.DIV", "SHFL.DOWN", "EXIT"))


def test_square_roots_of_rare_doubles_do_not_count() -> None:
    text = """\t.target\tsm_80
\t.section\t.text.main,
.text.main:
        /*0000*/    @!P0 BRA `(.L_x_1) ;
        /*0010*/    CALL.REL.NOINC `($__internal_0_$__cuda_sm20_dsqrt_rn_f64_mediumpath_v1) ;
.L_x_1:
        /*0020*/    EXIT ;
$__internal_0_$__cuda_sm20_dsqrt_rn_f64_mediumpath_v1:
        /*0030*/    DMUL R2, R2, R2 ;
        /*0040*/    RET.REL.NODEC R4 `(main) ;
"""
    found = counted(read_disassembly(text).functions["main"])
    assert found == Counter(("BRA", "EXIT"))
