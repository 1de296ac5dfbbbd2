"""How many shared-memory loads a cycle the collector units of GPGPU-Sim's QV100 hand to the load/store unit.

`python hardware/tools/collectors.py` prints it for the inner loop of a product in shared memory (two loads, then a
multiply-add that waits for both), with what could hold the loads up: few collectors, shared with the multiply-adds,
and slots before them that are served oldest first over all schedulers. It shows that none of them does: what the
reference takes longer for sgemm32 (validation/RESULTS.md) has another cause.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SCHEDULERS = 4
STEPS = 32  # of the inner loop
READ = {"load": 1, "fma": 3}  # register operands, one a half cycle
LOAD_LATENCY, FMA_LATENCY = 25, 5
NEVER = 1 << 30


@dataclass(frozen=True)
class Front:
    """What stands between the four schedulers and the load/store unit."""

    collectors: int = 2  # of a scheduler, for all its instructions
    oldest_first: bool = True  # an instruction that finds no collector holds up those of other schedulers
    warps: int = 8  # of a scheduler


@dataclass
class Warp:
    """A warp in the loop: the next instruction, and when its results are there."""

    at: int = 0
    loads: int = 0  # issued, not yet with the load/store unit
    loaded: int = 0  # cycle in which the last of them has its data
    fma: int = 0  # cycle in which the last multiply-add is done

    def next(self) -> str:
        return ("load", "load", "fma")[self.at % 3] if self.at < 3 * STEPS else "end"

    def ready(self, cycle: int) -> bool:
        return self.next() == "load" or (self.loads == 0 and max(self.loaded, self.fma) <= cycle)


@dataclass
class Instruction:
    age: int
    kind: str
    warp: Warp
    reads: int = 0

    def __post_init__(self) -> None:
        self.reads = READ[self.kind]


@dataclass
class Scheduler:
    """Its warps in turn, one slot for each kind before the collectors, one for loads behind them."""

    warps: list[Warp]
    last: int = 0
    before: dict[str, Instruction] = field(default_factory=dict)
    collecting: list[Instruction] = field(default_factory=list)
    behind: Instruction | None = None

    def issue(self, cycle: int, age: int) -> bool:
        for step in range(1, len(self.warps) + 1):
            number = (self.last + step) % len(self.warps)
            warp = self.warps[number]
            kind = warp.next()
            if kind == "end" or kind in self.before or not warp.ready(cycle):
                continue
            self.before[kind] = Instruction(age, kind, warp)
            warp.loads += kind == "load"
            warp.fma = NEVER if kind == "fma" else warp.fma
            warp.at += 1
            self.last = number
            return True
        return False

    def dispatch(self, cycle: int) -> None:
        """Hand over the first instruction with all operands whose way is free; the others read one more."""
        for done in self.collecting:
            if done.reads <= 0 and (done.kind == "fma" or self.behind is None):
                self.collecting.remove(done)
                if done.kind == "load":
                    self.behind = done
                else:
                    done.warp.fma = cycle + FMA_LATENCY
                break
        for instruction in self.collecting:
            instruction.reads -= 1


def loads_a_cycle(front: Front) -> float:
    """Shared-memory loads that the load/store unit takes in a cycle; it could take one."""
    schedulers = [Scheduler([Warp() for _ in range(front.warps)]) for _ in range(SCHEDULERS)]
    cycle = age = 0
    while any(warp.next() != "end" for scheduler in schedulers for warp in scheduler.warps):
        waiting = [s for s in schedulers if s.behind is not None]
        if waiting:
            oldest = min(waiting, key=lambda s: s.behind.age if s.behind else NEVER)
            assert oldest.behind is not None
            oldest.behind.warp.loads -= 1
            oldest.behind.warp.loaded = cycle + LOAD_LATENCY
            oldest.behind = None
        for _ in range(2):  # the simulator steps its collectors twice a cycle
            for scheduler in schedulers:
                scheduler.dispatch(cycle)
            for kind in ("fma", "load"):
                _collect(schedulers, kind, front)
        for scheduler in schedulers:
            age += scheduler.issue(cycle, age)
        cycle += 1
    return 2 * STEPS * SCHEDULERS * front.warps / cycle


def _collect(schedulers: list[Scheduler], kind: str, front: Front) -> None:
    """Instructions of a kind enter free collectors, the oldest first."""
    for scheduler in sorted((s for s in schedulers if kind in s.before), key=lambda s: s.before[kind].age):
        if len(scheduler.collecting) < front.collectors:
            scheduler.collecting.append(scheduler.before.pop(kind))
        elif front.oldest_first:
            return


def main() -> None:
    for front in (Front(), Front(oldest_first=False), Front(collectors=8), Front(collectors=1), Front(warps=4)):
        print(f"{loads_a_cycle(front):.2f} loads a cycle  {front}")


if __name__ == "__main__":
    main()
