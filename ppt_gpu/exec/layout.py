"""Where a kernel's shared and local variables lie in a block's shared memory and a thread's local memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ppt_gpu.exec.memory import LOCAL_WINDOW
from ppt_gpu.ptx.module import Kernel, Mem, Module, Operand, Pair, Sym, Variable, Vec


@dataclass(frozen=True)
class Layout:
    """Offsets in bytes from the start of each space. Local size is a multiple of 16."""

    shared: Mapping[str, int]
    shared_bytes: int  # static and dynamic
    static_shared: int  # B declared with a size
    local: Mapping[str, int]
    local_bytes: int  # per thread


def layout(module: Module, kernel: Kernel, dynamic_shared: int = 0) -> Layout:
    """Place the variables that `kernel` declares, and the module's shared and local variables that it names.

    Variables without a size (`.extern .shared`) all start at the end of the sized ones, as CUDA does, and hold
    `dynamic_shared` bytes. Order: the module's variables, then the kernel's, as declared.
    """
    bodies = [kernel, *module.functions.values()] if _calls(kernel) else [kernel]
    named = {name for body in bodies for name in _symbols(body)}
    variables = [v for v in module.variables.values() if v.name in named]
    variables += [v for body in bodies for v in body.variables]
    shared, static = _place([v for v in variables if v.space == "shared" and v.bytes])
    dynamic = [v for v in variables if v.space == "shared" and not v.bytes]
    align = max((max(v.align, 16) for v in dynamic), default=16)
    start = _up(static, align)
    shared.update({v.name: start for v in dynamic})
    local, local_bytes = _place([v for v in variables if v.space == "local"])
    end = start + dynamic_shared if dynamic or dynamic_shared else static
    return Layout(shared, end, static, local, _up(local_bytes, 16))


def local_address(warp: int, local_bytes: int, offset: int, lane: int, size: int) -> int:
    """The address under which the trace records a local access of `size` bytes at `offset` of a thread.

    Local memory is interleaved, so that the lanes of a warp that touch the same offset touch neighbouring bytes.
    `warp` counts the warps of the whole grid: linear block id x warps per block + warp in block.
    """
    return LOCAL_WINDOW + warp * 32 * local_bytes + 32 * offset + lane * size


def _place(variables: Sequence[Variable]) -> tuple[dict[str, int], int]:
    offsets: dict[str, int] = {}
    cursor = 0
    for v in variables:
        cursor = _up(cursor, max(v.align, 1))
        offsets[v.name] = cursor
        cursor += v.bytes
    return offsets, cursor


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def _calls(kernel: Kernel) -> bool:
    return any(i.base == "call" for i in kernel.instructions)


def _symbols(kernel: Kernel) -> Iterable[str]:
    for instruction in kernel.instructions:
        for operand in instruction.operands:
            yield from _symbols_of(operand)


def _symbols_of(operand: Operand) -> Iterable[str]:
    if isinstance(operand, Sym):
        yield operand.name
    elif isinstance(operand, Mem) and operand.base is not None:
        yield from _symbols_of(operand.base)
    elif isinstance(operand, Vec):
        for item in operand.items:
            yield from _symbols_of(item)
    elif isinstance(operand, Pair):
        yield from _symbols_of(operand.first)
        yield from _symbols_of(operand.second)
