"""Registers that lie at one distance from each other where a segment begins, however control came there.

Pointers into several buffers that a loop moves together, say. A forward analysis over the segments, which begins by
taking all registers to be related that no way into a segment sets apart (value numbering with partitions: Alpern,
Wegman and Zadeck, "Detecting Equality of Variables in Programs", POPL 1988; here with distances between what is equal).
Each lane goes one way through the segments, so what holds on all ways holds in all lanes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ppt_gpu.emulator.analysis.constant_offsets import NEAR, Distance, Step
from ppt_gpu.emulator.analysis.flow import Flow
from ppt_gpu.ptx.linking.linked import LinkedKernel
from ppt_gpu.ptx.linking.liveness import members

#: register -> (a value, how far it is from that): of one register, or of what an instruction computed
_State = dict[int, tuple[int, Distance]]
#: register -> (a register, how far it is from that one)
Relations = dict[int, tuple[int, Distance]]
_MOST_ROUNDS = 32  # looks at each segment: a kernel that takes more is left alone


def related(kernel: LinkedKernel, flow: Flow, steps: Mapping[int, Step]) -> Sequence[Relations]:
    """[S] Of each segment. Nothing of kernels that call functions."""
    nothing: list[Relations] = [{} for _ in range(flow.segments)]
    tracked = {register for step in steps.values() for register in (step.result, step.source)}
    if kernel.calls or not tracked:
        return nothing
    sources: list[list[int]] = [[] for _ in range(flow.segments)]
    for segment, following in enumerate(flow.successors):
        for target in following:
            sources[target].append(segment)
    changes = [
        [(i.index, register) for i in kernel.instructions[first:end] for register in i.writes if register in tracked]
        for first, end in zip(flow.start, flow.start[1:], strict=False)
    ]
    live = [[register for register in members(bits) if register in tracked] for bits in flow.live_in]
    begins: list[Relations | None] = [None] * flow.segments
    ends: list[_State | None] = [None] * flow.segments
    begins[0] = {register: (register, NEAR) for register in live[0]}
    todo, looks = [0], 0
    while todo:
        segment = todo.pop(0)
        looks += 1
        if looks > _MOST_ROUNDS * flow.segments:
            return nothing
        before = begins[segment]
        ends[segment] = _after(before or {}, changes[segment], steps)
        for target in flow.successors[segment]:
            known = [end for end in (ends[source] for source in sources[target]) if end is not None]
            met = _meet(live[target], known) if target else begins[0]
            if met != begins[target]:
                begins[target] = met
                todo += [target] if target not in todo else []
    return [_of_several(found or {}) for found in begins]


def _after(state: Relations, changes: Sequence[tuple[int, int]], steps: Mapping[int, Step]) -> _State:
    """The state behind these instructions, each with a register that it writes."""
    found: _State = dict(state)
    for index, register in changes:
        step = steps.get(index)
        if step is None:
            found[register] = ~index, NEAR
        else:
            value, distance = found.get(step.source, (step.source, NEAR))
            found[register] = value, distance + step.distance
    return found


def _meet(registers: Sequence[int], states: Sequence[_State]) -> Relations:
    """What holds of registers in all states: they have the same values there, at distances that are the same."""
    found: Relations = {}
    first: dict[tuple[int, ...], list[int]] = {}  # values in the states -> registers that others may be related to
    for register in registers:
        places = [state.get(register, (register, NEAR)) for state in states]
        others = first.setdefault(tuple(value for value, _ in places), [])
        for other in others:
            far = [
                distance - state.get(other, (other, NEAR))[1]
                for (_, distance), state in zip(places, states, strict=True)
            ]
            if all(each == far[0] for each in far):
                found[register] = other, far[0]
                break
        else:
            others.append(register)
            found[register] = register, NEAR
    return found


def _of_several(found: Relations) -> Relations:
    """Without registers that are related to no other one."""
    roots = [root for root, _ in found.values()]
    return {register: place for register, place in found.items() if roots.count(place[0]) > 1}
