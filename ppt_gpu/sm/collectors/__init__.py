"""SMs with collector units, as GPGPU-Sim has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ppt_gpu.common.lazy_face import lazy_face

if TYPE_CHECKING:
    from ppt_gpu.sm.collectors.loop import run_staged

__getattr__, __all__ = lazy_face(__name__, __file__)
