"""Calls of the interpreter: arguments and results in the threads' stack frames, registers kept lane by lane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.host.host_calls import Caller, call_host, not_callable
from ppt_gpu.emulator.memory.memory import function_address
from ppt_gpu.emulator.run.faults import call_text, stack_message, thread_text
from ppt_gpu.ptx.linking.linked import ALLOCATED, Function
from ppt_gpu.ptx.module import Instruction, Operand, Reg, Sym, Vec
from reference.interpreter.block import LANES, Bits
from reference.interpreter.warp import Execute, Warp, width_of


@dataclass
class Record:
    """One call of one lane."""

    function: Function
    call: Instruction
    frame: int  # of the caller
    callee_frame: int
    registers: NDArray[np.uint64]  # that the function's registers held before


def functions_of(warp: Warp, ins: Instruction) -> dict[Function, list[int]]:
    """The functions that active lanes call, by where they begin, each with its lanes."""
    kernel, module = warp.kernel, warp.launched.module
    where = thread_text_of(warp, int(np.flatnonzero(warp.active)[0]))
    reason = not_callable(kernel, ins)
    if reason:
        text, hint = call_text(reason, where)
        raise PptError(text, hint=hint)
    site = kernel.calls[ins.index]
    lanes = np.flatnonzero(warp.active).tolist()
    if not site.indirect:
        return {kernel.functions[site.callees[0]]: lanes}
    by_address = {function_address(module, name): kernel.functions[name] for name in site.callees}
    width = warp.register_width(ins.operands[1]) if isinstance(ins.operands[1], Reg) else 64
    targets = warp.read(ins.operands[1], width)
    found: dict[Function, list[int]] = {}
    for lane in lanes:
        function = by_address.get(int(targets[lane]))
        if function is None:
            place = thread_text_of(warp, lane)
            raise PptError(f"'{ins.opcode}' calls an address that is no function it can call, {place}")
        found.setdefault(function, []).append(lane)
    return dict(sorted(found.items(), key=lambda item: item[0].entry))


def thread_text_of(warp: Warp, lane: int) -> str:
    """Block and thread of a lane, for messages."""
    return thread_text(warp.launched.launch, warp.block.linear, int(warp.threads[lane]))


def enter(warp: Warp, ins: Instruction, function: Function, lanes: list[int], calls: list[list[Record]]) -> None:
    """Pass the arguments of `lanes` and note their calls."""
    site = warp.kernel.calls[ins.index]
    frame = warp.frame + site.frame_bytes
    _check_stack(warp, ins, frame + function.frame_bytes)
    arguments = ins.operands[2]
    assert isinstance(arguments, Vec)
    values = [
        _bytes_of(warp, argument, param.bytes, param.type)
        for param, argument in zip(function.params, arguments.items, strict=False)
    ]
    first, end = function.registers
    for lane in lanes:
        local = warp.local(lane)
        calls[lane].append(Record(function, ins, warp.frame, frame, warp.registers[first:end, lane].copy()))
        if function.has_body:
            warp.registers[first:end, lane] = 0
        for param, value in zip(function.params, values, strict=False):
            if param.register >= 0:
                warp.registers[param.register, lane] = int.from_bytes(value[lane], "little")
            else:
                at = frame + warp.kernel.offsets[param.name]
                local[at : at + len(value[lane])] = np.frombuffer(value[lane], np.uint8)
        if warp.kernel.allocates and function.has_body:
            own = warp.frame + warp.kernel.offsets[_counter(warp, ins)]
            at = frame + warp.kernel.offsets[f"{function.name}:{ALLOCATED}"]
            local[at : at + 8] = local[own : own + 8]


def _bytes_of(warp: Warp, argument: Operand, size: int, kind: str) -> list[bytes]:
    """What each lane passes."""
    kernel = warp.kernel
    if isinstance(argument, Sym) and argument.name in kernel.offsets:
        at, size = warp.address_of(argument), min(size, kernel.sizes[argument.name])
        return [warp.local(lane)[at : at + size].tobytes() for lane in range(LANES)]
    width = 8 * size if kind != "pred" else 1
    return [int(v).to_bytes(size, "little") for v in warp.read(argument, width)]


def leave(warp: Warp, lanes: list[int], calls: list[list[Record]]) -> None:
    """`lanes` return: results go to the caller, the function's registers hold what they held before."""
    for lane in lanes:
        record = calls[lane].pop()
        function, local = record.function, warp.local(lane)
        values = []
        for param in function.returns:
            if param.register >= 0:
                values.append(int(warp.registers[param.register, lane]).to_bytes(8, "little"))
            else:
                at = record.callee_frame + warp.kernel.offsets[param.name]
                values.append(local[at : at + param.bytes].tobytes())
        first, end = function.registers
        warp.registers[first:end, lane] = record.registers
        results = record.call.operands[0]
        assert isinstance(results, Vec)
        for value, result in zip(values, results.items, strict=False):
            _give(warp, lane, value, result, record.frame)


