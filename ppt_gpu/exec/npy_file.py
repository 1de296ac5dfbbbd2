"""Element counts of .npy files that fill buffers."""

from __future__ import annotations

from pathlib import Path

from ppt_gpu.errors import PptError


def npy_elements(path: str | Path) -> int:
    """Elements in .npy file `path`. PptError when it is missing, no .npy file, or holds no numbers."""
    import numpy as np

    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise PptError(f"the file {path} does not exist") from None
    except (OSError, ValueError, EOFError):
        raise PptError(f"{path} is not a readable .npy file", hint="made with numpy.save") from None
    if not isinstance(array, np.ndarray):
        raise PptError(f"{path} is an archive, not one array", hint="save one array with numpy.save")
    if array.dtype.kind not in "iufb":
        raise PptError(f"{path} holds {array.dtype}, expected numbers")
    return int(array.size)
