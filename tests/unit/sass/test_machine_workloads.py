"""Traces of machine code as workloads: predicted, compared, translated, checked; alone and in lists."""

import gzip
import json
import lzma
from pathlib import Path

import pytest
from traceg_writer import Blocks, Line, example, trace

from ppt_gpu.checks import check
from ppt_gpu.cli import main
from ppt_gpu.common.errors import PptError
from ppt_gpu.inputs import open_workload
from ppt_gpu.pipeline import predict
from ppt_gpu.sass.disassembly import read_disassembly
from ppt_gpu.sass.kernelslist import read_run
from ppt_gpu.sass.machine import machine_gpu
from ppt_gpu.sass.static_list import Shape, static_list
from ppt_gpu.spec import load_gpu
from ppt_gpu.task_lists import translate
from ppt_gpu.tasklist.model import walk
from ppt_gpu.tasklist.text import parse_tasklist

HEAP = 0x7F1000000000
OUT = HEAP + (1 << 24)
BLOCKS, WARPS = 160, 4


def lanes(base: int, block: int, warp: int, step: int = 0) -> tuple[int, ...]:
    first = base + 128 * (warp + WARPS * block) + step
    return tuple(first + 4 * lane for lane in range(32))


def streaming(rounds: int = 4) -> Blocks:
    """Each warp reads a line, adds to it and writes it, `rounds` times, 64 KiB * 4 further on each time."""
    step = 128 * WARPS * BLOCKS
    program = {}
    for block in range(BLOCKS):
        warps = []
        for warp in range(WARPS):
            lines = [Line(0, "IMAD", (4,), (0, 3))]
            for turn in range(rounds):
                lines += [
                    Line(0x10, "LDG.E.SYS", (2,), (4,), addresses=lanes(HEAP, block, warp, turn * step)),
                    Line(0x20, "FADD", (3,), (2, 2)),
                    Line(0x30, "STG.E.SYS", (), (6, 3), addresses=lanes(OUT, block, warp, turn * step)),
                    Line(0x40, "IADD3", (4,), (4,)),
                ]
            warps.append([*lines, Line(0x50, "EXIT")])
        program[(block, 0, 0)] = warps
    return program


def write_trace(folder: Path, name: str = "kernel-1.traceg", **values: object) -> Path:
    path = folder / name
    text = trace(streaming(), grid=(BLOCKS, 1, 1), block=(32 * WARPS, 1, 1), **values)
    path.write_text(text)
    return path


def test_a_trace_takes_as_long_as_its_task_list(tmp_path: Path) -> None:
    """The list that it is translated to says the same, so the simulation of both is the same."""
    path = write_trace(tmp_path)
    text = translate(path)
    assert "repeat" in text
    assert "after" in text
    (tmp_path / "k.tl").write_text(text)
    of_trace = predict(path, "v100", cache=False).launches[0]
    of_list = predict(tmp_path / "k.tl", "v100", cache=False).launches[0]
    assert of_trace.value("kernel.warp_instructions") == of_list.value("kernel.warp_instructions")
    assert of_trace.value("memory.dram_read_bytes") == of_list.value("memory.dram_read_bytes")
    assert float(of_trace.value("kernel.cycles")) == pytest.approx(float(of_list.value("kernel.cycles")), rel=0.02)


def test_what_is_counted_is_what_ran(tmp_path: Path) -> None:
    launch = predict(write_trace(tmp_path), "v100", cache=False).launches[0]
    assert launch.value("kernel.warp_instructions") == BLOCKS * WARPS * (2 + 4 * 4)
    assert launch.value("kernel.registers") == 32
    assert launch.value("roofline.flops") == BLOCKS * WARPS * 32 * 4
    assert any("machine code from a trace" in line for line in launch.assumptions)


