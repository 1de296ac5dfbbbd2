"""The terminal report: time first and what limits it, then the evidence, last how the number was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ppt_gpu.common.units import format_bytes, format_count, format_frequency, format_rate, format_time
from ppt_gpu.ptx.linking.mangling import short_name
from ppt_gpu.report.result.result import LaunchResult, Result, Suggestion
from ppt_gpu.report.text.sections import Section
from ppt_gpu.report.text.tables import BAR, SHORT_BAR, Bar, shown, table, whole

#: widths below which tables abbreviate, and leave out what another column says, too
MEDIUM, NARROW = 100, 76


def render(result: Result, *, width: int = 110, color: bool = False, more: Sequence[Section] = ()) -> str:
    """The report as text, `width` columns wide, with ANSI colours if `color`, and with `more` sections."""
    return shown(report(result, width, more), width=width, color=color)


def report(result: Result, width: int = 110, more: Sequence[Section] = ()) -> Group:
    """All sections as rich renderables, for so many columns."""
    parts: list[RenderableType] = [_headline(result)]
    if len(result.launches) > 1 or result.copies or _times(result.main):
        parts += [_title("Application"), _application(result)]
    for number, launch in enumerate(result.launches, 1):
        if len(result.launches) > 1:
            parts.append(_title(f"Launch {number}: {short_name(launch.kernel)}"))
        parts += _launch(launch, width, more)
    if result.advice is not None:
        parts += [_title("Advice, each line simulated"), _indent(_advice(result.advice))]
    return Group(*parts)


def _advice(suggestions: Sequence[Suggestion]) -> RenderableType:
    rows = table(("gain", "right"), ("time", "right"), ("by", "left"))
    for one in suggestions:
        rows.add_row(f"{one.gain:.2f}x", format_time(one.time), f"{one.text}{f' ({one.remark})' if one.remark else ''}")
    return rows if suggestions else Text("nothing that was simulated helps by 2 % or more")


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def _indent(item: RenderableType) -> Padding:
    return Padding(item, (0, 0, 0, 2))


def _number(launch: LaunchResult, tag: str) -> float:
    return float(launch.value(tag))


def _headline(result: Result) -> Group:
    main = result.main
    text = Text(f"{result.workload} on {result.gpu}: ", style="bold")
    text.append(format_time(result.time), style="bold green")
    limits = Text("limited by ", style="bold")
    limits.append(str(main.value("limiter")), style="bold yellow")
    return Group(text, limits)


def _application(result: Result) -> Padding:
    rows = table(("step", "left"), ("time", "right"), ("share", "right"))
    launches = [
        (f"launch {short_name(launch.kernel)}{_times(launch)}", _kernel_time(launch)) for launch in result.launches
    ]
    inward = [copy for copy in result.copies if not copy[0].startswith("copy out")]
    outward = [copy for copy in result.copies if copy[0].startswith("copy out")]
    overhead = result.time - sum(time for _, time in [*launches, *result.copies])
    steps = [*inward, *launches, ("launch overhead that nothing hides", max(overhead, 0.0)), *outward]
    for name, time in steps:
        rows.add_row(name, format_time(time), f"{time / result.time:.1%}" if result.time else "")
    return _indent(rows)


def _kernel_time(launch: LaunchResult) -> float:
    """All runs of the launch, s, without launch overhead."""
    return _number(launch, "kernel.cycles") / _number(launch, "gpu.clock") * int(launch.extra.get("repeat", 1))


def _times(launch: LaunchResult) -> str:
    repeat = int(launch.extra.get("repeat", 1))
    return f", {repeat} times" if repeat > 1 else ""


def _launch(launch: LaunchResult, width: int, more: Sequence[Section]) -> list[RenderableType]:
    parts: list[RenderableType] = [_indent(_facts(launch))]
    parts += [_title("Bounds and speed of light"), _indent(_bounds(launch, width))]
    parts += [_title("Roofline and Little's law"), _indent(_lines(launch.analysis))]
    parts += [_title("Warp cycles by reason"), _indent(_stalls(launch))]
    parts += [_title("Occupancy"), _indent(_occupancy(launch))]
    parts += [_title("Memory"), _indent(_memory(launch))]
    if launch.hot:
        parts += [_title("Hot lines"), _indent(_hot(launch, width))]
    for section in more:
        found = section(launch, width)
        if found is not None:
            parts += [_title(found[0]), _indent(found[1])]
    parts += [_title("How this number was made"), _indent(_assumptions(launch))]
    return parts


def _facts(launch: LaunchResult) -> Table:
    rows = table(("", "left"), ("", "left"), header=False)
    extra = launch.extra
    clock = _number(launch, "gpu.clock")
    overhead = _number(launch, "kernel.launch_overhead")
    cycles = _number(launch, "kernel.cycles")
    rows.add_row("kernel", f"{short_name(launch.kernel)}  grid {_dim(extra['grid'])}  block {_dim(extra['block'])}")
    rows.add_row(
        "time",
        f"{format_time(_number(launch, 'kernel.time'))} = {format_count(cycles)} cycles at "
        f"{format_frequency(clock)} + {format_time(overhead)} launch overhead",
    )
    rows.add_row("expected error", str(extra["expected_error"]))
    rows.add_row(
        "work",
        f"{format_count(_number(launch, 'kernel.thread_instructions'))} thread instructions, "
        f"{format_count(_number(launch, 'kernel.warp_instructions'))} warp instructions, "
        f"{_number(launch, 'sm.ipc'):.3g} per cycle and SM",
    )
    if any(item.tag == "blocks.surveyed" for item in launch.metrics):
        rows.add_row("blocks", _blocks(launch))
    flops = _number(launch, "roofline.flops")
    if flops:
        rows.add_row(
            "arithmetic",
            f"{format_rate(_number(launch, 'roofline.achieved'), 'FLOP/s')} of "
            f"{format_rate(_number(launch, 'roofline.attainable'), 'FLOP/s')} attainable "
            f"(roofline at {_intensity(launch)})",
        )
    return rows


def _intensity(launch: LaunchResult) -> str:
    value = launch.value("roofline.intensity")
    return value if isinstance(value, str) else f"{value:.3g} FLOP/B"


def _blocks(launch: LaunchResult) -> str:
    """How many blocks were looked at, and how different they were."""
    surveyed, total = _number(launch, "blocks.surveyed"), _number(launch, "grid.blocks")
    work, memory = _number(launch, "blocks.variation"), _number(launch, "blocks.memory_variation")
    looked = "all" if surveyed == total else f"{format_count(surveyed)} of {format_count(total)}"
    if work == memory == 0:
        return f"{looked} looked at: all do the same work"
    kinds, shares = int(_number(launch, "blocks.kinds")), launch.value("blocks.shares")
    error = _number(launch, "blocks.sampling_error")
    return (
        f"{looked} looked at: {format_count(_number(launch, 'blocks.warp_instructions'))} warp instructions on average"
        f"{f' (standard error {error:.2%})' if error else ''}, varying by {work:.1%}, memory sectors by {memory:.1%}; "
        + (f"{kinds} kinds of blocks: {shares}" if kinds > 1 else "1 kind of blocks")
    )


def _dim(value: list[int] | tuple[int, ...]) -> str:
    return "x".join(str(size) for size in value)


def _bounds(launch: LaunchResult, width: int) -> Table:
    cycles = _number(launch, "kernel.cycles")
    bars = () if width < NARROW else (("", "left"),)
    unit = " cycles" if width >= MEDIUM else ""
    least = "at least" if unit or not bars else "cycles at least"
    rows = table(("resource", "left"), ("used", "right"), *bars, (least, "right"), ("because", "left"))
    whole(rows, "resource", "used", least)
    for bound in sorted(launch.bounds, key=lambda bound: -bound.cycles):
        share = bound.cycles / cycles if cycles else 0.0
        if share < 0.005:
            continue
        bar = (Bar(share, BAR if unit else SHORT_BAR),) if bars else ()
        rows.add_row(bound.resource, f"{share:.0%}", *bar, format_count(bound.cycles) + unit, bound.terms)
    return rows


def _stalls(launch: LaunchResult) -> Table:
    rows = table(("reason", "left"), ("share", "right"), ("", "left"))
    for reason, share in sorted(launch.stalls, key=lambda item: -item[1]):
        if share >= 0.001:
            rows.add_row(reason, f"{share:.1%}", Bar(share))
    return rows


def _occupancy(launch: LaunchResult) -> Table:
    rows = table(("", "left"), header=False)
    extra = launch.extra
    rows.add_row(
        f"{launch.value('occupancy.blocks_per_sm')} blocks = {launch.value('occupancy.warps_per_sm')} warps per SM "
        f"({_number(launch, 'occupancy.fraction'):.0%}), limited by {launch.value('occupancy.limiter')}; "
        f"{launch.value('kernel.registers')} registers per thread"
        f"{_register_source(extra)}, "
        f"{format_bytes(_number(launch, 'kernel.shared'))} shared memory per block"
    )
    if extra.get("next_step"):
        rows.add_row(f"next step: {extra['next_step']}")
    rows.add_row(
        f"{format_count(_number(launch, 'grid.blocks'))} blocks on {launch.value('grid.active_sms')} SMs, "
        f"at most {extra['blocks_per_sm_max']} on one"
    )
    return rows


def _register_source(extra: Mapping[str, Any]) -> str:
    if extra.get("registers_estimated"):
        return " (estimated)"
    return f" ({extra['register_source']})" if extra.get("register_source") else ""


def _memory(launch: LaunchResult) -> Table:
    rows = table(("level", "left"), ("traffic", "right"), ("throughput", "right"), ("hit rate", "right"))
    seconds = _number(launch, "kernel.cycles") / _number(launch, "gpu.clock")

    def row(name: str, count: float, hits: str) -> None:
        rows.add_row(name, format_bytes(count), format_rate(count / seconds) if seconds else "", hits)

    l1 = launch.value("memory.l1_hit_rate")
    rows.add_row("L1", "", "", _rate(l1))
    row("L2", _number(launch, "memory.l2_bytes"), _rate(launch.value("memory.l2_hit_rate")))
    row("DRAM read", _number(launch, "memory.dram_read_bytes"), "")
    row("DRAM write", _number(launch, "memory.dram_write_bytes"), "")
    passes = launch.value("shared.passes_per_access")
    if passes != "none":
        rows.add_row("shared", f"{float(passes):.3g} passes per access", "", "")
    return rows


def _rate(value: float | int | str) -> str:
    return value if isinstance(value, str) else f"{value:.1%}"


def _hot(launch: LaunchResult, width: int) -> Table:
    issues = () if width < NARROW else (("issued", "right"),)
    rows = table(("line", "right"), ("warp cycles", "right"), *issues, ("mostly", "left"), ("source", "left"))
    whole(rows, "line", "warp cycles", "issued", "mostly")
    total = sum(line.warp_cycles for line in launch.hot) or 1
    cycles = int(launch.extra.get("warp_cycles", total)) or 1
    for line in launch.hot:
        issued = (format_count(line.issued),) if issues else ()
        share = f"{line.warp_cycles / cycles:.1%}"
        rows.add_row(str(line.line), share, *issued, line.reason, line.text.strip())
    return rows


def _assumptions(launch: LaunchResult) -> Table:
    return _lines([*launch.assumptions, *(f"warning: {text}" for text in launch.warnings)])


def _lines(lines: Sequence[str]) -> Table:
    """A list whose long lines hang under their own beginning."""
    rows = table(("", "left"), ("", "left"), header=False)
    rows.padding = (0, 1, 0, 0)
    for line in lines:
        rows.add_row("-", line)
    return rows
