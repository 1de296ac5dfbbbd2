"""A whole chip in several processes: each brings some of the SMs to the end of the window, the first one does the rest.

All arrays that change stand in memory that the processes share. They wait for their turn at a pipe, so that a machine
with fewer cores than processes is not kept busy by waiting.
"""

from __future__ import annotations

import mmap
import time
from itertools import pairwise
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection
from typing import Any

from ppt_gpu.errors import PptError
from ppt_gpu.sm.chip import ChipState
from ppt_gpu.sm.chip_machine import Chip
from ppt_gpu.sm.core import pays
from ppt_gpu.sm.core_raw import PAUSED, Raw
from ppt_gpu.sm.program import Program

GO, STOP = b"go", b"stop"


def run_in_processes(program: Program, chip: Chip, resident: int, max_cycles: int, window: int, processes: int) -> Raw:
    """As `chip.run_chip`, with the SMs shared out among `processes` processes, at most one an SM.

    PptError when one of them ends early, or where a process cannot be copied.
    """
    if "fork" not in get_all_start_methods():
        raise PptError("this system cannot copy processes", hint="--processes 1 needs no others")
    bounds = [chip.sms * part // processes for part in range(processes + 1)]
    parts = [(first, last) for first, last in pairwise(bounds) if last > first]
    state, fixed = ChipState(program, chip, resident, window, max_cycles), pays(program, chip.sm)
    state.move_to(mmap.mmap(-1, max(state.size, 1)))
    state.advance(0, 0, fixed)  # compiled once, before the others are made
    context, began = get_context("fork"), time.process_time()
    others: list[tuple[Any, Connection]] = []
    try:
        for first, last in parts[1:]:
            here, there = context.Pipe()
            other = context.Process(target=_help, args=(there, state, first, last, fixed), daemon=True)
            other.start()
            there.close()
            others.append((other, here))
        with state.progress():
            _run(state, parts[0], [pipe for _, pipe in others], fixed)
        return state.raw(time.process_time() - began)
    finally:
        for other, pipe in others:
            pipe.close()
            other.join(timeout=5)
            if other.is_alive():
                other.terminate()


def _run(state: ChipState, own: tuple[int, int], pipes: list[Connection], fixed: bool) -> None:
    status = PAUSED
    try:
        while status == PAUSED:
            for pipe in pipes:
                pipe.send_bytes(GO)
            state.advance(*own, fixed)
            for pipe in pipes:
                pipe.recv_bytes()
            status = state.close()
        for pipe in pipes:
            pipe.send_bytes(STOP)
    except (EOFError, OSError):
        raise PptError("a process of level grid ended early", hint="--processes 1 needs no others") from None


def _help(pipe: Connection, state: ChipState, first: int, last: int, fixed: bool) -> None:
    try:
        while pipe.recv_bytes() == GO:
            state.advance(first, last, fixed)
            pipe.send_bytes(GO)
    except (EOFError, OSError):  # the first process has ended
        pass
