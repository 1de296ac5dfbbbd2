"""The S-core model (Blem, chapter 4): T = T_computation + T_memory + T_control of one thread on one core.

Equation numbers are the dissertation's. Where it is silent or misprints, the corrected form is the default and
`literal` takes the printed one: Eq 4.7 (inverted), long-latency operations of in-order cores (printed: all of them
wait), and the floors of ports, divider and bandwidth, below which no run can be (the dissertation has none).

How micro-ops spread over execution ports, and what waiting for them costs (Blem, section 4.2.1, Algorithm 4.1).

A kind of micro-op is (how many, ports that may run it). Two ways to the load of the fullest port:

* `spread`: Algorithm 4.1. Micro-ops of one port are pinned; the others are spread again and again, one kind after
  another, each as evenly as its ports allow, until nothing moves.
* `fullest_load`: the best that any spreading can do, max over sets S of ports of
  (micro-ops that only ports of S can run) / |S|.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from ppt_gpu.common.errors import PptError
from ppt_gpu.models.base.steps import Step, Steps
from ppt_gpu.multicore.base.core import SCore
from ppt_gpu.multicore.base.operations import LOADS, STORES
from ppt_gpu.multicore.core_models.s_inputs import SInputs
from ppt_gpu.multicore.core_models.s_memory import load_latency, memory_time

Kind = tuple[float, tuple[int, ...]]
#: sweeps of Algorithm 4.1 after which it stops; each brings the loads closer by a constant factor
MAX_SWEEPS = 10_000


def spread(kinds: Sequence[Kind], ports: int) -> list[float]:
    """[ports] micro-ops on each port, by Algorithm 4.1. Raises PptError for a kind without a port."""
    _check(kinds, ports)
    load = [0.0] * ports
    movable: list[tuple[float, tuple[int, ...], list[float]]] = []
    for count, allowed in kinds:
        if len(allowed) == 1:
            load[allowed[0]] += count
        else:
            movable.append((count, allowed, [0.0] * len(allowed)))
    smallest = 1e-13 * sum(count for count, _ in kinds)
    for _ in range(MAX_SWEEPS):
        moved = 0.0
        for count, allowed, share in movable:
            for port, mine in zip(allowed, share, strict=True):
                load[port] -= mine
            level = _water_level(count, [load[port] for port in allowed])
            for at, port in enumerate(allowed):
                now = max(0.0, level - load[port])
                moved = max(moved, abs(now - share[at]))
                share[at] = now
                load[port] += now
        if moved <= smallest:
            break
    return load


def _water_level(count: float, loads: list[float]) -> float:
    """The height to which `count` fills the lowest of `loads`."""
    heights = sorted(loads)
    for filled, height in enumerate(heights, 1):
        level = (count + sum(heights[:filled])) / filled
        if filled == len(heights) or level <= heights[filled]:
            break
        assert height <= level
    return level


def fullest_load(kinds: Sequence[Kind], ports: int) -> float:
    """Micro-ops on the fullest port of the best spreading, by the formula over subsets of ports."""
    _check(kinds, ports)
    sets = [(count, frozenset(allowed)) for count, allowed in kinds]
    best = 0.0
    for size in range(1, ports + 1):
        for chosen in combinations(range(ports), size):
            inside = frozenset(chosen)
            best = max(best, sum(count for count, allowed in sets if allowed <= inside) / size)
    return best


def _check(kinds: Sequence[Kind], ports: int) -> None:
    for count, allowed in kinds:
        if not allowed or min(allowed) < 0 or max(allowed) >= ports or not count >= 0:
            raise PptError(f"{count:g} micro-ops for ports {list(allowed)}: expected ports 0 to {ports - 1}")


def arrival_rates(issue_width: float, ipc: float, share: Sequence[float], *, utilisation: bool = False) -> list[float]:
    """Eq 4.8: lambda_i = min(D, IPC_M) / D x p_i, micro-ops a cycle that want port i.

    With `utilisation`, min(D, IPC_M) x p_i: the share of cycles in which port i is busy. The printed form divides by D,
    so that six full ports give 1/6 each.
    """
    rate = min(issue_width, ipc)
    return [(rate if utilisation else rate / issue_width) * each for each in share]


def waits(rates: Sequence[float]) -> list[float]:
    """Eq 4.9: W_i = 1 / (1 - lambda_i) - 1, cycles that a micro-op waits for port i, an M/M/1 queue of rate 1.

    Raises PptError for a rate of 1 or more: the queue would grow without end.
    """
    for port, rate in enumerate(rates):
        if not 0 <= rate < 1:
            raise PptError(f"port {port} gets {rate:g} micro-ops a cycle; it can start fewer than 1")
    return [1 / (1 - rate) - 1 for rate in rates]


@dataclass(frozen=True)
class Options:
    literal: bool = False
    utilisation: bool = False  # of ports in Eq 4.8, see ports.arrival_rates
    cores: int = 1


@dataclass(frozen=True)
class STime:
    """A prediction for one S-core, or `cores` of them. Cycles are core cycles."""

    cycles: float
    time: float  # s
    parts: Mapping[str, float]  # cycles of one core by cause; they sum to its cycles
    steps: tuple[Step, ...]
    notes: tuple[str, ...]

    @property
    def limiter(self) -> str:
        """The largest part."""
        return max(self.parts, key=lambda name: self.parts[name])


def predict(inputs: SInputs, core: SCore, options: Options | None = None) -> STime:
    """The time of `inputs` on `core`. Raises PptError for more cores than the chip has, or none."""
    chosen = options or Options()
    if not 1 <= chosen.cores <= core.cores:
        raise PptError(f"{chosen.cores} cores of '{core.name}'; the chip has {core.cores}")
    steps = Steps()
    parts = _computation(inputs, core, chosen, steps)
    parts |= memory_time(inputs, core, steps)
    steps.given("N_mbr", inputs.N_mbr, "mispredicted branches")
    steps.given("L_dr", core.drain, "window drain", unit="cycles")
    steps.given("L_fe", core.front_end, "front end", unit="cycles")
    control = inputs.N_mbr * (core.drain + core.front_end)
    parts["branches"] = steps("T_control", "{N_mbr} x ({L_dr} + {L_fe})", control, unit="cycles")
    total = sum(parts.values())
    steps("T", "T_computation + T_memory + T_control", total, number="(4.2)", unit="cycles")
    if chosen.cores > 1:
        total = _parallel(total, inputs, chosen, steps)
    floor = 0.0 if chosen.literal else _bandwidth_floor(inputs, core, steps)
    if floor > total:
        parts["bandwidth"] = floor - total
        total = floor
    time = steps("t", f"cycles / {core.clock:g} Hz", total / core.clock, unit="s")
    return STime(total, time, parts, tuple(steps.all), inputs.notes)


def _parallel(total: float, inputs: SInputs, options: Options, steps: Steps) -> float:
    """Eq 2.1 with S_1 = 1 and S_inf = cores."""
    f, cores = steps.given("f", inputs.f_inf, "parallel share"), steps.given("cores", options.cores, "cores")
    return steps(
        "T_chip", "{T} x ((1 - {f}) + {f} / {cores})", total * (1 - f + f / cores), number="(2.1)", unit="cycles"
    )


def _bandwidth_floor(inputs: SInputs, core: SCore, steps: Steps) -> float:
    last = inputs.N_mL3 if core.l3 else inputs.N_mL2
    moved = steps("B", f"{last:g} misses of the last cache x b", last * core.line, unit="B")
    return steps("T_bandwidth", "{B} / BW_max x nu", moved / core.bandwidth * core.clock, unit="cycles")


def _latencies(inputs: SInputs, core: SCore, steps: Steps) -> dict[str, float]:
    """l_i of every class of operation: of loads with what the caches add."""
    loads = load_latency(inputs, core, steps)
    extra = core.vector_memory_cycles * inputs.simd_memory
    found = {}
    for name in inputs.n_i:
        latency = core.operations[name].latency
        if name in LOADS:
            latency += (loads if name != "local_load" else core.l1.latency) + extra
        elif name in STORES:
            latency += extra
        found[name] = latency
    return found


def _computation(inputs: SInputs, core: SCore, options: Options, steps: Steps) -> dict[str, float]:
    """T_computation in parts."""
    counts = _after_accelerator(inputs, steps)
    kinds: list[Kind] = [(count, uop) for name, count in counts.items() for uop in core.operations[name].uops]
    decoded = sum(count for count, _ in kinds)
    if inputs.N_M is None:
        n_m = steps("N_M", "sum of n_i x micro-ops of i", decoded, unit="micro-ops")
    else:
        n_m = steps.given("N_M", inputs.N_M, "measured micro-ops")
    scale = n_m / decoded if decoded else 1.0
    steps.given("D", core.issue_width, "issue width, micro-ops a cycle")
    latency = _latencies(inputs, core, steps)
    share = [load / decoded if decoded else 0.0 for load in spread(kinds, core.ports)]
    if core.out_of_order:
        parts = _out_of_order(inputs, core, options, counts, latency, n_m, decoded, share, steps)
    else:
        parts = _in_order(inputs, core, options, counts, latency, n_m, share, steps)
    if not options.literal:
        _floors(parts, counts, core, fullest_load(kinds, core.ports) * scale, steps)
    if inputs.accel_calls:
        cost = inputs.accel_calls * inputs.accel_latency
        parts["accelerator"] = steps("T_accel", "calls x latency", cost, unit="cycles")
    return parts


def _after_accelerator(inputs: SInputs, steps: Steps) -> dict[str, float]:
    """n_i without the operations that an accelerator takes over, an even share of each class."""
    keep = 1 - inputs.N_accel / inputs.operations
    if inputs.N_accel:
        steps.given("N_accel", inputs.N_accel, "operations that the accelerator takes over")
    return {name: count * keep for name, count in inputs.n_i.items()}


def _out_of_order(
    inputs: SInputs,
    core: SCore,
    options: Options,
    counts: Mapping[str, float],
    latency: Mapping[str, float],
    n_m: float,
    decoded: float,
    share: list[float],
    steps: Steps,
) -> dict[str, float]:
    """T = N_M / IPC_M, IPC_M = min(D, muLP / l_mu); then again with what waiting for ports adds to l_mu."""
    steps.given("muLP", inputs.ILP, "micro-op level parallelism = ILP (4.5)")
    total = sum(counts[name] * latency[name] for name in counts)
    l_mu = steps("l_mu", "sum of n_i x l_i / micro-ops", total / decoded if decoded else 1.0, unit="cycles")
    ipc = steps("IPC_M", "min({D}, {muLP} / {l_mu})", min(core.issue_width, inputs.ILP / max(l_mu, 1e-9)))
    base = steps("T_base", "{N_M} / {IPC_M}", n_m / ipc, unit="cycles")
    slowest = _longest_wait(core, options, ipc, share, steps)
    now = steps("l_mu'", "{l_mu} + {W_max}", l_mu + slowest, number="(4.10)", unit="cycles")
    rate = steps("IPC_M'", "min({D}, {muLP} / {l_mu'})", min(core.issue_width, inputs.ILP / max(now, 1e-9)))
    computed = steps("T_computation", "{N_M} / {IPC_M'}", n_m / rate, unit="cycles")
    return {"issue": base, "contention": computed - base}


def _in_order(
    inputs: SInputs,
    core: SCore,
    options: Options,
    counts: Mapping[str, float],
    latency: Mapping[str, float],
    n_m: float,
    share: list[float],
    steps: Steps,
) -> dict[str, float]:
    """Eq 4.3, with Eqs 4.6 and 4.7 for the penalty of dependences."""
    width = core.issue_width
    issue = steps("T_issue", "{N_M} / {D}", n_m / width, number="(4.3)", unit="cycles")
    steps.given("ILP_w2", inputs.ILP_w2, "ILP with a window of 2")
    if options.literal:
        p_dep = steps("p_dep", "{ILP_w2} - 1", inputs.ILP_w2 - 1, number="(4.7)")
    else:
        p_dep = steps("p_dep", "2 - {ILP_w2}", 2 - inputs.ILP_w2, number="(4.7)")
    steps("N_dep", "{p_dep} x {N_M}", p_dep * n_m)
    lost = p_dep * n_m * (width - 1) / width
    dependence = steps("P_d x N_d", "{N_dep} x ({D} - 1) / {D}", lost, number="(4.6)", unit="cycles")
    long = sum(count * _exposed(core, name, latency[name], p_dep, options) for name, count in counts.items())
    text = "sum of n_i x (l_i - 1)" + ("" if options.literal else " x p_dep, or their blocking time")
    long = steps("P_L x N_L", text, long, number="(4.3)", unit="cycles")
    ipc = steps("IPC_M", "{N_M} / (T_issue + P_d x N_d + P_L x N_L)", n_m / max(issue + dependence + long, 1e-9))
    slowest = _longest_wait(core, options, ipc, share, steps)
    contention = steps("T_contention", "{N_M} x {W_max} / {D}", n_m * slowest / width, unit="cycles")
    return {"issue": issue, "dependences": dependence, "long operations": long, "contention": contention}


def _exposed(core: SCore, name: str, latency: float, p_dep: float, options: Options) -> float:
    """Cycles that an in-order core waits for an operation: for its result, or for its unit where it blocks it."""
    if options.literal:
        return max(latency - 1, 0.0)
    return max(p_dep * (latency - 1), core.operations[name].blocking - 1, 0.0)


def _longest_wait(core: SCore, options: Options, ipc: float, share: list[float], steps: Steps) -> float:
    """W_max of Eqs 4.8 and 4.9; 0 for a core that issues one micro-op a cycle, where nothing contends."""
    if core.issue_width == 1 or not any(share):
        return steps("W_max", "one micro-op a cycle", 0.0, unit="cycles")
    fullest = max(share)
    steps.given("p_max", fullest, "share of the micro-ops on the fullest port")
    rate = ipc if options.literal else min(ipc, 0.99 / fullest)
    width = float(core.issue_width)
    highest = max(arrival_rates(width, rate, share, utilisation=options.utilisation))
    text = "min({D}, {IPC_M}) x {p_max}" if options.utilisation else "min({D}, {IPC_M}) / {D} x {p_max}"
    steps("lambda_max", text, highest, number="(4.8)")
    return steps("W_max", "1 / (1 - {lambda_max}) - 1", max(waits([highest])), number="(4.9)", unit="cycles")


def _floors(parts: dict[str, float], counts: Mapping[str, float], core: SCore, fullest: float, steps: Steps) -> None:
    """The fullest port starts one micro-op a cycle; operations that block their unit run one after another."""
    blocked = sum(count * core.operations[name].blocking for name, count in counts.items())
    floor = max(steps("T_port", "micro-ops on the fullest port (Algorithm 4.1)", fullest, unit="cycles"), blocked)
    if blocked:
        steps("T_unit", "sum of n_i x blocking time of i", blocked, unit="cycles")
    missing = floor - sum(parts.values())
    if missing > 0:
        parts["ports"] = missing
