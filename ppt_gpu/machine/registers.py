"""Registers a thread needs where nobody says it: how many ptxas would use.

ptxas schedules as if it had, for each thread, the registers of an SM shared out to as many threads as fit it, so that
registers never limit the occupancy of a kernel that can do with those: 64 on sm_75 (1,024 threads), 40 on sm_86,
sm_89 and sm_120 (1,536), 32 on the others (2,048). It takes them for loads in flight, and exceeds them only where
more values are live in any order; then it has all that cost no further warp of a scheduler. Of few warps it gives up
one where the others gain more: where loads that wait for registers, one after another, would keep each warp longer.
Told by the registers that ptxas 13.0 gives the kernels of this repository (`ppt-gpu validate isa` holds ours against
them) and 200 products of CLTune's xgemm, and ptxas 11.8 some of them on sm_35 and sm_70.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from ppt_gpu.machine.scheduling.list_scheduler import expected_latency
from ppt_gpu.ptx.linking.linked import LinkedKernel
from ppt_gpu.ptx.linking.liveness import ALLOCATION_UNIT, as_allocated, estimate_registers, most_allowed
from ppt_gpu.ptx.module import Kernel
from ppt_gpu.spec.gpu import Isa

if TYPE_CHECKING:
    from ppt_gpu.machine.code import MachineCode


#: of an SM, each with its own warps and registers: compute capability 5.0 and later
SCHEDULERS = 4
#: registers of a thread from which on ptxas gives up a warp for them: six warps a scheduler, or fewer
MANY = 80
WARP = 32


def register_room(kernel: Kernel, isa: Isa) -> int:
    """Registers per thread with which ptxas schedules.

    Where .minnctapersm asks for blocks, those of .maxntid are all that have to fit.
    """
    if not isa.sm_registers or not isa.sm_threads:
        return estimate_registers(kernel)
    threads = isa.sm_threads
    block = prod(kernel.directives.get("reqntid") or kernel.directives.get("maxntid") or (0,))
    if block:
        blocks = kernel.directives.get("minnctapersm", (0,))[0] or max(1, threads // block)
        threads = min(threads, blocks * block)
    room = isa.sm_registers // threads // ALLOCATION_UNIT * ALLOCATION_UNIT
    return min(max(room, ALLOCATION_UNIT), most_allowed(kernel))


@dataclass(frozen=True)
class Registers:
    """What a compiler decides of a kernel's registers."""

    count: int  # of a thread, a multiple of 8 as they are allocated
    room: int  # of a thread, for which the code is ordered


def compiled_registers(
    kernel: Kernel, isa: Isa, stated: int | None = None, make: Callable[[int], MachineCode] | None = None
) -> Registers:
    """What ptxas would decide of a (linked) kernel; where somebody has `stated` the registers of a thread, those.

    make: gives its machine code for so many registers, where that is kept; by default it is made here.
    """
    if stated:
        return Registers(stated, stated)
    least = estimate_registers(kernel)
    if not isa.scheduled:
        return Registers(least, least)
    room = register_room(kernel, isa)
    if make is None:
        from ppt_gpu.machine.code import machine_code

        make = partial(machine_code, kernel, isa=isa)
    code = make(room)
    needed = as_allocated(kernel, code.live)
    if isinstance(kernel, LinkedKernel) and kernel.calls:
        needed = max(needed, least)
    if needed <= room:
        return Registers(needed, room)
    if least <= room:
        return Registers(room, room)
    room = min(same_warps(max(needed, least), isa), most_allowed(kernel))
    if room < MANY:
        return Registers(max(as_allocated(kernel, make(room).live), ALLOCATION_UNIT), room)
    return _fewer_warps(kernel, isa, room, make)


def _fewer_warps(kernel: Kernel, isa: Isa, room: int, make: Callable[[int], MachineCode]) -> Registers:
    """As many as let the warps of a scheduler do the most, by the time that each takes alone; at least `room`."""
    of_lane = isa.sm_registers // (SCHEDULERS * WARP)

    def tried(room: int) -> tuple[float, Registers]:
        code = make(room)
        count = max(as_allocated(kernel, code.live), ALLOCATION_UNIT)
        return of_lane // count / expected_cycles(code), Registers(count, room)

    most, best = tried(room)
    while best.room < most_allowed(kernel):
        done, other = tried(min(same_warps(best.room + ALLOCATION_UNIT, isa), most_allowed(kernel)))
        if done <= most:
            break
        most, best = done, other
    return best


def expected_cycles(code: MachineCode) -> int:
    """Cycles that a warp alone takes for the longest piece of straight-line code, as the compiler expects them."""
    longest = max((template.code for template in code.templates), key=len, default=())
    ready: dict[int, int] = {}
    now = 0
    for place in longest:
        instruction = code.kernel.instructions[place]
        start = max((ready.get(register, 0) for register in instruction.reads), default=0)
        if instruction.base in ("mov", "cvta") or code.kernel.joined.get(int(place)) == ():
            ready.update(dict.fromkeys(instruction.writes, start))
            continue
        now = max(now, start)
        ready.update(dict.fromkeys(instruction.writes, now + expected_latency(instruction)))
        now += 1
    return max(now, 1)


def same_warps(needed: int, isa: Isa) -> int:
    """The most registers per thread with which as many warps fit a scheduler as with those needed, as allocated."""
    of_lane = isa.sm_registers // (SCHEDULERS * WARP)
    warps = max(1, of_lane // needed)
    return of_lane // warps // ALLOCATION_UNIT * ALLOCATION_UNIT
