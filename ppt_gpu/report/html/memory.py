"""The memory chart: from the warps of all SMs to DRAM, with traffic, rates and hit rates on the way."""

from __future__ import annotations

from ppt_gpu.common.units import format_bytes, format_rate
from ppt_gpu.report.html.tags import Markup, bar, join, tag
from ppt_gpu.report.result.detail import Detail
from ppt_gpu.report.result.result import LaunchResult
from ppt_gpu.report.text.numbers import metric_text, percent


def memory(launch: LaunchResult, detail: Detail) -> Markup:
    """Boxes and links in a row, on a narrow page one below the other."""
    moved, roofs = detail.traffic, detail.roofs
    used = {
        level.name: level.bytes / roofs.seconds / level.bandwidth
        for level in roofs.levels
        if roofs.seconds and level.bandwidth
    }
    active = metric_text(launch, "grid.active_sms")
    whole = (
        _box("Warps", active),
        _link("loads look up", "", moved.l1, 0.0, roofs.seconds, used.get("L1")),
        _box("L1", _hits(launch, "memory.l1_hit_rate")),
        _link("read", "written", moved.l2_read, moved.l2_write, roofs.seconds, used.get("L2")),
        _box("L2", _hits(launch, "memory.l2_hit_rate")),
        _link("read", "written", moved.dram_read, moved.dram_write, roofs.seconds, used.get("DRAM")),
        _box("DRAM", metric_text(launch, "memory.dram_throughput")),
    )
    chain = tag("ol", *whole, class_="chain", aria_label="From the warps to DRAM")
    return join(chain, _shared(detail))


def _box(name: str, more: str) -> Markup:
    return tag("li", tag("strong", name), tag("span", more), class_="box")


def _hits(launch: LaunchResult, tag_of_rate: str) -> str:
    found = launch.value(tag_of_rate)
    return "not looked up" if isinstance(found, str) else f"hit rate {found:.1%}"


def _link(reads: str, writes: str, read: float, written: float, seconds: float, used: float | None) -> Markup:
    lines = [tag("span", f"{format_bytes(read)} {reads}")]
    if written:
        lines.append(tag("span", f"{format_bytes(written)} {writes}"))
    rate = format_rate((read + written) / seconds) if seconds else ""
    share = f", {percent(used)} of peak" if used is not None else ""
    arrow = tag("span", "⟷" if written else "⟵", class_="arrow", aria_hidden="true")
    strength = [bar(used, "bar full" if used >= 0.75 else "bar")] if used is not None else []
    return tag("li", *lines, arrow, tag("span", f"{rate}{share}", class_="note"), *strength, class_="link")


def _shared(detail: Detail) -> Markup:
    moved = detail.traffic
    if not moved.shared_accesses:
        return tag("p", "The kernel does not use shared memory.", class_="note")
    passes = moved.shared_passes / moved.shared_accesses
    return tag(
        "p",
        f"Shared memory: {moved.shared_accesses:,.0f} accesses of warps; bank passes per access {passes:.3g} "
        "(without conflicts 1 for words of 4 B, up to 4 for 16 B; twice that on Turing).",
    )
