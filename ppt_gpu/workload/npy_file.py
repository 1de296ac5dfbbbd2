"""Element counts of .npy files that fill buffers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from tokenize import TokenError

from ppt_gpu.common.errors import PptError

_absent = ContextVar("absent", default=False)
#: what numpy.load raises for a damaged file: it reads the header as a Python expression
UNREADABLE = (OSError, ValueError, EOFError, SyntaxError, TokenError, TypeError, OverflowError, MemoryError)


@contextmanager
def inputs_may_be_absent() -> Iterator[None]:
    """Inside, files of inputs whose number of elements is stated need not exist: traces from a file replace them."""
    token = _absent.set(True)
    try:
        yield
    finally:
        _absent.reset(token)


def npy_elements(path: str | Path, stated: int) -> int:
    """Elements in .npy file `path`; `stated` are those that the workload says, 0 for none.

    PptError when it is missing, no .npy file, or holds no numbers.
    """
    import numpy as np

    try:
        with warnings.catch_warnings(action="ignore"):  # about headers of old versions
            array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        if stated and _absent.get():
            return stated
        raise PptError(f"the file {path} does not exist") from None
    except UNREADABLE:
        raise PptError(f"{path} is not a readable .npy file", hint="made with numpy.save") from None
    if not isinstance(array, np.ndarray):
        raise PptError(f"{path} is an archive, not one array", hint="save one array with numpy.save")
    if array.dtype.kind not in "iufb":
        raise PptError(f"{path} holds {array.dtype}, expected numbers")
    return int(array.size)
