import pytest
from disassembly_texts import CUOBJDUMP, NVDISASM

from ppt_gpu.common.errors import PptError
from ppt_gpu.sass.disassembly import Control, SassInstruction, read_disassembly


def test_nvdisasm_gives_functions_labels_and_encodings() -> None:
    found = read_disassembly(NVDISASM)
    assert found.target == "sm_80"
    assert list(found.functions) == ["halve"]
    code = found.functions["halve"]
    assert code.entry
    assert len(code.instructions) == 18
    first = SassInstruction(
        0, "", "MOV", "R1, c[0x0][0x28]", 8, (0x00000A0000017A02, 0x000FE40000000F00), Control(2, False, -1, -1, ())
    )
    assert code.instructions[0] == first
    assert code.instructions[3].guard == "!P0"
    assert code.instructions[3].target == ".L_x_2"
    assert code.labels[".L_x_2"] == 7
    assert code.labels[code.instructions[5].target] == 11


def test_cuobjdump_gives_addresses_for_labels() -> None:
    found = read_disassembly(CUOBJDUMP)
    assert found.target == "sm_70"
    code = found.functions["copy"]
    branch = code.instructions[2]
    assert (branch.guard, branch.opcode, branch.target) == ("P0", "BRA", "0x10")
    assert code.labels[branch.target] == 1
    assert code.instructions[1].encoding == (0x0000000002007381, 0x000EA200001EE900)


def test_text_that_is_no_disassembly_is_refused() -> None:
    with pytest.raises(PptError, match="no machine instruction in this text"):
        read_disassembly("hello\n", "x.sass")
    text = "\t.target\tsm_80\n\t.section\t.text.k,\n        /*0000*/      !!! ;\n"
    with pytest.raises(PptError, match="no machine instruction: '!!!") as caught:
        read_disassembly(text, "x.sass")
    assert (caught.value.path, caught.value.line) == ("x.sass", 3)
    without = "\t\tFunction : k\n        /*0000*/      EXIT ;\n"
    with pytest.raises(PptError, match="does not say for which architecture"):
        read_disassembly(without)
