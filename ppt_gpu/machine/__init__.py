"""PTX becomes machine code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ppt_gpu.common.lazy_face import lazy_face

if TYPE_CHECKING:
    from ppt_gpu.machine.code import machine_code
    from ppt_gpu.machine.code_cache import kept_machine_code
    from ppt_gpu.machine.trace import as_machine_code

__getattr__, __all__ = lazy_face(__name__, __file__)
