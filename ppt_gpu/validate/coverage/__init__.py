"""The set `coverage`: kernels that use each feature of PTX, each held against a plain result in NumPy."""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.validate.coverage import (
    arithmetic,
    atomic,
    control,
    half,
    hopper,
    library,
    memory,
    numba,
    ptx_only,
    tensor,
    triton,
    warp,
)
from ppt_gpu.validate.coverage.case import CASES, Case
from ppt_gpu.validate.tables.rows import is_asked

#: modules that register their cases when they are imported
PARTS = (warp, atomic, arithmetic, half, memory, control, ptx_only, tensor, hopper, library, triton, numba)


def cases(texts: Sequence[str] = ()) -> list[Case]:
    """Cases whose name contains one of `texts`; all when there are none."""
    return [case for case in CASES if is_asked(case.name, texts)]
