"""Loading GPUs: every shipped file, sources, inheritance, overrides, derived pipes and operations."""

import pickle
import re
from functools import cache
from pathlib import Path

import pytest

from ppt_gpu.common.errors import InputErrors, PptError
from ppt_gpu.common.paths import data_dir
from ppt_gpu.spec import canonical, fingerprint, list_gpus, load_gpu, load_isa, toml_document
from ppt_gpu.spec.gpu import TASK_CLASSES

NAMES = [entry.name for entry in list_gpus()]
#: keys that are names or words, not numbers
NOT_NUMBERS = {"base", "title", "chip", "compute_capability", "isa", "notes", "perfect_memory"}
#: files that several tests here only look at, read once
shipped = cache(load_gpu)
ISAS = sorted(path.stem for path in (data_dir("hardware") / "isa").glob("*.toml"))


@pytest.mark.parametrize("name", NAMES)
def test_every_number_has_a_source(name: str) -> None:
    gpu = shipped(name)
    bare = [path for path, source in gpu.sources.items() if path not in NOT_NUMBERS and not source.source]
    assert bare == []
    assert gpu.sources["sm.clock"].line > 0


def test_sources_are_found_when_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where values stand in a file takes as long to find as the values; equal and pickled as any mapping."""
    looked: list[str] = []
    scan = toml_document.scan
    monkeypatch.setattr(toml_document, "scan", lambda text, file: looked.append(file) or scan(text, file))
    toml_document.forget_documents()
    gpu = load_gpu("k6000", ["sm.count=3"])
    assert looked == []
    assert gpu.sources["sm.count"].source == "command line" and len(looked) == 2  # the file and its base
    assert gpu.sources == pickle.loads(pickle.dumps(gpu)).sources == dict(gpu.sources)
    assert repr(gpu.sources) == repr(dict(gpu.sources)) and len(looked) == 2


@pytest.mark.parametrize("name", NAMES)
def test_sources_name_a_known_reference(name: str) -> None:
    known = set(re.findall(r"^\| (\w+) \|", (data_dir("hardware") / "SOURCES.md").read_text(), re.MULTILINE))
    kinds = (
        r"(?:spec|rule|measured|static|simulator|model|derived|secondary|copied|recalled|assumed|lanl|paper|launches)"
    )
    for path, source in shipped(name).sources.items():
        for cited in re.findall(rf"{kinds} \(([A-Z0-9]+)[ :)]", source.source):
            assert cited in known, f"{path}: {source.source}"


@pytest.mark.parametrize("name", NAMES)
def test_gpu_is_consistent(name: str) -> None:
    gpu = shipped(name)
    for task in TASK_CLASSES:
        assert gpu.isa.op(task).pipe in gpu.pipes
    for pipe in gpu.pipes.values():
        instances = gpu.sm.schedulers if pipe.scope == "scheduler" else 1
        rate = 32 * pipe.units / pipe.ii * instances
        if pipe.name != "tensor":  # tensor lanes count FMA of a whole matrix instruction
            assert rate <= pipe.lanes, pipe
            assert rate > pipe.lanes / 2, f"{pipe} is much slower than its lanes"
    for opcode, operations in gpu.isa.expand.items():
        assert all(gpu.isa.op(each) for each in operations), opcode
    for op in gpu.isa.ops.values():
        assert op.ii >= 1 and op.latency >= 1 and op.source


@pytest.mark.parametrize("name", ISAS)
def test_isa_has_every_task_class(name: str) -> None:
    isa = load_isa(name)
    assert isa.name == name
    for task in TASK_CLASSES:
        assert isa.op(task).name in (task, task.partition(".")[0])


def test_names_are_matched_loosely() -> None:
    assert load_gpu("K40").name == load_gpu("Tesla K40").name == load_gpu("tesla-k40").name == "k40"
    assert load_gpu("RTX_4090").name == load_gpu("GeForce RTX 4090").name == "rtx4090"


def test_unknown_name() -> None:
    with pytest.raises(PptError, match="unknown GPU 'k41'") as caught:
        load_gpu("k41")
    assert caught.value.hint == "did you mean 'k40'?"
    with pytest.raises(PptError, match="there is no file"):
        load_gpu("nowhere/my.toml")


def test_a_hypothetical_gpu_is_five_lines(tmp_path: Path) -> None:
    path = tmp_path / "big_kepler.toml"
    path.write_text('base = "k40"\n[sm]\ncount = 30\n[dram]\nbandwidth = "1 TB/s"\n')
    gpu, base = load_gpu(path), load_gpu("k40")
    assert (gpu.name, gpu.title) == ("big_kepler", "big_kepler")
    assert (gpu.sm.count, gpu.dram.bandwidth) == (30, 1e12)
    assert gpu.l2 == base.l2 and gpu.isa == base.isa
    assert gpu.sources["sm.count"].file == str(path)
    assert gpu.sources["sm.count"].line == 3


def test_base_may_be_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('base = "v100"\n[sm]\ncount = 10\n')
    (tmp_path / "b.toml").write_text('base = "a.toml"\n[sm]\nclock = "1 GHz"\n')
    gpu = load_gpu(tmp_path / "b.toml")
    assert (gpu.sm.count, gpu.sm.clock) == (10, 1e9)


def test_overrides() -> None:
    gpu = load_gpu("k40", ["sm.count=30", "dram.bandwidth=1 TB/s", 'op."fp32.fma".latency=4', "sm.count=31"])
    assert (gpu.sm.count, gpu.dram.bandwidth) == (31, 1e12)
    assert gpu.isa.op("fp32.fma").latency == 4
    assert gpu.isa.op("fp32.fma").pipe == load_gpu("k40").isa.op("fp32.fma").pipe
    assert gpu.isa.op("fp32.add").latency == 9
    assert gpu.sources["sm.count"].source == "command line"


def test_errors_of_overrides_name_the_override() -> None:
    with pytest.raises(InputErrors) as caught:
        load_gpu("k40", ["sm.cuont=3", "dram.bandwidth=1 GHz", "sm.max_warps=16", "nonsense"])
    assert str(caught.value).splitlines() == [
        '--set dram.bandwidth=1 GHz: dram.bandwidth: "1 GHz" measures frequency, not bytes/s; '
        'expected a quantity such as "288 GB/s"',
        "--set nonsense: expected KEY=VALUE, such as sm.count=30 or dram.bandwidth=1 TB/s",
        "--set sm.cuont=3: unknown key sm.cuont",
        "  hint: did you mean 'count'?",
        "--set sm.max_warps=16: sm.max_threads_per_block (1024) is more than sm.max_warps * 32 (512)",
    ]


def test_a_pipe_has_units_and_interval_from_its_lanes() -> None:
    kepler, volta, tesla = load_gpu("k40").pipes, load_gpu("v100").pipes, load_gpu("8800gtx").pipes
    assert (kepler["fp32"].units, kepler["fp32"].ii) == (6, 1)
    assert (volta["fp32"].units, volta["fp32"].ii) == (1, 2)
    assert (volta["sfu"].units, volta["sfu"].ii) == (1, 8)
    assert (tesla["fp32"].units, tesla["fp32"].ii) == (1, 4)
    narrow = load_gpu("v100", ["pipes.fp64.lanes=4"])
    assert narrow.pipes["fp64"].ii == narrow.isa.op("fp64.fma").ii == 32


def test_single_precision_peak_is_the_data_sheet() -> None:
    """TFLOP/s (fma counts two) of the makers' tables, at the clocks of the files."""
    sheet = {"k40": 4.29, "v100": 15.7, "a100": 19.5, "rtx4090": 82.6, "h100": 66.9, "m2090": 1.33, "gtx480": 1.35}
    for name, peak in sheet.items():
        gpu = load_gpu(name)
        assert gpu.pipes["fp32"].lanes * 2 * gpu.sm.count * gpu.sm.clock / 1e12 == pytest.approx(peak, rel=0.01), name


