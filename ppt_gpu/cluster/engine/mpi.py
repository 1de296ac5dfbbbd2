"""The processes that mpirun started: one exchange a window, and an error in one of them ends all.

mpi4py is imported only where mpirun started this process; without it everything runs here.
"""

from __future__ import annotations

import marshal
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ppt_gpu.cluster.engine.closed_form_collectives import News
from ppt_gpu.cluster.engine.outcome import Part
from ppt_gpu.cluster.engine.state import Wire
from ppt_gpu.common import interrupt
from ppt_gpu.common.errors import PptError

Shared = TypeVar("Shared")

#: what launchers tell each process of the number of them: Open MPI, MPICH and its kin, MVAPICH2
SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")
FIRST_SPEAKS = 0.5  # s that other processes wait before they report an error: all may have it


class Mpi:
    """All processes of MPI's world."""

    def __init__(self, communicator: Any) -> None:
        self.communicator = communicator
        self.rank: int = communicator.Get_rank()
        self.size: int = communicator.Get_size()

    def exchange(self, out: list[list[Wire]], news: list[News], next_time: int) -> tuple[list[Wire], list[News], int]:
        """Give each process its wires, all the news, and learn theirs and the first of all times."""
        packets = [marshal.dumps((wires, news, next_time)) for wires in out]
        heard = [marshal.loads(packet) for packet in self.communicator.alltoall(packets)]
        return (
            [wire for wires, _, _ in heard for wire in wires],
            [entry for _, entries, _ in heard for entry in entries],
            min(first for _, _, first in heard),
        )

    def gather(self, part: Part) -> list[Part]:
        """The parts of all processes, in every process."""
        found: list[Part] = self.communicator.allgather(part)
        return found

    def share(self, value: Shared, source: int = 0) -> Shared:
        """What process `source` found, in every process."""
        found: Shared = self.communicator.bcast(value, root=source)
        return found


def started_by_mpi() -> bool:
    """Whether mpirun started this process as one of several."""
    return any(int(os.environ.get(name, "1")) > 1 for name in SIZES)


def processes() -> Mpi | None:
    """The processes of this run; None when this is the only one. PptError when mpirun started it, without mpi4py."""
    if not started_by_mpi():
        return None
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise PptError(
            f"started by mpirun, but mpi4py cannot be imported: {error}", hint="pip install 'ppt_gpu[mpi]'"
        ) from None
    return Mpi(MPI.COMM_WORLD)


@contextmanager
def one_ends_all(mpi: Mpi | None) -> Iterator[None]:
    """An error inside is printed and ends all processes: exit code 2 for a PptError, 130 for Ctrl-C, else 1."""
    if mpi is None:
        yield
        return
    try:
        yield
    except BaseException as error:
        if mpi.rank:
            time.sleep(FIRST_SPEAKS)
        code = 1
        if isinstance(error, PptError):
            print(f"error: {error}", file=sys.stderr)
            code = 2
        elif isinstance(error, KeyboardInterrupt):
            print(interrupt.TEXT, file=sys.stderr)
            code = interrupt.CODE
        else:
            sys.excepthook(type(error), error, error.__traceback__)
        sys.stderr.flush()
        mpi.communicator.Abort(code)
        raise
