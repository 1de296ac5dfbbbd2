"""The compilers on this machine: nvcc, ptxas and nvdisasm, where they are, which version, which GPUs they know."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ppt_gpu.common.errors import PptError

#: folders of Python packages that bring the tool: the CUDA wheels, and Triton's own copy
WHEEL_TOOLS = {
    "nvcc": ("nvidia/*/bin/nvcc",),
    "ptxas": ("nvidia/*/bin/ptxas", "triton/backends/nvidia/bin/ptxas", "triton/backends/nvidia/bin/ptxas-*"),
    "nvdisasm": ("nvidia/*/bin/nvdisasm", "triton/backends/nvidia/bin/nvdisasm"),
    "cuobjdump": ("nvidia/*/bin/cuobjdump", "triton/backends/nvidia/bin/cuobjdump"),
}
#: a compiler that takes longer has lost its way, s
TIMEOUT = 600


@dataclass(frozen=True)
class Tool:
    """An executable of the CUDA toolkit."""

    name: str
    path: str
    version: str  # "13.0"
    archs: tuple[str, ...]  # "80", "90a": what it compiles for; empty when it does not say

    @property
    def title(self) -> str:
        """As reports name it: "nvcc 13.0"."""
        return f"{self.name} {self.version}"


def find(name: str) -> list[Tool]:
    """Every tool `name`: the one on PATH, those of CUDA_HOME and CUDA_PATH, those of Python packages, in this order."""
    places = [None, *(str(Path(os.environ[key]) / "bin") for key in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(key))]
    paths = [path for place in places if (path := shutil.which(name, path=place))]
    paths += [str(path) for path in wheel_files(*WHEEL_TOOLS[name])]
    return [tool for path in dict.fromkeys(paths) if (tool := _described(name, path))]


def wheel_files(*patterns: str) -> list[Path]:
    """Files of installed Python packages that match `patterns`, relative to the folders where packages are."""
    folders = [Path(entry) for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]
    return [file for folder in folders for pattern in patterns for file in sorted(folder.glob(pattern))]


@lru_cache(maxsize=8)
def _described(name: str, path: str) -> Tool | None:
    try:
        text = run_tool([path, "--version"]).stdout
        listing = run_tool([path, "--list-gpu-arch" if name == "nvcc" else "--help"]).stdout
    except PptError:
        return None
    version = re.search(r"release (\d+\.\d+)", text)
    archs = dict.fromkeys(re.findall(r"compute_(\d+[af]?)\b", listing))
    return Tool(name, path, version[1] if version else "", tuple(archs))


def run_tool(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a compiler, output captured. PptError when it cannot be started or does not end."""
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT, check=False)
    except OSError as error:
        raise PptError(f"cannot run {command[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise PptError(f"{command[0]} did not end within {TIMEOUT} s") from None
