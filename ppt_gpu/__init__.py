"""ppt_gpu predicts how long a GPU kernel takes, without the GPU.

>>> import ppt_gpu
>>> result = ppt_gpu.predict("sgemm", "k40")
>>> result.time, result.main.value("limiter")                                               # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ppt_gpu.common.errors import BudgetError, PptError

if TYPE_CHECKING:
    from ppt_gpu.comparison import compare
    from ppt_gpu.emulator.cache.recorded import load_trace
    from ppt_gpu.frontends.texture_argument import ArrayTexture
    from ppt_gpu.pipeline import launch, open_workload, predict, translate
    from ppt_gpu.spec import list_gpus, load_gpu

__version__ = "0.1.0"
__all__ = [
    "ArrayTexture",
    "BudgetError",
    "PptError",
    "compare",
    "launch",
    "list_gpus",
    "load_gpu",
    "load_trace",
    "open_workload",
    "predict",
    "translate",
]


def __getattr__(name: str) -> Any:
    """Imports the front doors when they are first used, so that `import ppt_gpu` stays instant."""
    if name in ("predict", "launch", "open_workload", "translate"):
        from ppt_gpu import pipeline

        return getattr(pipeline, name)
    if name == "compare":
        from ppt_gpu.comparison import compare

        return compare
    if name == "load_trace":
        from ppt_gpu.emulator.cache.recorded import load_trace

        return load_trace
    if name == "ArrayTexture":
        from ppt_gpu.frontends.texture_argument import ArrayTexture

        return ArrayTexture
    if name in ("load_gpu", "list_gpus"):
        from ppt_gpu import spec

        return getattr(spec, name)
    raise AttributeError(f"module 'ppt_gpu' has no attribute '{name}'")
