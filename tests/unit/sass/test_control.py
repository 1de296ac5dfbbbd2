import pytest

from ppt_gpu.sass.disassembly import Control, decode, of_encoding, of_group, read_disassembly


def encoded(stall: int, waits: int = 0, write: int = 7, read: int = 7, yields: bool = False) -> int:
    return stall | (not yields) << 4 | write << 5 | read << 8 | waits << 11


@pytest.mark.parametrize(
    ("word", "expected"),
    [  # upper halves that ptxas 13.0 made for sm_80; read by hand from the table of bits
        (0x000FE40000000F00, Control(2, False, -1, -1, ())),
        (0x000E280000002500, Control(4, False, 0, -1, ())),
        (0x001FCA00078E0203, Control(5, True, -1, -1, (0,))),
        (0x004FCA0000000007, Control(5, True, -1, -1, (2,))),
    ],
)
def test_control_codes_of_volta_and_later(word: int, expected: Control) -> None:
    found = of_encoding((0, word))
    assert found is not None
    assert (found.stall, found.write_barrier, found.waits) == (expected.stall, expected.write_barrier, expected.waits)


def test_every_field() -> None:
    assert decode(encoded(3, 0b100001, 4, 1, True)) == Control(3, True, 4, 1, (0, 5))
    assert decode(encoded(3, 0b100001, 4, 1, True)).text == "stall 3, sets 4, waits 0 5"
    assert of_encoding((1,)) is None


def test_one_word_holds_the_control_codes_of_three_maxwell_instructions() -> None:
    word = encoded(1) | encoded(6, write=2) << 21 | encoded(15, waits=4) << 42
    assert [of_group(word, k).stall for k in range(3)] == [1, 6, 15]
    text = f"""\tcode for sm_61
\t\tFunction : k
                                                            /* 0x{word:016x} */
        /*0008*/    MOV R1, c[0x0][0x20] ;                  /* 0x4c98078000870001 */
        /*0010*/    LDG.E R2, [R4] ;                        /* 0xeed4200000070402 */
        /*0018*/    FADD R3, R2, R2 ;                       /* 0x5c58000000270203 */
                                                            /* 0x{encoded(2):016x} */
        /*0028*/    EXIT ;                                  /* 0xe30000000007000f */
"""
    code = read_disassembly(text).functions["k"].instructions
    controls = [each.control for each in code if each.control]
    assert [(c.stall, c.write_barrier, c.waits) for c in controls] == [
        (1, -1, ()), (6, 2, ()), (15, -1, (2,)), (2, -1, ()),
    ]  # fmt: skip
