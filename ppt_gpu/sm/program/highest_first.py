"""The order in which a load/store unit takes the transactions of an access: the highest address first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.sm.program.program import Program


def highest_first(program: Program) -> Program:
    """`program` with the transactions of each access in that order; those without an address come last."""
    lines, sectors = program.tx_line.copy(), program.tx_sectors.copy()
    _sort(program.access_start, program.line_address.astype(np.int64), lines, sectors)
    return replace(program, tx_line=lines, tx_sectors=sectors)


@entry
def _sort(
    start: NDArray[np.int64], address: NDArray[np.int64], lines: NDArray[np.int32], sectors: NDArray[np.uint8]
) -> None:
    for access in range(len(start) - 1):
        for index in range(start[access] + 1, start[access + 1]):
            line, mask, to = lines[index], sectors[index], index
            here = address[line] if line >= 0 else -1
            while to > start[access]:
                before = lines[to - 1]
                if (address[before] if before >= 0 else -1) >= here:
                    break
                lines[to], sectors[to] = before, sectors[to - 1]
                to -= 1
            lines[to], sectors[to] = line, mask