def test_barriers_at_the_documented_rate() -> None:
    """CUDA C Programming Guide: __syncthreads of threads a clock and SM. Fermi's clock is the shader's, ours half."""
    guide = {"8800gtx": 8, "gtx280": 8, "m2090": 32, "gtx660ti": 128, "k40": 128, "titanx": 64, "gtx980": 64,
             "p100": 32, "gtx1080ti": 64, "p4": 64, "v100": 16, "t4": 16, "rtx2080ti": 16, "a100": 16, "a40": 16,
             "rtx3070": 16, "rtx4090": 16, "l40": 16, "h100": 16, "b200": 16}  # fmt: skip
    for name, threads in guide.items():
        gpu = load_gpu(name)
        barrier = gpu.isa.op("barrier")
        pipe = gpu.pipes[barrier.pipe]
        pipes = gpu.sm.schedulers if pipe.scope == "scheduler" else 1
        assert 32 * pipe.units * pipes / barrier.ii == threads, name


def test_fingerprint_sees_numbers_only() -> None:
    base = load_gpu("k40")
    assert fingerprint(base) == fingerprint(load_gpu("k40", ["title=Another", "notes=text"]))
    assert fingerprint(base) != fingerprint(load_gpu("k40", ["l2.latency=189"]))
    assert fingerprint(base) != fingerprint(load_gpu("k40", ['op."fp32.fma".latency=10']))
    assert "sources" not in canonical(base)


def test_listing() -> None:
    entries = {entry.name: entry for entry in list_gpus()}
    assert list(entries) == sorted(entries)
    for name, entry in entries.items():
        gpu = shipped(name)
        assert entry.title == gpu.title
        assert entry.compute_capability == ".".join(map(str, gpu.compute_capability))


def test_published_machines() -> None:
    """GPUMech Table I and the 2015 PPT projection (goldens gm.table1, ppt.table1)."""
    gm, pascal = load_gpu("gpumech_table1"), load_gpu("pascal_ppt")
    assert (gm.sm.count, gm.sm.clock, gm.l1.mshrs, gm.isa.op("fp32.fma").latency) == (16, 1e9, 32, 25)
    assert (gm.l1.size, gm.l2.size, gm.dram.bandwidth) == (32 << 10, 768 << 10, 192e9)
    assert (pascal.sm.count, pascal.pipes["fp32"].lanes, pascal.pipes["fp64"].lanes) == (16, 256, 128)
    assert (pascal.sm.clock, pascal.dram.bandwidth) == (900e6, 1e12)


def test_simulated_gpus_are_identity() -> None:
    for name, steps in {"gpgpusim_qv100": (10, 9, 13, 105), "gpgpusim_gtx480": (11, 10, 14, 14)}.items():
        isa = load_gpu(name).isa
        assert {len(operations) for operations in isa.expand.values()} == {1} and not isa.fuse and not isa.unnamed
        found = tuple(isa.op(op).latency for op in ("fp32.fma", "fp32.add", "fp64.fma", "sfu.sin"))
        assert found == steps
