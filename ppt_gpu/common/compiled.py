"""How the compiled loops are compiled: the decorators that keep the first run on a machine short.

Compiling costs much more than running, so compiled functions allocate nothing (their callers pass the arrays to
fill), are specialised for one set of types each, and do without NumPy calls, slices and `min`/`max`, each of which
numba would have to compile too.

To import numba takes longer than most of what a prediction does whose answer is kept: a decorated function is
`Deferred`, and numba sees it when it is first called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import update_wrapper
from threading import RLock
from types import CodeType, FunctionType
from typing import Any

_OPTIONS = {"_nrt": False, "no_cfunc_wrapper": True}
#: of functions that Python calls: meanwhile other threads run
_ENTRY = _OPTIONS | {"nogil": True}
#: of functions that only compiled code calls: nothing that Python would need to call them is made. (The passes that
#: no_rewrites leaves out look for expressions of whole arrays.)
_HELPER = {"_nrt": False, "no_cfunc_wrapper": True, "no_cpython_wrapper": True, "no_rewrites": True}

_MAKING = RLock()
#: what is done once, just before numba is first needed
_before: list[Callable[[], None]] = []
#: what is done before a compiled loop runs for long, given the loop
_before_loops: list[Callable[[Any], None]] = []


class Deferred:
    """A function for compiled code, which goes to numba when it is first called or compiled into another."""

    def __init__(self, function: Callable[..., Any], how: str, options: dict[str, Any] | None = None) -> None:
        """`how`: the function of `common.compilers` that makes it, with these options."""
        update_wrapper(self, function)
        self.py_func = function
        self._how, self._options = how, options or {}
        self._made: Any = None
        self.being_made = False

    def __call__(self, *arguments: Any) -> Any:
        return (self._made or self.made())(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked of any object, by pickle, copy or inspect
            raise AttributeError(name)
        return getattr(self.made(), name)

    def made(self) -> Any:
        """What numba made of the function."""
        with _MAKING:
            if self._made is None:
                self.being_made = True
                while _before:
                    _before.pop()()
                _replace_deferred(self.py_func)
                from ppt_gpu.common import compilers

                self._made = getattr(compilers, self._how)(self.py_func, self._options)
                self.being_made = False
            return self._made


def before_numba(do: Callable[[], None]) -> None:
    """Have `do` called when a compiled function is first needed; once, and never where none is."""
    _before.append(do)


def forget_before_numba(do: Callable[[], None]) -> None:
    """Take back `before_numba`."""
    if do in _before:
        _before.remove(do)


def before_loops(do: Callable[[Any], None]) -> None:
    """Have `do` called with each compiled loop that is about to run."""
    _before_loops.append(do)


def forget_before_loops(do: Callable[[Any], None]) -> None:
    """Take back `before_loops`."""
    _before_loops.remove(do)


def about_to_run(loop: Any) -> None:
    """Do what was asked for by `before_loops`."""
    for do in _before_loops:
        do(loop)


def _replace_deferred(function: Callable[..., Any]) -> None:
    """Let `function` name what numba made instead of what is deferred, as numba reads its globals and its closure."""
    if not isinstance(function, FunctionType):
        return
    for name in _names(function.__code__):
        value = function.__globals__.get(name)
        if isinstance(value, Deferred) and not value.being_made:  # else an attribute of that name is meant
            function.__globals__[name] = value.made()
    for cell in function.__closure__ or ():
        if isinstance(cell.cell_contents, Deferred):
            cell.cell_contents = cell.cell_contents.made()


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def entry(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function that Python calls, kept on disk where a folder for that is writable.

    Meanwhile other threads run, such as the one that answers Ctrl-C. What is kept is used again while all that it was
    made from is the same, in whichever file that stands (`ppt_gpu.common.compiled_cache`).
    """

    return Deferred(function, "kept", _ENTRY | options)


def called(function: Callable[..., Any]) -> Any:
    """Compile a function of its own for compiled callers: once for each set of types, whoever calls it."""
    return Deferred(function, "linked", _HELPER)


def merged(function: Callable[..., Any]) -> Any:
    """As `called`, and LLVM copies it into each caller."""
    return Deferred(function, "linked", _HELPER | {"forceinline": True})


def intrinsic(function: Callable[..., Any]) -> Any:
    """Instructions for compiled code: as numba.extending.intrinsic."""

    return Deferred(function, "extended")


@intrinsic
def popcount(typing_context: Any, value: Any) -> Any:
    """Number of set bits of an int64."""

    from numba import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), generate
