"""The application and the task graph of docs/cluster.md run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from plain_machine import PlainMachine

import ppt_gpu
from ppt_gpu.cluster.application import load_application
from ppt_gpu.cluster.engine.simulate import simulate
from ppt_gpu.cluster.engine.world import Settings

PAGE = Path(ppt_gpu.__file__).parents[1] / "docs" / "cluster.md"


@pytest.mark.parametrize(("language", "suffix", "kernels"), [("python", ".py", 1), ("json", ".json", 1)])
def test_examples_run(language: str, suffix: str, kernels: int, tmp_path: Path) -> None:
    (text,) = re.findall(rf"```{language}[ \w.]*\n(.*?)```", PAGE.read_text(), re.S)
    (tmp_path / f"example{suffix}").write_text(text)
    application = load_application(tmp_path / f"example{suffix}")
    settings = Settings(kernel_times=lambda kernel, gpu: 1e-3)
    found = simulate(PlainMachine(nodes=2, gpus_per_node=2), application.program, settings)
    assert len(found.kernels) == kernels
    assert found.time > 1e9
