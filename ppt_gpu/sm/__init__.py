"""One streaming multiprocessor, event by event: `simulate` runs a `Program`; README.md says what happens when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ppt_gpu.common.lazy_face import lazy_face

if TYPE_CHECKING:
    from ppt_gpu.sm.lowering.events import meets
    from ppt_gpu.sm.lowering.lower import lower_trace
    from ppt_gpu.sm.lowering.tasks import lower_tasklist
    from ppt_gpu.sm.one_sm import simulate
    from ppt_gpu.sm.whole_chip import simulate_chip

__getattr__, __all__ = lazy_face(__name__, __file__)
