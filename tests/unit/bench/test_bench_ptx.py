"""The text that the parser is timed on."""

from pathlib import Path

from benchmarks.ptx import bench_text
from ppt_gpu.common.paths import data_dir
from ppt_gpu.ptx.parsing.parser import load_module, parse_module


def test_bench_text_is_many_renamed_copies() -> None:
    paths = sorted(Path(data_dir("tasklists")).glob("*.ptx"))
    kernels = sum(len(load_module(path).kernels) for path in paths)
    size = sum(len(path.read_text()) for path in paths)
    module = parse_module(bench_text(paths, 2 * size))
    assert len(module.kernels) >= 2 * kernels
    assert len(module.kernels) % kernels == 0
