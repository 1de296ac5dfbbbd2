"""The same SM in plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ppt_gpu.common.lazy_face import lazy_face

if TYPE_CHECKING:
    from ppt_gpu.sm.reference.chip import run_chip_reference
    from ppt_gpu.sm.reference.l1 import run_reference

__getattr__, __all__ = lazy_face(__name__, __file__)
