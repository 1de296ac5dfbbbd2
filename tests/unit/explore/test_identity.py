"""What a study is of: every input that changes a result changes its digest, and where it stands does not."""

import lzma
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ppt_gpu.explore.journal import study_identity, workload_identity
from ppt_gpu.explore.space import make_space
from ppt_gpu.inputs import open_workload
from ppt_gpu.spec import load_gpu

ROOT = Path(__file__).parents[3]
VECADD = open_workload("vecadd")


def test_files_of_a_workload(tmp_path: Path) -> None:
    ptx = tmp_path / "k.ptx"
    shutil.copy(ROOT / "tasklists" / "vecadd.ptx", ptx)
    np.save(tmp_path / "x.npy", np.zeros(64, np.float32))
    args = [f"f32[64]=npy:{tmp_path / 'x.npy'}", "f32[64]", "f32[64]", "i32=64"]

    def now() -> str:
        return workload_identity(open_workload(ptx, grid="1", block="64", args=args))

    first = now()
    assert now() == first
    np.save(tmp_path / "x.npy", np.ones(64, np.float32))
    second = now()
    ptx.write_text(ptx.read_text() + "\n")
    assert len({first, second, now()}) == 3


def test_what_a_cuda_file_includes(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text('#include "size.h"\n__global__ void k(float *x) { x[threadIdx.x] = SIZE; }\n')
    found = set()
    for size in (1, 2):
        (tmp_path / "size.h").write_text(f"#define SIZE {size}\n")
        found.add(workload_identity(open_workload(tmp_path / "k.cu", grid="1", block="32", args=["f32[32]"])))
    assert len(found) == 2


def test_traces_of_machine_code(tmp_path: Path) -> None:
    """Other files beside them, such as the journal, are no part of it."""
    shutil.copytree(ROOT / "examples" / "sass", tmp_path / "sass")
    traced = tmp_path / "sass" / "kernelslist.g"
    first = workload_identity(open_workload(traced))
    (tmp_path / "sass" / "rows.csv.journal").write_text("x")
    assert workload_identity(open_workload(traced)) == first
    (file,) = (tmp_path / "sass").glob("*.traceg.xz")
    file.write_bytes(lzma.compress(lzma.decompress(file.read_bytes()), preset=0))
    assert workload_identity(open_workload(traced)) != first


@pytest.mark.parametrize("what", ["gpu", "values", "condition", "follow", "metrics", "workload"])
def test_whatever_is_asked(what: str) -> None:
    def made(gpu: str = "k40", values: str = "8,16", let: str = "", where: str = "", more: str = "time",
             workload: object = VECADD) -> str:  # fmt: skip
        space = make_space(
            [f"sm.count={values}"], [let] if let else [], [where] if where else [], load_gpu(gpu), VECADD
        )
        return study_identity(workload, gpu, space, (), more)  # type: ignore[arg-type]

    other = {
        "gpu": made(gpu="k20"),
        "values": made(values="8,17"),
        "condition": made(where="sm.count > 1"),
        "follow": made(let="l1.mshrs=sm.count"),
        "metrics": made(more="kernel.time"),
        "workload": made(workload=replace(VECADD, name="other")),
    }
    assert made() == made() != other[what]
