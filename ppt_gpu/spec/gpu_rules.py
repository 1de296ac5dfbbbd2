"""Rules between the values of a GPU file. Each broken rule is one more error of the file."""

from __future__ import annotations

from collections.abc import Callable

from ppt_gpu.common.errors import did_you_mean
from ppt_gpu.common.units import format_bytes
from ppt_gpu.spec.gpu import Op, Pipe
from ppt_gpu.spec.toml_reader import Checked

Key = tuple[str, str]
#: operations that do not compute: each waits in another way
NO_QUEUE = ("load", "store", "atomic", "barrier", "branch")
#: collector units of an SM, and units behind them, that the simulation keeps in one word
MOST_UNITS = 64
#: B of a sector in pipelines before the banks of an L1
SECTOR = 32


def check_rules(checked: Checked, pipes: dict[str, Pipe], ops: dict[str, Op]) -> None:
    """Add every contradiction between the checked values to `checked`. Values that were wrong alone are skipped."""
    _sm(checked)
    _shared(checked)
    _carveouts(checked)
    for cache in ("l1", "l2"):
        _cache(checked, cache)
    if checked.get("l1", "size"):
        _at_most(checked, ("l1", "latency"), ("l2", "latency"))
    if checked.get("l2", "size"):
        _at_most(checked, ("l2", "latency"), ("dram", "latency"))
    _at_most(checked, ("host", "pageable_bandwidth"), ("host", "link_bandwidth"), lambda rate: f"{rate / 1e9:g} GB/s")
    _pipes(checked, pipes)
    _ops(checked, ops)
    _queues(checked, pipes, ops)
    _collectors(checked, pipes)
    _pipelines(checked)
    _constants(checked)
    _crossbar(checked)
    _slices(checked)


def _crossbar(checked: Checked) -> None:
    """Requests pass a crossbar one by one, as they leave the miss queue of an L1."""
    queue: Key = ("l1", "miss_queue")
    if checked.get("interconnect", "crossbar") and checked.get(*queue) == 0:
        text = "interconnect.crossbar is not simulated without l1.miss_queue"
        checked.contradiction([("interconnect", "crossbar"), queue], text, "l1.miss_queue = 2 or more")


def _slices(checked: Checked) -> None:
    """A polynomial needs a power of two of slices, and channels that have equally many."""
    keys: list[Key] = [("l2", "slices"), ("l2", "slice_index"), ("dram", "channels")]
    slices, index, channels = checked.get(*keys[0]), checked.get(*keys[1]), checked.get(*keys[2])
    if index != "polynomial" or not slices or not channels:
        return
    if slices & (slices - 1):
        checked.contradiction(keys[:2], f"l2.slices ({slices}) is no power of two, which a polynomial needs")
    elif slices % channels:
        checked.contradiction(keys, f"dram.channels ({channels}) does not divide l2.slices ({slices})")


def _at_most(checked: Checked, low: Key, high: Key, show: Callable[[float], str] = str) -> None:
    """Rule: the value at `low` is at most the value at `high`. Says nothing when one is missing or `high` is zero."""
    small, large = checked.get(*low), checked.get(*high)
    if small is not None and large and small > large:
        text = f"{'.'.join(low)} ({show(small)}) is more than {'.'.join(high)} ({show(large)})"
        checked.contradiction([low, high], text)


def _sm(checked: Checked) -> None:
    threads, warps = ("sm", "max_threads_per_block"), ("sm", "max_warps")
    count, limit = checked.get(*threads), checked.get(*warps)
    if count and limit and count > 32 * limit:
        text = f"sm.max_threads_per_block ({count}) is more than sm.max_warps * 32 ({32 * limit})"
        checked.contradiction([threads, warps], text)
    file, most, unit = ("sm", "registers"), ("sm", "max_registers_per_thread"), ("sm", "register_unit")
    size, each, grain = checked.get(*file), checked.get(*most), checked.get(*unit)
    if size and each and 32 * each > size:
        text = f"a warp with sm.max_registers_per_thread ({each}) needs {32 * each} registers, sm.registers is {size}"
        checked.contradiction([most, file], text)
    if size and grain and size % grain:
        checked.contradiction([unit, file], f"sm.register_unit ({grain}) does not divide sm.registers ({size})")
    _at_most(checked, ("sm", "registers_per_block"), file)
    _at_most(checked, ("sm", "schedulers"), warps)
    _at_most(checked, ("sm", "warp_granularity"), warps)


def _shared(checked: Checked) -> None:
    _at_most(checked, ("shared", "per_block"), ("shared", "size"), format_bytes)
    keys = [("shared", key) for key in ("reserved", "per_block", "size")]
    reserved, block, size = (checked.get(*key) for key in keys)
    if size and block is not None and reserved and block <= size < block + reserved:
        total = format_bytes(block + reserved)
        text = f"shared.per_block + shared.reserved ({total}) is more than shared.size ({format_bytes(size)})"
        checked.contradiction(keys, text)