def _give(warp: Warp, lane: int, value: bytes, result: Operand, frame: int) -> None:
    if isinstance(result, Sym):
        at = warp.kernel.offsets[result.name] + (frame if ":" in result.name else 0)
        value = value[: warp.kernel.sizes[result.name]]
        warp.local(lane)[at : at + len(value)] = np.frombuffer(value, np.uint8)
    elif isinstance(result, Reg):
        only = np.zeros(LANES, bool)
        only[lane] = True
        warp.write_where(result, np.full(LANES, int.from_bytes(value[:8], "little"), np.uint64), only)


def call_outside(warp: Warp, ins: Instruction, function: Function, lanes: list[int]) -> None:
    """A call that the host does."""
    calls: list[list[Record]] = [[] for _ in range(LANES)]
    enter(warp, ins, function, lanes, calls)
    launched = warp.launched
    frame = calls[lanes[0]][0].callee_frame
    caller = Caller(
        launched.memory, warp.block.shared, warp.local, frame, lanes, lambda lane: thread_text_of(warp, lane)
    )
    call_host(warp.kernel, function, caller, launched.printed)
    leave(warp, lanes, calls)


def _counter(warp: Warp, ins: Instruction) -> str:
    function = warp.kernel.function_at(ins.index)
    return f"{function.name}:{ALLOCATED}" if function else ALLOCATED


def _used(warp: Warp, ins: Instruction) -> tuple[int, Bits]:
    """(where the lanes count what alloca took, the counts)."""
    at = warp.address_of(Sym(_counter(warp, ins)))
    found = [int.from_bytes(warp.local(lane)[at : at + 8].tobytes(), "little") for lane in range(LANES)]
    return at, np.array(found, np.uint64)


def _check_stack(warp: Warp, ins: Instruction, end: int) -> None:
    """PptError when frames up to `end` and what alloca took do not fit."""
    if warp.kernel.stack_bytes >= 0:
        return
    active = np.flatnonzero(warp.active)
    if warp.kernel.allocates:
        end += int(_used(warp, ins)[1][active].max())
    if end > warp.launched.layout.local_bytes:
        raise _stack_error(warp, ins, int(active[0]))


def _stack_error(warp: Warp, ins: Instruction, lane: int) -> PptError:
    room = warp.launched.layout.local_bytes - warp.kernel.frame_bytes
    name = warp.kernel.function_name(ins.index)
    text, hint = stack_message(name, ins, room, thread_text_of(warp, lane))
    return PptError(text, hint=hint)


def allocate(warp: Warp, ins: Instruction) -> None:
    """alloca, stacksave, stackrestore: blocks lie at the end of local memory, the newest lowest."""
    kind = ins.modifiers[0]
    width, end = width_of(kind), warp.launched.layout.local_bytes
    at, used = _used(warp, ins)
    function = warp.kernel.function_at(ins.index)
    room = end - warp.frame - (function.frame_bytes if function else warp.kernel.frame_bytes)
    if ins.base == "stackrestore":
        used = np.uint64(end) - warp.read(ins.operands[0], width)
    elif ins.base == "alloca":
        align = max(int(getattr(ins.operands[2], "value", 16)) if len(ins.operands) > 2 else 8, 16)
        size = warp.read(ins.operands[1], width)
        for lane in np.flatnonzero(warp.active).tolist():
            total = end - (end - int(used[lane]) - int(size[lane])) // align * align
            if total > room:
                raise _stack_error(warp, ins, lane)
            used[lane] = total
    for lane in np.flatnonzero(warp.active).tolist():
        warp.local(lane)[at : at + 8] = np.frombuffer(int(used[lane]).to_bytes(8, "little"), np.uint8)
    if ins.base != "stackrestore":
        warp.write(ins.operands[0], np.uint64(end) - used)


CALLS: dict[str, Execute] = dict.fromkeys(("alloca", "stacksave", "stackrestore"), allocate)
