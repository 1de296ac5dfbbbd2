import pytest

from ppt_gpu.common.errors import PptError
from ppt_gpu.sass.operations import _GROUPS, known_operation, operation
from ppt_gpu.spec.isa import load_isa
from ppt_gpu.tasklist.model import class_of


@pytest.mark.parametrize(
    ("opcode", "name"),
    [
        ("FFMA.FTZ", "fp32.fma"),
        ("IMAD.WIDE.U32", "int32.madwide"),
        ("IMAD.MOV.U32", "int32.mad"),
        ("MUFU.RSQ", "sfu.rsqrt"),
        ("LDG.E.128.CONSTANT.SYS", "load.global"),
        ("HMMA.16816.F16", "tensor.mma.f16acc.m16n8k16"),
        ("HMMA.1688.F32.TF32", "tensor.mma.tf32.m16n8k8"),
        ("HMMA.884.F32.F32.STEP2", "tensor.hmma884"),
        ("HMMA.884.F16.F16.STEP1", "tensor.hmma884f16"),
        ("IMMA.16832.S8.S8", "tensor.mma.s8.m16n8k32"),
        ("DMMA.8x8x4", "tensor.mma.f64.m8n8k4"),
        ("HGMMA.64x128x16.F32", "tensor.wgmma.n128"),
        ("F2I.F64.TRUNC", "fp64.cvt"),
        ("I2F.U64.RP", "fp64.cvt"),
        ("I2F.S32", "fp32.cvt"),
        ("WHAT.NOW", None),
    ],
)
def test_opcodes_are_operations(opcode: str, name: str | None) -> None:
    assert operation(opcode) == name


def test_every_operation_has_a_timing_on_every_architecture() -> None:
    for isa in ("sm_35", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100"):
        timings = load_isa(isa)
        for name in _GROUPS:
            assert timings.op(name).pipe


def test_every_operation_has_a_class_and_no_opcode_has_two() -> None:
    for name in _GROUPS:
        assert class_of(name.replace("generic", "global"))
    opcodes = [opcode for listed in _GROUPS.values() for opcode in listed.split()]
    assert len(opcodes) == len(set(opcodes))


def test_an_unknown_opcode_is_an_error_with_the_nearest() -> None:
    with pytest.raises(PptError, match="unknown SASS opcode 'IADD4'") as caught:
        known_operation("IADD4.X")
    assert caught.value.hint and "IADD" in caught.value.hint
