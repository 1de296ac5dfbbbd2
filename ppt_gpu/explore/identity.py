"""What a study depends on, as a digest: equal digests, equal results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.trace.identity import digest, prediction_digest
from ppt_gpu.explore.space import Space
from ppt_gpu.frontends.includes import included_text
from ppt_gpu.inputs import CUDA, named_files
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.load import fingerprint
from ppt_gpu.workload.workload import Workload


def study_identity(workload: Workload, gpu: str, space: Space, fixed: Iterable[str], *more: Any) -> str:
    """Of the workload with its files, the GPU, the configurations, `more` plain values, and this program."""
    asked = (
        [(parameter.key, parameter.values) for parameter in space.parameters],
        [(key, expression.text) for key, expression in space.follow],
        [condition.text for condition in space.conditions],
    )
    program = prediction_digest("explore")
    return digest(program, workload_identity(workload), fingerprint(load_gpu(gpu)), asked, list(fixed), more)


def workload_identity(workload: Workload) -> str:
    """Of a workload, its kernel file and the files that fill its buffers."""
    described = {key: value for key, value in asdict(workload).items() if key != "line"}
    return digest(described, [_content(path) for path in named_files(workload)], _included(workload))


def _included(workload: Workload) -> str | None:
    """Of a CUDA file, its text with what it includes; None where that cannot be known."""
    if Path(workload.ptx_path).suffix not in CUDA:
        return None
    return included_text(Path(workload.ptx_path), workload.compiler_options)


def _content(path: Path) -> str:
    try:
        return sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise PptError(f"cannot read the file: {error.strerror}", path=path) from None
