"""Kernel times for cluster simulations: one prediction for each distinct launch and GPU, kept on disk."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from ppt_gpu.cluster.model.kernel import Kernel
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.paths import data_dir
from ppt_gpu.common.progress import Progress
from ppt_gpu.emulator.cache.store import TIME, Store
from ppt_gpu.emulator.trace.identity import digest, prediction_digest
from ppt_gpu.inputs import files_of, open_workload
from ppt_gpu.pipeline import predict
from ppt_gpu.spec import load_gpu
from ppt_gpu.workload.workload import Workload


class PredictedKernels:
    """Call it with a kernel and a GPU's name or file: seconds on the GPU, without launch overhead and host copies.

    Files that kernels name are looked for in `directory` first. `predicted` counts the predictions that were made;
    `files` are those that kernels were read from.
    """

    def __init__(self, directory: Path, *, cache: bool = True, files: set[Path] | None = None) -> None:
        self.directory = directory
        self.files = set() if files is None else files
        self.store = Store() if cache else None
        self.predicted = 0

    def __call__(self, kernel: Kernel, gpu: str) -> float:
        """Raises PptError for a kernel that cannot be predicted."""
        workload = self._workload(kernel)
        self.files.update(files_of(workload))
        target = load_gpu(gpu)
        name = self._name(workload, digest(target))
        seconds = self.store.read(name, name[:32] + TIME, _decode) if self.store and name else None
        if seconds is None:
            self.predicted += 1
            with Progress(f"predicting {kernel.workload}"):
                result = predict(workload, target, cache=self.store is not None)
            seconds = sum(
                float(launch.value("kernel.time")) * int(launch.extra.get("repeat", 1)) for launch in result.launches
            )
            if self.store and name:
                self.store.write(name, name[:32] + TIME, json.dumps(seconds).encode())
        return seconds * kernel.times

    def _workload(self, kernel: Kernel) -> Workload:
        if not kernel.grid:
            if kernel.block or kernel.args:
                raise PptError(f"kernel '{kernel.workload}': block and args need a grid")
            return open_workload(self._file(kernel.workload))
        source = kernel.workload if Path(kernel.workload).suffix else f"{kernel.workload}.ptx"
        return open_workload(
            self._file(source),
            kernel=kernel.kernel or None,
            grid=kernel.grid,
            block=kernel.block or None,
            args=kernel.args,
            registers=kernel.registers,
        )

    def _file(self, source: str) -> str:
        """The file of this name: beside the application, where the program was started, or a shipped one."""
        if not Path(source).suffix:
            return source
        for folder in (self.directory, Path(), data_dir("tasklists")):
            if (folder / source).is_file():
                return str(folder / source)
        return source

    def _name(self, workload: Workload, gpu: str) -> str:
        """A digest of all that the time depends on; "" where that is not known: data from .npy files, traces."""
        if workload.machine_path or any(
            buffer.init.startswith("npy") for buffer in (*workload.buffers, *workload.symbols)
        ):
            return ""
        files = [Path(name).read_bytes() for name in (workload.ptx_path, workload.tasklist_path) if name]
        fields = {name: value for name, value in asdict(workload).items() if name != "warnings"}
        return digest(prediction_digest("cluster_kernels.py"), gpu, files, fields)


def _decode(data: bytes, path: str) -> float:
    del path
    return float(json.loads(data))
