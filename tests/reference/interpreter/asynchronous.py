"""cp.async, mbarrier and setmaxnreg in the interpreter. Copies are made where they are issued."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.forms.async_form import arrival, lane_copy
from ppt_gpu.emulator.memory.mbarrier_word import COUNT, GIVEN, PARITY, PLACE, PLACE_BITS, fresh, updated
from ppt_gpu.ptx.instructions import is_traced
from ppt_gpu.ptx.module import Instruction, Operand
from reference.interpreter.access import access_of, address_lanes
from reference.interpreter.block import LANES
from reference.interpreter.bulk import bulk, launch_control
from reference.interpreter.span import shared_bytes, span
from reference.interpreter.warp import Execute, Warp, unsupported


def copy(warp: Warp, ins: Instruction) -> None:
    """cp.async in all its forms."""
    words = ins.modifiers
    if words[:1] == ("reduce",):
        bulk(warp, ins)
        return
    if words[:1] != ("async",):
        raise unsupported(ins)
    if "commit_group" in words or "wait_group" in words or "wait_all" in words:
        return
    if "mbarrier" in words:
        _arrive(warp, ins)
    elif "bulk" in words:
        bulk(warp, ins)
    else:
        _lane_copy(warp, ins)


def _lane_copy(warp: Warp, ins: Instruction) -> None:
    """The lanes that read all their bytes are recorded."""
    try:
        form = lane_copy(warp.kernel, ins)
    except ValueError as reason:
        raise unsupported(ins, str(reason)) from None
    given = np.full(LANES, form.size)
    if form.ignore is not None:
        given = np.where(warp.read(form.ignore, 1) == 1, 0, form.size)
    elif form.given is not None:
        given = np.minimum(warp.read(form.given, 32), form.size).astype(np.int64)
    everyone = warp.active
    warp.active = everyone & (given == form.size)
    source = access_of(warp, ins, ins.operands[1], form.size, "global")
    warp.recorder.access("global", address_lanes(warp, ins.operands[1]), warp.active)
    full = np.flatnonzero(warp.active).tolist()
    warp.active = everyone
    data = {lane: source.load(lane) for lane in full}
    address = address_lanes(warp, ins.operands[1])
    for lane in np.flatnonzero(everyone & (given < form.size)).tolist():
        size = int(given[lane])
        read = span(warp, "global", int(address[lane]), size).tobytes() if size else b""
        data[lane] = read.ljust(form.size, b"\0")
    target = access_of(warp, ins, ins.operands[0], form.size, "shared")
    for lane, content in data.items():
        target.store(lane, content)


def mbarrier(warp: Warp, ins: Instruction) -> None:
    """mbarrier.*"""
    kind = ins.modifiers[0]
    if kind in ("init", "inval"):
        count = warp.read(ins.operands[1], 32) if kind == "init" else np.zeros(LANES, np.uint64)
        for lane, word in _words(warp, ins.operands[0]):
            word[0] = fresh(int(count[lane]))
        _record(warp, ins, ins.operands[0], count)
    elif kind == "pending_count":
        warp.write(ins.operands[0], warp.read(ins.operands[1], 64) & np.uint64(COUNT))
    elif kind in ("test_wait", "try_wait"):
        _wait(warp, ins)
    else:
        _arrive(warp, ins)


def _wait(warp: Warp, ins: Instruction) -> None:
    flag, place, phase = ins.operands[:3]
    asked = (
        warp.read(phase, 32) & np.uint64(1) if "parity" in ins.modifiers else warp.read(phase, 64) >> np.uint64(PARITY)
    )
    ready = np.zeros(LANES, np.uint64)
    for lane, word in _words(warp, place):
        ready[lane] = int(word[0]) >> PARITY != int(asked[lane])
    warp.write(flag, ready)
    warp.gives_way = bool((warp.active & (ready == 0)).any())
    _record(warp, ins, place, asked)


def _arrive(warp: Warp, ins: Instruction) -> None:
    """arrive, arrive_drop, expect_tx, complete_tx, cp.async.mbarrier.arrive: the lowest lane first."""
    try:
        found = arrival(ins)
    except ValueError as reason:
        raise unsupported(ins, str(reason)) from None
    count = warp.read(found.arrivals, 32)
    missing = warp.read(found.bytes, 32) if found.bytes is not None else np.zeros(LANES, np.uint64)
    states = np.zeros(LANES, np.uint64)
    for lane, word in _words(warp, found.place):
        states[lane] = old = word[0]
        arrivals = int(count[lane])
        change = -int(missing[lane]) if found.completes else int(missing[lane])
        word[0] = updated(int(old), arrivals, arrivals if found.drops else 0, change)
    if found.destination is not None:
        warp.write(found.destination, states)
    _record(warp, ins, found.place, count if found.bytes is None else missing)


def _record(warp: Warp, ins: Instruction, place: Operand, given: NDArray[np.uint64]) -> None:
    """What a trace holds of it (`ppt_gpu.emulator.memory.mbarrier_word`)."""
    if is_traced(ins):
        near = address_lanes(warp, place).astype(np.uint64) & np.uint64(PLACE)
        warp.recorder.words(near | (given.astype(np.uint64) & np.uint64(GIVEN)) << np.uint64(PLACE_BITS), warp.active)


def complete_bytes(warp: Warp, place: Operand, size: int) -> None:
    """Each active lane's transfer of `size` bytes is done."""
    for _, word in _words(warp, place):
        word[0] = updated(int(word[0]), expected_bytes=-size)


def _words(warp: Warp, place: Operand) -> list[tuple[int, NDArray[np.uint64]]]:
    """(lane, the object as a writable view) of the active lanes."""
    found = []
    addresses = address_lanes(warp, place)
    for lane in np.flatnonzero(warp.active).tolist():
        found.append((lane, shared_bytes(warp, int(addresses[lane]), 8, 8).view(np.uint64)))
    return found


def nothing(warp: Warp, ins: Instruction) -> None:
    """setmaxnreg: registers move between warps, no value changes."""


ASYNC: dict[str, Execute] = {
    "cp": copy,
    "mbarrier": mbarrier,
    "setmaxnreg": nothing,
    "tensormap": bulk,
    "clusterlaunchcontrol": launch_control,
}
