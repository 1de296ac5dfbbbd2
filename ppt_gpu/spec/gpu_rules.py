"""Rules between the values of a GPU file. Each broken rule is one more error of the file."""

from __future__ import annotations

from typing import Any

from ppt_gpu.errors import did_you_mean
from ppt_gpu.spec.gpu import Op, Pipe
from ppt_gpu.spec.toml_reader import Checked
from ppt_gpu.units import format_bytes


def _at_most(checked: Checked, low: tuple[str, str], high: tuple[str, str], show: Any = str) -> None:
    """Rule: the value at `low` is at most the value at `high`. Says nothing when one is missing or zero."""
    small, large = checked.get(*low), checked.get(*high)
    if small is not None and large and small > large:
        names = f"{'.'.join(low)} ({show(small)})", f"{'.'.join(high)} ({show(large)})"
        checked.problem(low, f"{names[0]} is more than {names[1]}")


def check_rules(checked: Checked, pipes: dict[str, Pipe], ops: dict[str, Op]) -> None:
    """Add every contradiction between the checked values to `checked`."""
    _sm(checked)
    _shared(checked)
    for cache in ("l1", "l2"):
        _cache(checked, cache)
    if checked.get("l1", "size"):
        _at_most(checked, ("l1", "latency"), ("l2", "latency"))
    if checked.get("l2", "size"):
        _at_most(checked, ("l2", "latency"), ("dram", "latency"))
    _at_most(checked, ("host", "pageable_bandwidth"), ("host", "link_bandwidth"), lambda v: f"{v / 1e9:g} GB/s")
    _pipes(checked, pipes, ops)


def _sm(checked: Checked) -> None:
    warps, threads = checked.get("sm", "max_warps"), checked.get("sm", "max_threads_per_block")
    if warps and threads and threads > 32 * warps:
        checked.problem(
            ("sm", "max_threads_per_block"),
            f"sm.max_threads_per_block ({threads}) is more than sm.max_warps * 32 ({32 * warps})",
        )
    registers, most = checked.get("sm", "registers"), checked.get("sm", "max_registers_per_thread")
    if registers and most and 32 * most > registers:
        checked.problem(
            ("sm", "max_registers_per_thread"),
            f"a warp with sm.max_registers_per_thread ({most}) needs {32 * most} registers,"
            f" sm.registers is {registers}",
        )
    unit = checked.get("sm", "register_unit")
    if registers and unit and registers % unit:
        checked.problem(
            ("sm", "register_unit"), f"sm.register_unit ({unit}) does not divide sm.registers ({registers})"
        )
    _at_most(checked, ("sm", "schedulers"), ("sm", "max_warps"))
    _at_most(checked, ("sm", "warp_granularity"), ("sm", "max_warps"))


def _shared(checked: Checked) -> None:
    _at_most(checked, ("shared", "per_block"), ("shared", "size"), format_bytes)
    size, block, reserved = (checked.get("shared", key) for key in ("size", "per_block", "reserved"))
    if size and block is not None and reserved and block <= size < block + reserved:
        checked.problem(
            ("shared", "reserved"),
            f"shared.per_block + shared.reserved ({format_bytes(block + reserved)}) is more than shared.size"
            f" ({format_bytes(size)})",
        )
    carveouts, unified = checked.get("shared", "carveouts"), checked.get("l1", "unified")
    if not carveouts or unified is None:
        return
    if unified == 0:
        checked.problem(
            ("shared", "carveouts"), "shared.carveouts needs l1.unified, the memory that they are carved from"
        )
        return
    for carveout in carveouts:
        if carveout > unified:
            texts = format_bytes(carveout), format_bytes(unified)
            checked.problem(("shared", "carveouts"), f"the carve-out {texts[0]} is more than l1.unified ({texts[1]})")
    if size is not None and size != max(carveouts):
        texts = format_bytes(size), format_bytes(max(carveouts))
        checked.problem(
            ("shared", "size"), f"shared.size ({texts[0]}) is not the largest of shared.carveouts ({texts[1]})"
        )


def _cache(checked: Checked, name: str) -> None:
    size, line, sector, ways = (checked.get(name, key) for key in ("size", "line", "sector", "ways"))
    if line and sector and line % sector:
        checked.problem((name, "sector"), f"{name}.sector ({sector} B) does not divide {name}.line ({line} B)")
    unified = checked.get(name, "unified") or 0
    if size and unified and size > unified:
        checked.problem(
            (name, "size"), f"{name}.size ({format_bytes(size)}) is more than {name}.unified ({format_bytes(unified)})"
        )
    if not (line and ways):
        return
    sizes = [unified - each for each in checked.get("shared", "carveouts") or ()] if unified else []
    for each in [size or 0, *sizes]:
        if each > 0 and each % (line * ways):
            checked.problem(
                (name, "ways"),
                f"{name}.ways * {name}.line ({format_bytes(line * ways)}) does not divide the size"
                f" {format_bytes(each)}",
            )
            return


def _pipes(checked: Checked, pipes: dict[str, Pipe], ops: dict[str, Op]) -> None:
    schedulers = checked.get("sm", "schedulers")
    for pipe in pipes.values():
        if pipe.scope == "scheduler" and schedulers and pipe.lanes % schedulers:
            checked.problem(
                ("pipes", pipe.name, "lanes"),
                f"pipes.{pipe.name}.lanes ({pipe.lanes}) cannot be shared out to sm.schedulers ({schedulers})",
                'scope = "sm" describes lanes that all schedulers share',
            )
    for op in ops.values():
        if op.pipe not in (checked.get("pipes") or {}):
            own = checked.get("op", op.name) is not None
            place = ("op", op.name) if own else ("pipes",)
            checked.problem(place, f'operation "{op.name}" runs on pipe "{op.pipe}", which [pipes] does not list',
                            did_you_mean(op.pipe, pipes))  # fmt: skip
