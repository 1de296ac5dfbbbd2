"""Ways to a kernel other than a PTX file: CUDA C++, numba-cuda, Triton, NumPy arrays from Python; and ptxas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ppt_gpu.common.lazy_face import lazy_face

if TYPE_CHECKING:
    from ppt_gpu.frontends.call import file_of, is_kernel, open_call
    from ppt_gpu.frontends.includes import included

__getattr__, __all__ = lazy_face(__name__, __file__)
