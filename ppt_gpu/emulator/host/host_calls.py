"""Functions that every kernel may call although no module defines them: printf, assert, malloc and free.

The CUDA runtime gives them to kernels: vprintf(format, arguments), __assertfail(...), malloc(bytes), free(pointer).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.host.printf import format_text
from ppt_gpu.emulator.memory.device_heap import allocate, release
from ppt_gpu.emulator.memory.memory import HEAP, DeviceMemory, in_window
from ppt_gpu.ptx.linking.linked import Function, LinkedKernel
from ppt_gpu.ptx.module import Instruction, Sym

#: text kept of a run, characters: what CUDA's buffer holds by default
MOST_PRINTED = 1 << 20
LONGEST_STRING = 1 << 16  # B that %s may print
_DEVICE_RUNTIME = ("cuda", "cu", "__cuda")


@dataclass
class Printed:
    """What the kernel printed so far."""

    parts: list[str] = field(default_factory=list)
    size: int = 0
    lost: int = 0  # calls whose text is not kept

    def add(self, text: str) -> None:
        if self.size + len(text) > MOST_PRINTED:
            self.lost += 1
            return
        self.parts.append(text)
        self.size += len(text)

    @property
    def text(self) -> str:
        return "".join(self.parts)


@dataclass
class Caller:
    """The lanes of one warp that call, and the memory that they see."""

    memory: DeviceMemory
    shared: NDArray[np.uint8]
    local: Callable[[int], NDArray[np.uint8]]  # the bytes of a lane
    frame: int  # where the callee's frame begins in local memory
    lanes: list[int]
    where: Callable[[int], str]  # "block (0, 0, 0), thread (1, 0, 0)" of a lane

    def bytes_at(self, lane: int, address: int, most: int) -> NDArray[np.uint8]:
        """Up to `most` bytes from a generic address on, as far as its object goes."""
        space, offset = in_window(address)
        if space in ("local", "shared"):
            return (self.shared if space == "shared" else self.local(lane))[offset:][:most]
        place = self.memory.find(address)
        if place < 0:
            raise PptError(f"an argument points to {address:#x}, {self.memory.nearest_buffer(address)}")
        end = min(int(self.memory.ends[place]), address + most)
        return self.memory.data[address - self.memory.base : end - self.memory.base]

    def integer(self, lane: int, address: int, size: int) -> int:
        found = self.bytes_at(lane, address, size)
        if len(found) < size:
            raise PptError(f"an argument at {address:#x} lies outside of its memory")
        return int.from_bytes(found.tobytes(), "little")

    def text(self, lane: int, address: int) -> str:
        """The string at a generic address."""
        found = self.bytes_at(lane, address, LONGEST_STRING)
        end = np.flatnonzero(found == 0)[:1]
        return found[: int(end[0]) if len(end) else len(found)].tobytes().decode("utf-8", "replace")


def not_callable(kernel: LinkedKernel, call: Instruction) -> str:
    """Why a call cannot be executed, "" if it can."""
    functions = [kernel.functions[name] for name in kernel.calls[call.index].callees]
    if not functions:
        if isinstance(call.operands[1], Sym):
            return f"'{call.operands[1].name}' is no function of this module"
        return "no function of this module whose address is taken has its parameters and results"
    for function in functions:
        if not function.has_body and function.name not in HOST_CALLS:
            reason = f"'{function.name}' is declared on line {function.line}, but this module does not define it"
            if function.name.startswith(_DEVICE_RUNTIME):
                reason += "; kernels launched by kernels (dynamic parallelism) do not run: give them as launches"
            return reason
        arguments = call.operands[2]
        missing = len(function.params) - len(getattr(arguments, "items", ()))
        if missing and not (missing == 1 and function.params[-1].unsized):
            return f"'{function.name}' takes {len(function.params)} arguments"
        if len(function.returns) < len(getattr(call.operands[0], "items", ())):
            return f"'{function.name}' returns {len(function.returns)} values"
    return ""


def call_host(kernel: LinkedKernel, function: Function, caller: Caller, printed: Printed) -> None:
    """Do a call. Results go to the callee's frame. Raises PptError for an assertion that failed or a bad pointer."""
    for lane in caller.lanes:
        local = caller.local(lane)
        arguments = []
        for param in function.params:
            at = caller.frame + kernel.offsets[param.name]
            arguments.append(int.from_bytes(local[at : at + param.bytes].tobytes(), "little"))
        try:
            result = HOST_CALLS[function.name](caller, lane, arguments, printed)
        except PptError as error:
            raise PptError(f"{error.message}, {caller.where(lane)}", hint=error.hint) from None
        for param in function.returns:
            at = caller.frame + kernel.offsets[param.name]
            raw = (result & ((1 << 8 * param.bytes) - 1)).to_bytes(param.bytes, "little")
            local[at : at + param.bytes] = np.frombuffer(raw, np.uint8)


def _print(caller: Caller, lane: int, arguments: list[int], printed: Printed) -> int:
    """vprintf: returns how many arguments the format takes (CUDA C++ Programming Guide, "Formatted Output")."""
    pattern, values = arguments
    if not pattern:
        return -1
    text, count = format_text(
        caller.text(lane, pattern),
        lambda offset, size: caller.integer(lane, values + offset, size),
        lambda address: caller.text(lane, address) if address else "(null)",
    )
    printed.add(text)
    return count


def _assert(caller: Caller, lane: int, arguments: list[int], printed: Printed) -> int:
    message, file, line, function, _ = arguments
    text, path, name = (caller.text(lane, address) if address else "?" for address in (message, file, function))
    raise PptError(f"assertion '{text}' failed in {name}, {path}:{line}")


def _malloc(caller: Caller, lane: int, arguments: list[int], printed: Printed) -> int:
    return allocate(caller.memory.bytes_of(HEAP), caller.memory.address_of(HEAP), arguments[0])


def _free(caller: Caller, lane: int, arguments: list[int], printed: Printed) -> int:
    release(caller.memory.bytes_of(HEAP), caller.memory.address_of(HEAP), arguments[0])
    return 0


HOST_CALLS: dict[str, Callable[[Caller, int, list[int], Printed], int]] = {
    "vprintf": _print,
    "__assertfail": _assert,
    "malloc": _malloc,
    "free": _free,
}
