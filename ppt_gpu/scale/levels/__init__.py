"""The levels of fidelity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ppt_gpu.common.lazy_face import lazy_face

if TYPE_CHECKING:
    from ppt_gpu.scale.levels.grid import disagreement, grid_prediction, small, small_prediction, through_crossbar
    from ppt_gpu.scale.levels.irregular import irregular_prediction
    from ppt_gpu.scale.levels.single_wave import single_wave_prediction
    from ppt_gpu.scale.levels.window_recording import record_prediction
    from ppt_gpu.scale.levels.workload import workload_prediction

__getattr__, __all__ = lazy_face(__name__, __file__)