def _carveouts(checked: Checked) -> None:
    key = ("shared", "carveouts")
    carveouts, unified = checked.get(*key), checked.get("l1", "unified")
    if not carveouts or unified is None:
        return
    if unified == 0:
        text = "shared.carveouts needs l1.unified, the memory that they are carved from"
        checked.contradiction([key, ("l1", "unified")], text)
        return
    if max(carveouts) > unified:
        text = f"the carve-out {format_bytes(max(carveouts))} is more than l1.unified ({format_bytes(unified)})"
        checked.contradiction([key, ("l1", "unified")], text)
    size = checked.get("shared", "size")
    if size is not None and size != max(carveouts):
        texts = format_bytes(size), format_bytes(max(carveouts))
        text = f"shared.size ({texts[0]}) is not the largest of shared.carveouts ({texts[1]})"
        checked.contradiction([("shared", "size"), key], text)


def _cache(checked: Checked, name: str) -> None:
    size, line, sector, ways = (checked.get(name, key) for key in ("size", "line", "sector", "ways"))
    if line and sector and line % sector:
        text = f"{name}.sector ({sector} B) does not divide {name}.line ({line} B)"
        checked.contradiction([(name, "sector"), (name, "line")], text)
    tag_sets = checked.get(name, "tag_sets") or 0
    if tag_sets == 1 or tag_sets & (tag_sets - 1):
        checked.contradiction(
            [(name, "tag_sets")], f"{name}.tag_sets is {tag_sets}; expected 0 or a power of two from 2 on"
        )
    unified = checked.get(name, "unified") or 0
    if size and unified and size > unified:
        text = f"{name}.size ({format_bytes(size)}) is more than {name}.unified ({format_bytes(unified)})"
        checked.contradiction([(name, "size"), (name, "unified")], text)
    if not (line and ways):
        return
    sizes = [unified - each for each in checked.get("shared", "carveouts") or ()] if unified else []
    uneven = [each for each in (size or 0, *sizes) if each > 0 and each % (line * ways)]
    if uneven:
        text = f"{name}.ways * {name}.line ({line * ways} B) does not divide the size {format_bytes(uneven[0])}"
        checked.contradiction([(name, key) for key in ("ways", "line", "size")], text)


def _pipes(checked: Checked, pipes: dict[str, Pipe]) -> None:
    schedulers = checked.get("sm", "schedulers")
    for pipe in pipes.values():
        if pipe.scope == "scheduler" and schedulers and pipe.lanes % schedulers and schedulers % pipe.lanes:
            text = f"pipes.{pipe.name}.lanes ({pipe.lanes}) cannot be shared out to sm.schedulers ({schedulers})"
            hint = 'scope = "sm" describes lanes that all schedulers share'
            checked.contradiction([("pipes", pipe.name, "lanes"), ("sm", "schedulers")], text, hint)


def _ops(checked: Checked, ops: dict[str, Op]) -> None:
    """Every operation runs on a pipe that is there. One error a missing pipe, or at the operation's own table."""
    listed = checked.get("pipes")
    if listed is None:
        return
    missing: dict[str, list[str]] = {}
    for op in ops.values():
        if op.pipe in listed:
            continue
        if checked.get("op", op.name, "pipe"):
            text = f'op."{op.name}": there is no pipe "{op.pipe}" in [pipes]'
            checked.problem(("op", op.name, "pipe"), text, did_you_mean(op.pipe, listed))
        else:
            missing.setdefault(op.pipe, []).append(op.name)
    for pipe, names in missing.items():
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        checked.problem(("pipes",), f'[pipes] lacks "{pipe}", on which the ISA runs {len(names)} operations: {shown}')


def _queues(checked: Checked, pipes: dict[str, Pipe], ops: dict[str, Op]) -> None:
    """A queue stands before one unit of the SM, on which nothing runs but operations that compute."""
    for pipe in pipes.values():
        if not pipe.queue:
            continue
        keys = [("pipes", pipe.name, key) for key in ("queue", "scope", "units", "collectors")]
        if pipe.scope != "sm" or pipe.units != 1 or pipe.collectors:
            text = f"pipes.{pipe.name}.queue ({pipe.queue}) stands before one unit that all schedulers share"
            checked.contradiction(keys, text, 'scope = "sm", units = 1 and no collectors')
        other = [op.name for op in ops.values() if op.pipe == pipe.name and op.name.split(".")[0] in NO_QUEUE]
        if other:
            text = f"pipes.{pipe.name}.queue ({pipe.queue}) is for operations that compute, not {', '.join(other[:3])}"
            checked.contradiction(keys[:1], text)


