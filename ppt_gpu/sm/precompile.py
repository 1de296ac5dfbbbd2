"""The first run on a machine: the SM loop is compiled in a second process, beside all that comes before it.

What both share is numba's cache on disk. The second process only fills it, so that whatever becomes of it the result
is the same: when the prediction comes to the loop, it waits for that process, and compiles the loop itself if it is not
in the cache then. Only commands that predict once start one, never a call of `predict()`, and so no worker process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ppt_gpu.common.compiled import before_loops, before_numba, forget_before_loops, forget_before_numba
from ppt_gpu.common.threads import processors

#: s that a prediction waits for the second process; three times what it takes on a slow machine
PATIENCE = 60.0
LEFT_ALONE = 3  # exit code of the second process when the first has ended
_CODE = "import sys; sys.path[:] = sys.argv[1:]; from ppt_gpu.sm.precompile import fill_cache; fill_cache()"
#: the second process, while there is one, and the loop that it compiles
_beside: tuple[subprocess.Popen[bytes], Any] | None = None


@contextmanager
def loop_beside() -> Iterator[None]:
    """Inside, the loop of most GPUs is compiled by another process, from when anything compiled is needed.

    Where it is not kept, and that pays.
    """
    before_numba(_compile_beside)
    before_loops(wait_for)
    try:
        yield
    finally:
        forget_before_loops(wait_for)
        forget_before_numba(_compile_beside)
        _end()


def _compile_beside() -> None:
    global _beside
    from ppt_gpu.sm.loop.loop import common_loop

    loop = common_loop()
    if _beside is None and processors() > 1 and sys.executable and not _is_kept(loop):
        process = _start()
        if process is not None:
            _beside = process, loop


def wait_for(loop: Any) -> None:
    """Return when nobody else compiles `loop`."""
    if _beside is not None and _beside[1] is loop:
        with suppress(subprocess.TimeoutExpired):
            _beside[0].wait(PATIENCE)
        _end()


def fill_cache() -> None:
    """The second process: simulate next to nothing, which compiles the loop. Ends when the first one does."""
    from ppt_gpu.sm.one_sm import simulate
    from ppt_gpu.sm.program.shortest import shortest_program
    from ppt_gpu.spec import load_gpu

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # at once, and without a word
    threading.Thread(target=_end_with_the_first, daemon=True).start()
    gpu = load_gpu("k40")
    simulate(shortest_program(gpu), gpu, resident_blocks=1, active_sms=1)


def _end_with_the_first() -> None:
    """Standard input is a pipe that nobody writes to: it ends when the other process does, however that happens."""
    sys.stdin.buffer.read()
    os._exit(LEFT_ALONE)


def _start() -> subprocess.Popen[bytes] | None:
    command = [sys.executable, "-c", _CODE, *sys.path]
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError:  # no more processes
        return None


def _end() -> None:
    global _beside
    if _beside is not None:
        process, _beside = _beside[0], None
        process.kill()
        process.communicate()


def _is_kept(loop: Any) -> bool:
    """Whether numba will find `loop` on disk. True too where it can keep nothing there."""
    try:
        cache = loop._cache
        index = cache._cache_file._load_index()
        compiled_here = cache._index_key(None, loop.targetctx.codegen())[1:]
        return any(key[1:] == compiled_here for key in index)
    except Exception:  # it keeps nothing, or the index is broken: the prediction itself will see
        return True
