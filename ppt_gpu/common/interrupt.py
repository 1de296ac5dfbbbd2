"""Ctrl-C ends the program within a second, also while compiled code runs, which Python itself would wait for.

Python only notes a signal, and acts when the main thread runs Python again. Here a thread is woken by each signal; if
the main thread has not ended the command after GRACE, that thread ends the process. Compiled loops release Python's
lock for that (`ppt_gpu.common.compiled`).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from ppt_gpu.common.files import abandon

GRACE = 0.4  # s that the main thread has
CODE = 130  # of a process that Ctrl-C ended: 128 + SIGINT
TEXT = "interrupted"


@contextmanager
def prompt_interrupts() -> Iterator[None]:
    """Inside, Ctrl-C raises KeyboardInterrupt as ever, or ends the process where that takes too long."""
    if threading.current_thread() is not threading.main_thread() or os.name == "nt":
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    over = threading.Event()
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader, over), daemon=True).start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        os.close(writer)  # the thread reads the end of the pipe, and ends


def end_now() -> NoReturn:
    """End the process without waiting for what its threads do; what they have begun to write goes."""
    abandon()
    os._exit(CODE)


def _watch(reader: int, over: threading.Event) -> None:
    try:
        while signals := os.read(reader, 64):
            if signal.SIGINT in signals and not over.wait(GRACE):
                os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"{TEXT}\n".encode())
                end_now()
    finally:
        os.close(reader)