def _constants(checked: Checked) -> None:
    """Constants that pass the load/store unit have no cache of their own here."""
    size, queued = checked.get("constants", "size"), checked.get("memory", "constant_queued")
    if size and queued:
        text = "constants.size is not simulated together with memory.constant_queued"
        checked.contradiction([("constants", "size"), ("memory", "constant_queued")], text)


def _collectors(checked: Checked, pipes: dict[str, Pipe]) -> None:
    """What is not simulated together with collector units, and an order of pipes that are not there or come twice."""
    order = checked.get("collectors", "order") or ()
    for name in dict.fromkeys(order):
        if name not in pipes:
            text = f'collectors.order: there is no pipe "{name}"'
            checked.problem(("collectors", "order"), text, did_you_mean(name, pipes))
        elif order.count(name) > 1:
            checked.problem(("collectors", "order"), f'collectors.order names "{name}" {order.count(name)} times')
    units, scope = ("collectors", "units"), ("collectors", "scope")
    own = [(("pipes", pipe.name, "collectors"), pipe.collectors) for pipe in pipes.values() if pipe.collectors]
    for pipe_key, number in own:
        if not (checked.get(*units) and checked.get(*scope) == "sm"):
            text = f"{'.'.join(pipe_key)} ({number}) is for collector units that all schedulers share"
            checked.contradiction([pipe_key], text, 'collectors.units = 1 or more and collectors.scope = "sm"')
    if not checked.get(*units):
        return
    if checked.get(*scope) == "sm":
        _shared_collectors(checked, pipes)
    others: list[tuple[tuple[str, ...], str]] = []
    if constants := checked.get("constants", "size"):
        others.append((("constants", "size"), format_bytes(constants)))
    if (policy := checked.get("sm", "policy")) == "gto_block":
        others.append((("sm", "policy"), f"'{policy}'"))
    others += [(("pipes", pipe.name, "queue"), str(pipe.queue)) for pipe in pipes.values() if pipe.queue]
    for key, value in others:
        text = f"collectors.units is not simulated together with {'.'.join(key)} = {value}"
        checked.contradiction([units, key], text)
    widest = max((pipe.units for pipe in pipes.values()), default=1)
    places = len(pipes) * (checked.get("sm", "schedulers") or 1) * widest
    if checked.get("collectors", "one_result") and places > MOST_UNITS:
        text = f"collectors.one_result: pipes * sm.schedulers * units of the widest pipe are {places}"
        checked.contradiction([("collectors", "one_result")], text, f"simulated are up to {MOST_UNITS}")


def _pipelines(checked: Checked) -> None:
    """What pipelines before the banks of the L1 are simulated with."""
    key = ("l1", "miss_queue")
    if not checked.get(*key):
        return
    line, sector, banks = (checked.get("l1", name) for name in ("line", "sector", "sector_banks"))
    if checked.get(*key) == 1:
        checked.contradiction([key], "l1.miss_queue is 1: a load needs a place more", "2 or more")
    needs: list[tuple[Key, bool, str]] = [
        (("collectors", "units"), bool(checked.get("collectors", "units")), "collectors.units = 1 or more"),
        (("l1", "sector_banks"), bool(line and sector and banks and line // sector % banks == 0),
         "as many sectors in a line as l1.sector_banks, or a multiple of that"),
        (("l1", "sector"), bool(sector and sector % SECTOR == 0), f"sectors of {SECTOR} B, or a multiple of that"),
        (("l1", "write"), checked.get("l1", "write") != "write-back", 'l1.write = "write-through" or "write-evict"'),
        (("memory", "requests_per_cycle"), checked.get("memory", "requests_per_cycle") == 1,
         "memory.requests_per_cycle = 1"),
        (("memory", "store_ack"), bool(checked.get("memory", "store_ack")), "memory.store_ack = true"),
    ]  # fmt: skip
    for other, holds, text in needs:
        if not holds:
            checked.contradiction([key, other], f"l1.miss_queue is not simulated without {text}")


def _shared_collectors(checked: Checked, pipes: dict[str, Pipe]) -> None:
    """Collector units that all schedulers share stand before units that all share."""
    others = [pipe.name for pipe in pipes.values() if pipe.scope != "sm"]
    if others:
        text = f"collectors.scope is 'sm', but each scheduler has its own units of {', '.join(others)}"
        checked.contradiction([("collectors", "scope"), *(("pipes", name, "scope") for name in others)], text)
    number = sum(pipe.collectors or checked.get("collectors", "units") or 0 for pipe in pipes.values())
    if number > MOST_UNITS:
        text = f"collectors.units and pipes.*.collectors are {number} in all pipes; simulated are up to {MOST_UNITS}"
        checked.contradiction([("collectors", "units")], text)
