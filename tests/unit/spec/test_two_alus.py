"""sm_120 as measured: two ALUs side by side, constants beside the load/store unit, 64 bit in one instruction."""

from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.isa import load_isa


def test_comparisons_do_not_wait_for_sums() -> None:
    """ALU Heavy has a sum of three each other cycle, ALU Lite a comparison each cycle."""
    isa = load_gpu("rtx5090").isa
    assert (isa.op("int32.add").pipe, isa.op("int32.add").ii) == ("int32", 2)
    assert (isa.op("int32.setp").pipe, isa.op("int32.setp").ii) == ("alulite", 1)
    assert {isa.op(name).ii for name in ("int32.logic", "int32.shift", "int32.misc", "fp16.setp", "fp16.cvt")} == {2}


def test_constants_and_shuffles() -> None:
    """A constant each other cycle, of the unit that counts barriers; a shuffle each other cycle, elsewhere each."""
    isa = load_gpu("rtx5090").isa
    assert {(isa.op(name).pipe, isa.op(name).ii) for name in ("load.constant", "int32.constant", "barrier")} == {
        ("adu", 2)
    }
    assert isa.op("shuffle").ii == 2 and load_gpu("b200").isa.op("shuffle").ii == 1


def test_comparisons_of_64_bit_are_one_instruction() -> None:
    assert "setp.lt.s64" not in load_isa("sm_120").expand and "selp.b64" not in load_isa("sm_120").expand
    assert load_isa("sm_100").expand["setp.lt.s64"] == ("int32.setp.alu", "int32.setp")


def test_ex2_of_b300() -> None:
    assert load_gpu("b300").isa.op("sfu.ex2").ii == 4 and load_gpu("b300").isa.op("sfu.rcp").ii == 8
    assert load_gpu("b200").isa.op("sfu.ex2").ii == 8