def test_a_list_is_a_sequence_of_launches_with_copies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_trace(tmp_path, "kernel-1.traceg")
    second = write_trace(tmp_path, "kernel-2.traceg", kernel_name="again")
    (tmp_path / "kernel-2.traceg.gz").write_bytes(gzip.compress(second.read_bytes()))
    second.unlink()
    size = 1 << 20
    text = f"MemcpyHtoD,0x{HEAP:016x},{size}\nkernel-1.traceg\n\nkernel-2.traceg\nMemcpyDtoH,0x{OUT:x},{size}\n"
    (tmp_path / "kernelslist.g").write_text(text)
    run = read_run(tmp_path / "kernelslist.g")
    assert [launch.header.kernel for launch in run.launches] == ["kernel", "again"]
    assert [(copy.bytes, copy.direction) for copy in run.copies] == [(size, "in"), (size, "out")]
    assert main(["predict", str(tmp_path / "kernelslist.g"), "--gpu", "v100", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["launches"]) == 2
    lines = check(tmp_path / "kernelslist.g")
    assert lines[0].endswith("traces of 2 launches, 2 host copies")
    assert "160 of 160 blocks of 128 threads" in lines[2]


def test_the_second_launch_finds_what_the_first_left(tmp_path: Path) -> None:
    """Both read the same lines, which fit the L2: the second reads less from DRAM."""
    write_trace(tmp_path, "kernel-1.traceg")
    write_trace(tmp_path, "kernel-2.traceg")
    (tmp_path / "kernelslist.g").write_text("kernel-1.traceg\nkernel-2.traceg\n")
    first, second = predict(tmp_path / "kernelslist.g", "v100", cache=False).launches
    assert int(second.value("memory.dram_read_bytes")) < int(first.value("memory.dram_read_bytes"))


def test_the_models_take_machine_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(write_trace(tmp_path)), "--gpu", "v100", "--model", "roofline"]) == 0
    assert "roofline" in capsys.readouterr().out


def test_machine_code_runs_on_its_own_generation_only() -> None:
    v100, t4, a100 = (load_gpu(name) for name in ("v100", "t4", "a100"))
    assert machine_gpu(v100, 70, "x").isa.expand == {}
    assert machine_gpu(t4, 70, "x").isa.ops == t4.isa.ops
    for gpu, arch in ((a100, 70), (v100, 75), (v100, 80)):
        with pytest.raises(PptError, match=f"machine code of sm_{arch}"):
            machine_gpu(gpu, arch, "x")


def test_other_commands_say_that_a_trace_has_no_ptx(tmp_path: Path) -> None:
    from ppt_gpu.frontends.prepare import prepare

    with pytest.raises(PptError, match="has no PTX"):
        prepare(open_workload(write_trace(tmp_path)))


def test_a_block_that_is_not_in_the_trace_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "k.traceg"
    path.write_text(trace({(0, 0, 0): [[Line(0, "EXIT")]]}, grid=(4, 1, 1)))
    with pytest.raises(PptError, match=r"has 1 of 4 blocks; block \d is needed"):
        predict(path, "v100", cache=False)


def test_the_example_is_what_the_writer_writes_and_its_trace_and_its_code_are_the_same_list() -> None:
    """The list of the trace has addresses, that of the code predicates; operations, order and loops are the same."""
    folder = Path(__file__).parents[3] / "examples" / "sass"
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert files.keys() == example().keys()
    assert {name: files[name] for name in ("kernelslist.g", "saxpy.sass")} == {
        name: content for name, content in example().items() if not name.endswith(".xz")
    }
    assert lzma.decompress(files["kernel-1.traceg.xz"]) == lzma.decompress(example()["kernel-1.traceg.xz"])
    of_trace = parse_tasklist(translate(folder / "kernel-1.traceg.xz"))
    code = read_disassembly((folder / "saxpy.sass").read_text())
    of_code = static_list(code, code.functions["saxpy"], {".L_x_0": 2}, Shape(256))
    flat = [[(task.op, len(loops)) for task, loops in walk(each.body)] for each in (of_trace, of_code)]
    assert flat[0] == flat[1]
    for one, other in zip(walk(of_trace.body), walk(of_code.body), strict=True):
        assert set(one[0].deps) <= set(other[0].deps)
    assert [buffer.bytes for buffer in of_trace.buffers] == [16384, 16384]
