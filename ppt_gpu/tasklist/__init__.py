"""Task lists: `model` (what they are), `text` (the .tl format), `flat` (loops expanded, addresses), `graph` (measures).

This file imports nothing, so that the command line starts fast; import from the modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ppt_gpu.common.lazy_face import lazy_face

if TYPE_CHECKING:
    from ppt_gpu.tasklist.flat import flatten
    from ppt_gpu.tasklist.model import grid_axes
    from ppt_gpu.tasklist.text import read_tasklist

__getattr__, __all__ = lazy_face(__name__, __file__)
