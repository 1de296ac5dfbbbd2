"""What a study depends on, as a digest: equal digests, equal results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from ppt_gpu.errors import PptError
from ppt_gpu.exec.identity import digest, program_digest, sources_digest
from ppt_gpu.exec.workload import Workload
from ppt_gpu.explore.space import Space
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.load import fingerprint

#: packages whose sources make a result out of inputs
_SOURCES = ("spec", "ptx", "tasklist", "exec", "sm", "analytic", "scale", "sass", "frontends", "report", "explore")


def study_identity(workload: Workload, gpu: str, space: Space, fixed: Iterable[str], *more: Any) -> str:
    """Of the workload with its files, the GPU, the configurations, `more` plain values, and this program."""
    asked = (
        [(parameter.key, parameter.values) for parameter in space.parameters],
        [(key, expression.text) for key, expression in space.follow],
        [condition.text for condition in space.conditions],
    )
    program = (program_digest(), sources_digest(*_SOURCES))
    return digest(program, workload_identity(workload), fingerprint(load_gpu(gpu)), asked, list(fixed), more)


def workload_identity(workload: Workload) -> str:
    """Of a workload, its kernel file and the files that fill its buffers."""
    names = [workload.ptx_path if not workload.ptx_text else "", workload.tasklist_path]
    folder = Path(workload.path).parent
    fills = [b.init.partition(":")[2] for b in (*workload.buffers, *workload.symbols) if b.init.startswith("npy:")]
    if workload.machine_path:
        traces = Path(workload.machine_path).parent
        names += [str(path) for path in sorted(traces.iterdir()) if path.is_file()]
    files = [Path(name) for name in names if name] + [folder / name for name in fills]
    described = {key: value for key, value in asdict(workload).items() if key != "line"}
    return digest(described, [_content(path) for path in files])


def _content(path: Path) -> str:
    try:
        return sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise PptError(f"cannot read the file: {error.strerror}", path=path) from None
