"""Changes of single parameters of a GPU: which are studied, what is better, the steps that a GPU file allows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.explore.expression import Value
from ppt_gpu.explore.hardware_keys import leaf_of, numbers_of, text_of
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.spec.toml_reader import Number

#: parameters of which more is better, and those of which less is
MORE = (
    "sm.count", "sm.clock", "sm.schedulers", "sm.max_warps", "sm.max_blocks", "sm.registers", "shared.size",
    "l1.size", "l1.bandwidth", "l1.mshrs", "l2.size", "l2.bandwidth", "l2.mshrs", "interconnect.bandwidth",
    "dram.bandwidth", "dram.efficiency", "memory.queue", "memory.transactions_per_cycle", "memory.atomics_per_cycle",
)  # fmt: skip
LESS = ("shared.latency", "l1.latency", "l2.latency", "dram.latency", "host.launch_overhead", "host.block_launch")
LANES = "lanes"  # of each pipe, more is better
GENTLER = (1.0, 0.5, 0.25, 0.1)  # shares of the logarithm of a factor, tried until a GPU file allows the change


@dataclass(frozen=True)
class Change:
    """One parameter of a GPU with another value."""

    key: str
    before: Value
    after: Value

    @property
    def override(self) -> str:
        """As `ppt_gpu.predict` takes it."""
        return f"{self.key}={text_of(self.key, self.after)}"

    @property
    def factor(self) -> float:
        return float(self.after) / float(self.before)


def direction(key: str) -> int:
    """1 where more of the parameter is better, -1 where less is, 0 where that is not known."""
    more = key in MORE or (key.startswith("pipes.") and key.endswith(f".{LANES}"))
    return 1 if more else -1 if key in LESS else 0


def studied(gpu: Gpu, only: tuple[str, ...] = ()) -> list[str]:
    """The parameters of `gpu` that a change can be tried of, or those in `only`. PptError for one that cannot."""
    numbers = numbers_of(gpu)
    known = [*MORE, *(f"pipes.{name}.{LANES}" for name in gpu.pipes), *LESS]
    for key in only:
        if key not in known:
            raise PptError(f"--parameter {key}: not among those that are tried", hint=did_you_mean(key, known))
    return [key for key in only or known if float(numbers[key]) > 0]


class Changes:
    """Changes of the parameters of one GPU, `base` with `fixed` overrides."""

    def __init__(self, base: str, fixed: tuple[str, ...] = ()) -> None:
        self.base, self.fixed = base, fixed
        self.gpu = load_gpu(base, fixed)
        self.numbers = numbers_of(self.gpu)

    def improved(self, key: str, factor: float) -> Change | None:
        """`key` better by `factor`, or by as much of it as a GPU file allows; None where it allows nothing."""
        for share in GENTLER:
            change = self.scaled(key, factor ** (share * direction(key)))
            if change is not None:
                return change
        return None

    def scaled(self, key: str, factor: float) -> Change | None:
        """`key` times `factor`, rounded away from what it is to what the hardware hands out; None if not allowed."""
        before = float(self.numbers[key])
        after = self._rounded(key, before * factor, math.ceil if factor > 1 else math.floor)
        change = Change(key, self.numbers[key], after)
        if after == before or after <= 0 or not self._allowed(change):
            return None
        return change

    def _rounded(self, key: str, value: float, whole: Callable[[float], int]) -> float | int:
        unit = self._unit(key)
        if unit:
            return whole(round(value / unit, 9)) * unit
        return value

    def _unit(self, key: str) -> int:
        """What the parameter is a multiple of; 0 where it may be any number."""
        numbers, (table, _, name) = self.numbers, key.rpartition(".")
        if key in ("l1.size", "l2.size"):
            return int(numbers[f"{table}.line"]) * int(numbers[f"{table}.ways"])
        if key == "sm.registers":
            return int(numbers["sm.register_unit"])
        if key == "shared.size":
            return int(numbers["shared.unit"])
        if key == "sm.max_warps":
            return int(numbers["sm.warp_granularity"])
        if name == LANES:
            return int(numbers["sm.schedulers"]) if numbers[f"{table}.scope"] == "scheduler" else 1
        leaf = leaf_of(key, key)
        return 1 if isinstance(leaf, Number) and leaf.integer else 0

    def _allowed(self, change: Change) -> bool:
        try:
            load_gpu(self.base, (*self.fixed, change.override))
        except PptError:
            return False
        return True
