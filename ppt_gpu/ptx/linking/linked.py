"""What linking a kernel with its functions yields: one instruction list, its functions, calls and stack frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ppt_gpu.ptx.module import Kernel, Param

#: frames are multiples of this, bytes; the smallest frame, too
FRAME_ALIGN = 16


@dataclass(frozen=True, slots=True)
class Function:
    """A function that a linked kernel can reach; one without a body is outside of the module (vprintf, malloc)."""

    name: str
    entry: int  # its first instruction, -1 without a body
    end: int  # one past its last instruction
    registers: tuple[int, int]  # its registers: first id, one past the last
    params: tuple[Param, ...]  # names and registers as in the linked kernel
    returns: tuple[Param, ...]
    frame_bytes: int  # per thread; 0 without a body only where nothing is passed
    line: int

    @property
    def has_body(self) -> bool:
        return self.entry >= 0


@dataclass(frozen=True, slots=True)
class Call:
    """What a call instruction may do. `saved` registers live across a call that may come back to the same function."""

    callees: tuple[str, ...]
    indirect: bool
    frame_bytes: int  # of the calling function: the callee's frame begins so far behind the caller's
    saved: tuple[tuple[int, int], ...] = ()  # (register, offset in the caller's frame)


@dataclass(frozen=True)
class LinkedKernel(Kernel):
    """A kernel followed by the functions that it can reach. Instruction indices, registers and labels are unique.

    Names of a function's own variables, parameters and labels are "function:name"; the kernel's keep their names.
    """

    functions: Mapping[str, Function] = field(default_factory=dict)
    calls: Mapping[int, Call] = field(default_factory=dict)  # by instruction index
    offsets: Mapping[str, int] = field(default_factory=dict)  # of stack variables, in the frame of their function
    sizes: Mapping[str, int] = field(default_factory=dict)  # bytes of each
    frame_bytes: int = 0  # the kernel's own frame, per thread
    stack_bytes: int = 0  # that its calls need at most, per thread; -1: no bound is known (recursion, alloca)
    allocates: bool = False  # some function uses alloca
    own_end: int = 0  # one past the kernel's own last instruction

    @property
    def entries(self) -> tuple[int, ...]:
        """The first instruction of the kernel and of each function with a body."""
        return (0, *(f.entry for f in self.functions.values() if f.has_body))

    def function_at(self, index: int) -> Function | None:
        """The function that an instruction belongs to, None for the kernel."""
        if index < self.own_end:
            return None
        return next((f for f in self.functions.values() if f.entry <= index < f.end), None)

    def function_name(self, index: int) -> str:
        """The name of the function or kernel that an instruction belongs to."""
        function = self.function_at(index)
        return function.name if function else self.name


#: the words of every thread's frame 0 that alloca needs: bytes allocated so far, counted down from the stack's end
ALLOCATED = "%allocated"
#: the word in which a thread keeps which function an indirect call went to, where results come back in registers; the
#: call's index follows
CALLEE = "%callee"


def is_framed(name: str) -> bool:
    """Does a name belong to a function other than the kernel, so that its place depends on the caller?"""
    return ":" in name
