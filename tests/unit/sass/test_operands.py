import pytest

from ppt_gpu.sass.disassembly import SassInstruction
from ppt_gpu.sass.operands import registers
from ppt_gpu.sass.registers import REGISTERS, number

CASES = [  # instruction as printed, reads, writes: by hand
    ("FFMA R7, R2.reuse, c[0x0][0x164], R7", "R2 R7", "R7"),
    ("@!P0 BRA `(.L_x_0)", "P0", ""),
    ("ISETP.GE.AND P0, PT, R0, c[0x0][0x160], PT", "R0", "P0"),
    ("ISETP.GE.U32.AND.EX P1, PT, R3, RZ, PT, P0", "R3 P0", "P1"),
    ("IMAD.WIDE R2, R0, R5, c[0x0][0x168]", "R0 R5", "R2 R3"),
    ("LDG.E.64 R2, [R4.64+0x8]", "R4 R5", "R2 R3"),
    ("LDG.E R2, desc[UR6][R2.64]", "UR6 UR7 R2 R3", "R2"),
    ("STG.E.128 desc[UR4][R8.64], R12", "UR4 UR5 R8 R9 R12 R13 R14 R15", ""),
    ("LDS.U.128 R8, [R17+UR4]", "R17 UR4", "R8 R9 R10 R11"),
    ("IADD3 R4, P1, R2, c[0x0][0x168], RZ", "R2", "R4 P1"),
    ("IADD3.X R5, R3, c[0x0][0x16c], RZ, P1, !PT", "R3 P1", "R5"),
    ("LEA R2, P0, R0, c[0x0][0x168], 0x2", "R0", "R2 P0"),
    ("SEL R0, RZ, 0x1, !P0", "P0", "R0"),
    ("SHFL.BFLY PT, R2, R3, 0x1, 0x1f", "R3", "R2"),
    ("ATOMG.E.ADD.STRONG.GPU PT, R3, [R4.64], R6", "R4 R5 R6", "R3"),
    ("RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R2.64], R5", "R2 R3 R5", ""),
    ("LOP3.LUT P2, R6, R0, 0x3, RZ, 0xc0, !PT", "R0", "P2 R6"),
    ("PLOP3.LUT P0, PT, P1, P2, PT, 0x80, 0x0", "P1 P2", "P0"),
    ("VOTE.ANY R0, PT, P3", "P3", "R0"),
    ("FCHK P0, R4, R5", "R4 R5", "P0"),
    ("DFMA R2, R4, R6, R8", "R4 R5 R6 R7 R8 R9", "R2 R3"),
    ("HMMA.16816.F32 R4, R8, R12, R4", "R8 R9 R10 R11 R12 R13 R4 R5 R6 R7", "R4 R5 R6 R7"),
    ("F2F.F64.F32 R2, R4", "R4", "R2 R3"),
    ("F2I.S64.F64.TRUNC R2, R4", "R4 R5", "R2 R3"),
    ("I2F.F64 R2, R0", "R0", "R2 R3"),
    ("R2UR UR4, R2", "R2", "UR4"),
    ("UIADD3 UR4, UR5, 0x1, URZ", "UR5", "UR4"),
    ("BAR.SYNC.DEFER_BLOCKING 0x0", "", ""),
    ("FMNMX R0, R1, R2, !PT", "R1 R2", "R0"),
    ("MUFU.RCP R2, |R4|", "R4", "R2"),
    ("FADD R2, -R3, -RZ", "R3", "R2"),
]


def ids(text: str) -> set[int]:
    return {number(name.rstrip("0123456789"), int(name.lstrip("URP"))) for name in text.split()}


@pytest.mark.parametrize(("text", "reads", "writes"), CASES, ids=[case[0][:24] for case in CASES])
def test_registers_read_and_written(text: str, reads: str, writes: str) -> None:
    guard = ""
    if text.startswith("@"):
        guard, _, text = text[1:].partition(" ")
    opcode, _, operands = text.partition(" ")
    found = registers(SassInstruction(0, guard, opcode, operands, 1))
    assert set(found[0]) == ids(reads)
    assert set(found[1]) == ids(writes)


def test_every_register_has_a_number_of_its_own() -> None:
    assert [each.name for each in REGISTERS][number("UR", 4)] == "UR4"
    assert [number("R", 255), number("P", 7), number("UR", 255)] == [-1, -1, -1]
    assert len({each.name for each in REGISTERS}) == len(REGISTERS)
