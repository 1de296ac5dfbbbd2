"""What is kept between predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ppt_gpu.common.lazy_face import lazy_face

if TYPE_CHECKING:
    from ppt_gpu.emulator.cache.recorded import RecordedTraces, save_traces

__getattr__, __all__ = lazy_face(__name__, __file__)
