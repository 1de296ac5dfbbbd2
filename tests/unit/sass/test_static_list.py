"""Disassembled code as a task list: the way that is followed, its loops, and what waits for what."""

from pathlib import Path

import pytest
from disassembly_texts import NVDISASM

from ppt_gpu.cli import main
from ppt_gpu.common.errors import InputErrors, PptError
from ppt_gpu.frontends import disassemble
from ppt_gpu.frontends.ptxas import assemble
from ppt_gpu.frontends.tools import find
from ppt_gpu.inputs import open_module
from ppt_gpu.pipeline import predict
from ppt_gpu.sass.disassembly import Disassembly, read_disassembly
from ppt_gpu.sass.latencies import distances
from ppt_gpu.sass.static_list import Shape, chosen_function, static_list, straight_path
from ppt_gpu.spec.isa import load_isa
from ppt_gpu.tasklist.model import Loop, Task, length, walk
from ppt_gpu.translation.loops import unfold

SAXPY = Path(__file__).parents[2] / "data" / "sass" / "saxpy_sm80.sass"


def code_of(*lines: str) -> Disassembly:
    """Code of one kernel: a line is an instruction, or a label that ends in a colon."""
    text, address = ["\t.target\tsm_80", "\t.section\t.text.k,"], 0
    for line in lines:
        text.append(line if line.endswith(":") else f"        /*{address:04x}*/    {line} ;")
        address += 0 if line.endswith(":") else 16
    return read_disassembly("\n".join(text), "k.sass")


def way(code: Disassembly, **trips: int) -> list[str]:
    """The opcodes along the path, loops unfolded."""
    function = code.functions["k"]
    nodes, places = straight_path(function, {f".L_{name}": count for name, count in trips.items()}, "k.sass")
    return [function.instructions[places[number]].opcode for number in unfold(nodes).tolist()]


def test_saxpy_has_its_loop_and_its_dependencies() -> None:
    """The numbers of the tasks and what they wait for, read by hand from the listing."""
    code = read_disassembly(SAXPY.read_text(), SAXPY)
    found = static_list(code, chosen_function(code, ""), {".L_x_0": 4}, Shape(256, (100,)))
    tasks = {task.number: task for task, _ in walk(found.body)}
    assert length(found.body) == 7 + 4 * 11 + 1
    assert [item.count for item in found.body if isinstance(item, Loop)] == [4]
    assert tasks[4].deps == (2, 3)
    assert tasks[11].deps == (9,)
    assert tasks[16].deps == (11, 12)
    assert tasks[14].deps == (4, 13, 14)  # the index, from before the loop or the round before
    assert tasks[18].deps == (15,)
    assert tasks[16].comment.endswith("(stall 5, waits 2)")
    assert found.registers == 10
    assert (found.block_size, found.grid) == (256, (100,))


def test_the_list_is_predicted(tmp_path: Path) -> None:
    path = tmp_path / "saxpy.tl"
    command = ["translate", str(SAXPY), "--block", "256", "--grid", "1000", "--trip", ".L_x_0=4", "-o", str(path)]
    assert main(command) == 0
    launch = predict(path, "a100").launches[0]
    assert launch.value("kernel.warp_instructions") == 1000 * 8 * (7 + 44 + 1)


def test_guarded_branches_ahead_fall_through_and_others_are_followed() -> None:
    code = code_of(
        "@P0 BRA `(.L_1)", "FADD R0, R0, R0", "BRA `(.L_2)", ".L_1:", "FMUL R0, R0, R0", ".L_2:", "EXIT", "NOP"
    )
    assert way(code) == ["BRA", "FADD", "BRA", "EXIT"]


def test_slow_paths_are_left_out_and_subroutines_are_in_line() -> None:
    code = read_disassembly(NVDISASM)
    function = code.functions["halve"]
    nodes, places = straight_path(function, {".L_x_1": 2}, "")
    opcodes = [function.instructions[places[number]].opcode for number in unfold(nodes).tolist()]
    once = ["MUFU.RCP", "FCHK", "BRA", *(["CALL.REL.NOINC", "IMAD.WIDE.U32", "NOP", "RET.REL.NODEC"] * 2), "BRA"]
    assert opcodes == ["MOV", *once, *once, "EXIT"]


def test_nested_loops_and_a_loop_that_is_left_in_the_middle() -> None:
    code = code_of(
        ".L_a:", "MOV R0, R1", ".L_b:", "FADD R0, R0, R0", "@P0 BRA `(.L_b)", "@P1 BRA `(.L_c)", "BRA `(.L_a)",
        ".L_c:", "EXIT",
    )  # fmt: skip
    inner = ["FADD", "BRA"]
    assert way(code, a=2, b=3) == [*(["MOV", *inner * 3, "BRA", "BRA"] * 2), "EXIT"]


