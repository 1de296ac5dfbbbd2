"""Every example runs, where what it needs is installed, and checks its own result."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from ppt_gpu.frontends.cuda_source import _compiler

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NEEDS = {
    "cuda_from_python": ("nvcc or nvidia-cuda-nvrtc", lambda: _compiler() is not None),
    "numba_kernel": ("the package numba-cuda[cu13]", lambda: bool(find_spec("cuda") and find_spec("cuda.bindings"))),
    "triton_kernel": ("the package triton", lambda: find_spec("triton") is not None),
    "ptx_from_python": ("nothing", lambda: True),
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path, tmp_path: Path) -> None:
    package, present = NEEDS[path.stem]
    if not present():
        pytest.skip(f"needs {package}")
    done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "limited by" in done.stdout


def test_the_command_of_the_cuda_example() -> None:
    if _compiler() is None:
        pytest.skip("needs nvcc or nvidia-cuda-nvrtc")
    from ppt_gpu.cli import main

    lines = (ROOT / "examples" / "blur.cu").read_text().splitlines()[2:4]
    words = " ".join(line.removeprefix("//") for line in lines).replace("'", "").split()[1:]
    words = [word.replace("examples/", str(ROOT / "examples") + "/") for word in words]
    assert main(words) == 0
    assert main([*words, "--nvcc-option=-DRADIUS=0"]) == 0
    assert main([*words, "--nvcc-option=-DRADIUS=oops"]) == 2
