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

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import before_loops, before_numba, forget_before_loops, forget_before_numba
from ppt_gpu.common.threads import processors
from ppt_gpu.sm.program.ops import kind_of, pipe_order
from ppt_gpu.sm.program.program import Program
from ppt_gpu.spec.gpu import TASK_CLASSES, Gpu


def shortest_program(gpu: Gpu) -> Program:
    """One warp with one integer operation. What lowers kernels is compiled code, too, and would come first."""
    op = gpu.isa.op("int32")

    def one(value: int, kind: type[np.generic] = np.int32) -> NDArray[Any]:
        return np.array([value], kind)

    def ends(count: int) -> NDArray[np.int64]:
        return np.array([0, count], np.int64)

    return Program(
        op_name=("int32",),
        op_pipe=one(pipe_order(gpu).index(op.pipe)),
        op_latency=one(op.latency),
        op_ii=one(op.ii),
        op_kind=one(kind_of("int32"), np.int8),
        op_pc=one(0),
        op_class=one(TASK_CLASSES.index("int32")),
        path_start=ends(1),
        entry_op=one(0),
        entry_wait=one(0, np.uint64),
        entry_slot=one(-1, np.int8),
        warp_path=one(0),
        warp_access=ends(0),
        block_warp=ends(1),
        access_start=one(0, np.int64),
        access_cycles=np.zeros(0, np.int32),
        tx_line=np.zeros(0, np.int32),
        tx_sectors=np.zeros(0, np.uint8),
        line_address=np.zeros(0, np.uint64),
        line_warm=np.zeros(0, np.uint8),
    )


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
    from ppt_gpu.sm.precompile import shortest_program
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
