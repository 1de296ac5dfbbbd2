"""What a front end makes of a kernel object and its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class KernelSource:
    """PTX text with the values of its parameters, and of the launch what the front end decides."""

    name: str  # for reports and messages
    text: str  # PTX
    values: Sequence[Any]  # one for each parameter, as ppt_gpu.frontends.arrays takes them
    kernel: str = ""  # entry; "": the only one
    grid: tuple[int, ...] = ()  # () where the user gives it
    block: tuple[int, ...] = ()
    dynamic_shared: int = 0  # B
    notes: tuple[str, ...] = ()  # which compiler made it, for the report
