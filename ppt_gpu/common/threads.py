"""Threads of one process: how many there may be, and work shared out among them that comes out as without them.

Compiled code runs without Python's lock (`ppt_gpu.common.compiled`), so what simulates or executes much gets faster.
Each thread of a piece of work has its share of the threads allowed, so that work within work starts no more than there
may be. The calling thread works, too: Ctrl-C reaches it as ever (`ppt_gpu.common.interrupt`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar, cast

from ppt_gpu.common.errors import PptError

VARIABLE = "PPT_GPU_THREADS"
MOST = 1024

T = TypeVar("T")
R = TypeVar("R")

_allowed: ContextVar[int | None] = ContextVar("allowed", default=None)
_helpers: set[threading.Thread] = set()

#: held while something is compiled that others may ask for meanwhile: they wait, instead of compiling it too
COMPILING = threading.RLock()


def processors() -> int:
    """Those that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def allowed() -> int:
    """Threads that work begun here may use: what `at_most` says, else PPT_GPU_THREADS, else one a processor.

    PptError where the variable is no positive number.
    """
    found = _allowed.get()
    if found is not None:
        return found
    text = os.environ.get(VARIABLE)
    return checked(text, VARIABLE) if text else processors()


def checked(threads: int | str, name: str = "threads") -> int:
    """`threads` as a number of threads. PptError, which begins with `name`, where it is none."""
    text = str(threads)
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= MOST):
        raise PptError(f"{name}: '{text}' is not a number of threads", hint=f"1 to {MOST}, such as {name}=4")
    return int(text)


@contextmanager
def at_most(threads: int | None) -> Iterator[None]:
    """Inside, at most so many threads work; None: as many as outside. PptError for what is no number of threads."""
    before = _allowed.set(_allowed.get() if threads is None else checked(threads))
    try:
        yield
    finally:
        _allowed.reset(before)


def ordered(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """[function(item) for item in items], in as many threads as are allowed.

    Raises what the first item in order raises that fails; those before it have all been called then.
    """
    threads = min(allowed(), len(items))
    if threads < 2:
        return [function(item) for item in items]
    found: dict[int, R] = {}
    failed: dict[int, Exception] = {}
    numbers = iter(range(len(items)))
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                number = None if failed else next(numbers, None)
            if number is None:
                return
            try:
                found[number] = function(items[number])
            except Exception as error:
                failed[number] = error

    together(work, threads)
    if failed:
        raise failed[min(failed)]
    return [found[number] for number in range(len(items))]


def both(one: Callable[[], T], other: Callable[[], R]) -> tuple[T, R]:
    """What both return, in two threads where they are allowed. Raises as `ordered`."""
    parts: list[Callable[[], T | R]] = [one, other]
    first, second = ordered(lambda part: part(), parts)
    return cast(T, first), cast(R, second)


def together(work: Callable[[], None], threads: int) -> None:
    """Call `work` in so many threads at once, of which this is one; return when it has returned in all.

    Raises what `work` raises in this thread, else what it raises in another one. Ctrl-C does not wait for the others.
    """
    share = max(1, allowed() // threads)
    raised: list[BaseException] = []

    def helped() -> None:
        try:
            with at_most(share):
                work()
        except BaseException as error:
            raised.append(error)
        finally:
            _helpers.discard(threading.current_thread())

    helpers = [
        threading.Thread(target=copy_context().run, args=(helped,), name="ppt_gpu", daemon=True)
        for _ in range(threads - 1)
    ]
    _helpers.update(helpers)
    for helper in helpers:
        helper.start()
    try:
        with at_most(share):
            work()
    except Exception:
        _join(helpers)
        raise
    _join(helpers)
    if raised:
        raise raised[0]


def at_work() -> bool:
    """Whether other threads still work, as after Ctrl-C: nobody can stop compiled code."""
    return bool(_helpers)


def _join(helpers: Sequence[threading.Thread]) -> None:
    for helper in helpers:
        helper.join()
