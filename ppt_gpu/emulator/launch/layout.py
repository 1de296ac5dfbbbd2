"""Where a kernel's shared and local variables lie in a block's shared memory and a thread's local memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ppt_gpu.emulator.memory.memory import LOCAL_WINDOW
from ppt_gpu.ptx.linking.call_graph import body_symbols
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.ptx.module import Kernel, Module, Special, Variable
from ppt_gpu.workload.budget import Budget

#: B of shared memory that the system keeps to itself, which libraries find by %reserved_smem_offset_*
RESERVED = 1024
RESERVED_AT = "reserved_smem_offset_"
#: places in there, B from its beginning; where a GPU has the last two is not published
RESERVED_PLACES = {"begin": 0, "end": RESERVED, "0": 0, "1": RESERVED // 2}


@dataclass(frozen=True)
class Layout:
    """Offsets in bytes from the start of each space. Local size is a multiple of 16."""

    shared: Mapping[str, int]
    shared_bytes: int  # static and dynamic
    reserved: int  # where RESERVED bytes of the system begin, behind those; -1 where the kernel does not ask for them
    static_shared: int  # B declared with a size
    local: Mapping[str, int]  # those of a function from the start of its frame
    local_bytes: int  # per thread: the kernel's frame and the stack of its calls

    @property
    def warp_frame(self) -> int:
        """Bytes of local memory of a warp."""
        return 32 * self.local_bytes

    @property
    def shared_room(self) -> int:
        """All the shared memory that a block may access. A GPU puts what it reserves first, and counts it apart."""
        return self.shared_bytes if self.reserved < 0 else self.reserved + RESERVED

    def reserved_at(self, name: str) -> int:
        """What %reserved_smem_offset_NAME reads as."""
        return RESERVED if name == "cap" else max(self.reserved, 0) + RESERVED_PLACES[name]


def layout(module: Module, kernel: Kernel, dynamic_shared: int = 0, stack: int = Budget.stack) -> Layout:
    """Place the variables of `kernel` and its functions, and the module's shared and local variables that they name.

    Variables without a size (`.extern .shared`) all start at the end of the sized ones, as CUDA does, and hold
    `dynamic_shared` bytes. Order: the module's variables, then the kernel's, then the functions', as declared. `stack`
    are the bytes a thread gets for calls of which no bound is known: recursive ones, and those of kernels with alloca.
    """
    linked = link(kernel, module)
    named = set(body_symbols(linked)) if module.variables else set()
    variables = [v for v in module.variables.values() if v.name in named]
    variables += linked.variables
    shared, static = _place([v for v in variables if v.space == "shared" and v.bytes])
    dynamic = [v for v in variables if v.space == "shared" and not v.bytes]
    align = max((max(v.align, 16) for v in dynamic), default=16)
    start = _up(static, align)
    shared.update({v.name: start for v in dynamic})
    calls = linked.stack_bytes if linked.stack_bytes >= 0 else max(stack, 0)
    end = start + dynamic_shared if dynamic or dynamic_shared else static
    reserved = _up(end, 128) if _asks_for_reserved(linked) else -1
    return Layout(shared, end, reserved, static, linked.offsets, _up(linked.frame_bytes + calls, 16))


def _asks_for_reserved(kernel: Kernel) -> bool:
    operands = (i.operands[1] for i in kernel.instructions if i.base == "mov" and len(i.operands) > 1)
    return any(isinstance(operand, Special) and operand.name.startswith(RESERVED_AT) for operand in operands)


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
