"""ppt_gpu predicts how long a GPU kernel takes, without the GPU.

>>> import ppt_gpu
>>> result = ppt_gpu.predict("sgemm", "k40")
>>> result.time, result.main.value("limiter")                                               # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.common.lazy_face import lazy_face

if TYPE_CHECKING:
    from ppt_gpu.comparison import compare
    from ppt_gpu.emulator.cache.recorded import load_trace
    from ppt_gpu.frontends.texture_argument import ArrayTexture
    from ppt_gpu.functional import launch
    from ppt_gpu.inputs import open_workload
    from ppt_gpu.pipeline import predict
    from ppt_gpu.spec.load import list_gpus, load_gpu
    from ppt_gpu.task_lists import translate

__version__ = "0.1.0"
__getattr__, _lazy = lazy_face(__name__, __file__)
__all__ = sorted(["BudgetError", "PptError", *_lazy])
