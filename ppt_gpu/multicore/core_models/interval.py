"""Interval models of CPUs: Eyerman et al. (TOCS 2009, out of order) and Breughe et al. (ISPASS 2012, in order).

Blem's S-core model (`ppt_gpu.multicore.core_models.s_core`) is built on these. All counts are of the whole run; all
results cycles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ppt_gpu.common.errors import PptError
from ppt_gpu.models.base.steps import Step, Steps


@dataclass(frozen=True)
class Cycles:
    """A model's answer, and how it came about."""

    cycles: float
    steps: tuple[Step, ...]


def out_of_order(
    *,
    instructions: float,
    width: float,
    l1i_misses: float,
    l2i_misses: float,
    mispredicts: float,
    isolated_misses: float,
    l1i_penalty: float,
    memory_penalty: float,
    drain: float,
    front_end: float,
) -> Cycles:
    """C = N/D + (D-1)/(2D) m + m_iL1 c_iL1 + m_iL2 c_L2 + m_br (c_dr + c_fe) + m_dL2 c_L2, m the sum of all events.

    isolated_misses: long-latency load misses, those within one window counted once. Raises PptError for bad input.
    """
    _positive(width=width)
    _not_negative(
        instructions=instructions, l1i_misses=l1i_misses, l2i_misses=l2i_misses, mispredicts=mispredicts,
        isolated_misses=isolated_misses, l1i_penalty=l1i_penalty, memory_penalty=memory_penalty, drain=drain,
        front_end=front_end,
    )  # fmt: skip
    steps = Steps()
    steps.given("N", instructions, "instructions")
    steps.given("D", width, "dispatch width")
    events = l1i_misses + l2i_misses + mispredicts + isolated_misses
    steps.given("m", events, "miss events: instruction misses, mispredictions, isolated long-latency loads")
    total = steps("C_base", "{N} / {D}", instructions / width, unit="cycles")
    total += steps("C_ramp", "({D} - 1) / (2 x {D}) x {m}", (width - 1) / (2 * width) * events, unit="cycles")
    for symbol, count, cost, meaning in (
        ("iL1", l1i_misses, l1i_penalty, "first-level instruction misses"),
        ("iL2", l2i_misses, memory_penalty, "second-level instruction misses"),
        ("br", mispredicts, drain + front_end, "mispredicted branches, drain and front end"),
        ("dL2", isolated_misses, memory_penalty, "isolated long-latency loads"),
    ):
        steps.given(f"m_{symbol}", count, meaning)
        steps.given(f"c_{symbol}", cost, "", unit="cycles")
        total += steps(f"C_{symbol}", f"{{m_{symbol}}} x {{c_{symbol}}}", count * cost, unit="cycles")
    steps("C", "the sum of these", total, unit="cycles")
    return Cycles(total, tuple(steps.all))


def in_order(
    *,
    instructions: float,
    width: int,
    misses: Sequence[tuple[float, float]] = (),
    mispredicts: float = 0.0,
    front_end: float = 0.0,
    long_operations: Sequence[tuple[float, float]] = (),
    unit_dependences: Mapping[int, float] | None = None,
    long_dependences: Mapping[int, float] | None = None,
) -> Cycles:
    """T = N/W + P_miss + P_LL + P_dep.

    misses, long_operations: (how many, latency). A miss costs lat - (W-1)/(2W), a misprediction D_fe + (W-1)/(2W), a
    long operation (lat - 1) - (W-1)/(2W). Dependences by distance d < W: unit-latency producers cost ((W-d)/W)^2 each,
    long-latency ones (W-d)/W. Raises PptError for bad input.
    """
    _positive(width=width)
    _not_negative(instructions=instructions, mispredicts=mispredicts, front_end=front_end)
    half = (width - 1) / (2 * width)
    steps = Steps()
    steps.given("N", instructions, "instructions")
    steps.given("W", width, "issue width")
    total = steps("T_base", "{N} / {W}", instructions / width, unit="cycles")
    for symbol, kinds, off in (("P_miss", misses, half), ("P_LL", long_operations, 1 + half)):
        for count, latency in kinds:
            _not_negative(count=count, latency=latency)
        lost = sum(count * max(latency - off, 0.0) for count, latency in kinds)
        total += steps(symbol, f"sum of count x (latency - {off:g})", lost, unit="cycles")
    steps.given("m_br", mispredicts, "mispredicted branches")
    steps.given("D_fe", front_end, "front-end depth", unit="cycles")
    lost = mispredicts * (front_end + half)
    total += steps("P_br", "{m_br} x ({D_fe} + ({W} - 1) / (2 x {W}))", lost, unit="cycles")
    for symbol, power, table in (("P_dep", 2, unit_dependences), ("P_depLL", 1, long_dependences)):
        lost = sum(_dependence(width, distance, count, power) for distance, count in (table or {}).items())
        equation = f"sum over d < W of dependences(d) x ((W - d) / W)^{power}"
        total += steps(symbol, equation, lost, unit="cycles")
    steps("T", "the sum of these", total, unit="cycles")
    return Cycles(total, tuple(steps.all))


def _dependence(width: int, distance: int, count: float, power: int) -> float:
    if distance < 1 or not count >= 0:
        raise PptError(f"{count:g} dependences at distance {distance}: expected 0 or more at a distance of at least 1")
    return count * ((width - distance) / width) ** power if distance < width else 0.0


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise PptError(f"{name} is {value:g}; expected more than 0")


def _not_negative(**values: float) -> None:
    for name, value in values.items():
        if not value >= 0:
            raise PptError(f"{name} is {value:g}; expected 0 or more")
