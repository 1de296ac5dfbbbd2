"""SASS, the machine code of GPUs: disassembly, control codes and traces of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ppt_gpu.common.lazy_face import lazy_face

if TYPE_CHECKING:
    from ppt_gpu.sass.kernelslist import open_run, read_run
    from ppt_gpu.sass.machine_traces import MachineTraces, gpu_of_run

__getattr__, __all__ = lazy_face(__name__, __file__)