def test_every_loop_without_a_count_is_named_at_once() -> None:
    code = code_of(".L_a:", "FADD R0, R0, R0", "@P0 BRA `(.L_a)", ".L_b:", "FMUL R0, R0, R0", "@P0 BRA `(.L_b)", "EXIT")
    with pytest.raises(InputErrors) as caught:
        way(code, c=3)
    text = str(caught.value)
    assert "k.sass:4: loop .L_a, 2 instructions from 0x0 on, has no count" in text
    assert "--trip .L_b=N" in text
    assert "--trip .L_c: the code has no such loop" in text


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("BRX R4 -0x10", "EXIT"), "an indirect branch"),
        ((".L_a:", "FADD R0, R0, R0", "BRA `(.L_a)"), "an endless loop"),
    ],
)
def test_ways_that_cannot_be_followed(lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(PptError, match=message):
        way(code_of(*lines), a=1)


def test_a_task_waits_for_the_scoreboards_of_its_mask() -> None:
    """No register joins the two: only the wait mask does."""
    text = """\t.target\tsm_80
\t.section\t.text.k,
        /*0000*/    LDG.E R2, [R4.64] ;      /* 0x0000000402027981 */
                                             /* 0x000ea8000c1e1900 */
        /*0010*/    FADD R6, R7, R7 ;        /* 0x0000000000000000 */
                                             /* 0x004fca0000000007 */
        /*0020*/    EXIT ;                   /* 0x000000000000794d */
                                             /* 0x000fea0003800000 */
"""
    code = read_disassembly(text)
    found = static_list(code, code.functions["k"], {}, Shape(32))
    second = next(item for item in found.body if isinstance(item, Task) and item.number == 2)
    assert second.deps == (1,)


def test_stall_counts_show_the_latencies_of_the_isa() -> None:
    """The compiler leaves no more than the latency where the reader is next, and never less."""
    code = read_disassembly(SAXPY.read_text(), SAXPY)
    found = {each.operation: each for each in distances(list(code.functions.values()), load_isa("sm_80"))}
    assert found["int32.setp"].least == found["int32.setp"].latency == 13
    assert found["int32.madwide"].least == found["int32.madwide"].latency == 6
    assert "load.global" not in found
    for each in found.values():
        assert each.least >= each.latency


@pytest.mark.skipif(not find("ptxas"), reason="needs ptxas")
@pytest.mark.parametrize("viewer", ["nvdisasm", "cuobjdump"])
def test_a_cubin_is_read_by_either_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, viewer: str) -> None:
    tools = find(viewer)
    if not tools:
        pytest.skip(f"needs {viewer}")
    module = open_module("saxpy", (8, 0))
    cubin, _ = assemble(find("ptxas")[0], "\n".join(module.lines), "80", "saxpy.ptx", str(tmp_path))
    monkeypatch.setattr(disassemble, "find", lambda name: tools if name == viewer else [])
    code = disassemble.open_code(cubin)
    assert code.target == "sm_80"
    function = chosen_function(code, "saxpy")
    assert all(each.control for each in function.instructions)
    assert function.instructions[0].opcode == "MOV"
    monkeypatch.setattr(disassemble, "find", lambda name: [])
    with pytest.raises(PptError, match="no nvdisasm and no cuobjdump"):
        disassemble.open_code(cubin)
    cubin.write_bytes(cubin.read_bytes()[:600])
    monkeypatch.setattr(disassemble, "find", lambda name: tools if name == viewer else [])
    with pytest.raises(PptError, match=r"a cubin that is cut short: 600 bytes of at least [\d,]+$"):
        disassemble.open_code(cubin)


def _elf(size: int = 64, machine: int = 190, abi: int = 8, flags: int = 90 << 8, sections: int = 0) -> bytes:
    """The header of an ELF file of 64 bits, whose table of one section is at `sections`."""
    head = bytearray(64)
    head[:9] = b"\x7fELF\x02\x01\x01\x41" + bytes([abi])
    for at, width, value in (
        (18, 2, machine),
        (40, 8, sections),
        (48, 4, flags),
        (58, 2, 64),
        (60, 2, 1 if sections else 0),
    ):
        head[at : at + width] = value.to_bytes(width, "little")
    return bytes(head)[:size]


@pytest.mark.parametrize(("header", "arch"), [(_elf(), "sm_90"), (_elf(abi=7, flags=0x500550), "sm_80")])
def test_the_architecture_stands_in_the_header(header: bytes, arch: str) -> None:
    assert disassemble.cubin_architecture(header, "a.cubin") == arch


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (_elf(size=40), "cut short: 40 bytes, not even its header"),
        (_elf(machine=62), r"another machine \(62\), not a cubin"),
        (_elf(sections=1000), "cut short: 64 bytes of at least 1,064"),
    ],
)
def test_what_is_no_whole_cubin_is_refused(header: bytes, message: str) -> None:
    with pytest.raises(PptError, match=message):
        disassemble.cubin_architecture(header, "a.cubin")


@pytest.mark.skipif(not find("nvdisasm"), reason="needs nvdisasm")
def test_an_unknown_architecture_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "old.cubin").write_bytes(_elf(flags=33 << 8))
    assert main(["translate", str(tmp_path / "old.cubin")]) == 2
    said = capsys.readouterr().err
    assert "cannot read machine code of sm_33" in said and "another CUDA toolkit" in said


@pytest.mark.skipif(not (find("ptxas") and find("nvdisasm")), reason="needs ptxas and nvdisasm")
def test_latencies_of_a_kernel_compiled_now(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-isa", "saxpy", "--gpu", "a100", "--latencies"]) == 0
    assert "int32.setp                   13     13" in capsys.readouterr().out
