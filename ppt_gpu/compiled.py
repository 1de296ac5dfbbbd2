"""How the compiled loops are compiled: the decorators that keep the first run on a machine short.

Compiling costs much more than running, so compiled functions allocate nothing (their callers pass the arrays to
fill), are specialised for one set of types each, and do without NumPy calls, slices and `min`/`max`, each of which
numba would have to compile too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

_OPTIONS = {"_nrt": False, "no_cfunc_wrapper": True}
#: of functions that Python calls: meanwhile other threads run, such as the one that answers Ctrl-C
_ENTRY = _OPTIONS | {"nogil": True}


def entry(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, cached on disk where a folder for that is writable.

    numba's cache notices changes of the function's own file only: what it inlines belongs into that file.
    """
    try:
        return njit(cache=True, **_ENTRY)(function)
    except (RuntimeError, OSError):
        return njit(**_ENTRY)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Copy a function into its compiled callers before types are inferred: cheap where it is called once."""
    return njit(inline="always", **_OPTIONS)(function)


#: of functions that only compiled code calls: nothing that Python would need to call them is made. (The passes that
#: no_rewrites leaves out look for expressions of whole arrays.)
_HELPER = {"_nrt": False, "no_cfunc_wrapper": True, "no_cpython_wrapper": True, "no_rewrites": True}


def called(function: Callable[..., Any]) -> Any:
    """Compile a function of its own for compiled callers: once for each set of types, whoever calls it."""
    return njit(**_HELPER)(function)


def merged(function: Callable[..., Any]) -> Any:
    """As `called`, and LLVM copies it into each caller: as fast as `inlined`, and types are inferred once."""
    return njit(forceinline=True, **_HELPER)(function)
