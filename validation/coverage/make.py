#!/usr/bin/env python3
"""Makes the PTX of the corpus anew: `python validation/coverage/make.py [cuda] [triton] [numba]` (all by default).

Needs nvcc, and the packages triton and numba-cuda[cu13] for their parts. The first lines of each file say what made it.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE / "python")]

os.environ.setdefault("TRITON_DISABLE_LINE_INFO", "1")

from ppt_gpu.frontends.arrays import Arrays  # noqa: E402
from ppt_gpu.frontends.nvcc import compile_nvcc  # noqa: E402
from ppt_gpu.frontends.tools import find  # noqa: E402

#: CUDA file -> architecture: the oldest that has what it uses
CUDA = {
    "warp": "80", "atomic": "80", "arithmetic": "80", "memory": "75", "control": "75", "half": "80", "tensor": "80",
    "hopper": "90", "ptx_only": "86", "library": "90a",
}  # fmt: skip


def write(name: str, text: str, source: str, compiler: str, more: str = "") -> None:
    head = f"// Made from {source} by {compiler}.\n// Remake it with validation/coverage/make.py.\n{more}"
    (HERE / "ptx" / f"{name}.ptx").write_text(head + text.rstrip("\0 \n") + "\n")


def make_cuda() -> None:
    nvcc = find("nvcc")[0]
    for name, arch in CUDA.items():
        text = compile_nvcc(nvcc, HERE / "cuda" / f"{name}.cu", arch, [])
        write(name, text, f"cuda/{name}.cu", f"{nvcc.title} -ptx -arch=sm_{arch}")


def make_triton() -> None:
    import triton
    from triton_kernels import KERNELS

    from ppt_gpu.frontends.triton_kernel import compile_triton

    for name, (kernel, values, capability, options) in KERNELS.items():
        made = compile_triton(kernel, values, (1,), capability, Arrays(), options)
        compiler = f"Triton {triton.__version__} for sm_{capability[0]}{capability[1]}, {options}"
        shared = f"// dynamic shared memory: {made.dynamic_shared} B\n"
        write(name, made.text, f"python/triton_kernels.py ({kernel.__name__})", compiler, shared)


def make_numba() -> None:
    from importlib.metadata import version

    from numba_kernels import KERNELS

    from ppt_gpu.frontends.numba_kernel import compile_numba

    for name, (kernel, values) in KERNELS.items():
        made = compile_numba(kernel, values, (8, 0), Arrays())
        source = f"python/numba_kernels.py ({kernel.__name__})"
        write(name, made.text, source, f"numba-cuda {version('numba-cuda')} for sm_80")


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["cuda", "triton", "numba"]
    (HERE / "ptx").mkdir(exist_ok=True)
    for part in wanted:
        {"cuda": make_cuda, "triton": make_triton, "numba": make_numba}[part]()
