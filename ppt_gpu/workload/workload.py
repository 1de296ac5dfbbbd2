"""A workload: which kernels run, with which grid, arguments and data. Read from TOML or built from the command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ppt_gpu.workload.texture import Texture

Dim3 = tuple[int, int, int]


@dataclass(frozen=True)
class Buffer:
    """A device buffer. `init`: "zeros", "iota", "random" (uniform; ints over the range), "npy:FILE", "const:VALUE",
    or "ring:STRIDE".

    "iota" is 0, 1, 2, ... "ring:STRIDE" is (i + STRIDE) modulo the count, what a pointer chase follows. "random" floats
    are uniform in [low, high), integers in low..high inclusive.
    """

    name: str
    type: str  # PTX element type, "f32"
    count: int
    init: str = "zeros"
    seed: int = 0
    copied: bool = False  # the host copied it just before the launch, which warms the L2
    low: float = 0.0  # range of "random"
    high: float = 1.0


@dataclass(frozen=True)
class Range:
    """Where a buffer lies in device memory."""

    name: str
    start: int
    bytes: int
    copied: bool  # the host copied it just before the launch


@dataclass(frozen=True)
class Argument:
    """A kernel argument: a scalar (type, value), a pointer to `buffer` (plus `offset` bytes), or a by-value struct
    (type "struct") whose `fields` lie at their natural alignment. A number without a type has type "" until the
    workload is bound to its kernel (`ppt_gpu.workload.literals`)."""

    type: str
    value: int | float = 0
    buffer: str = ""
    offset: int = 0
    fields: tuple[Argument, ...] = ()
    step: int = 0  # in round r of a loop the scalar is value + r * step

    @property
    def is_struct(self) -> bool:
        """Whether it is a by-value struct, maybe an empty one."""
        return self.type == "struct" or bool(self.fields)


@dataclass(frozen=True)
class Launch:
    kernel: str  # entry name; "" in a workload file that names none: the module's only entry (`bind_workload`)
    grid: Dim3
    block: Dim3
    arguments: tuple[Argument, ...]
    dynamic_shared: int = 0  # B
    registers: int | None = None  # per thread; None: from ptxas or estimated, as registers_from says
    registers_from: str = ""  # "ptxas" or "estimate" when asked for; "": see ppt_gpu.frontends.prepare
    register_source: str = ""  # the program that `registers` and `static_shared` come from: "ptxas 13.0 -arch sm_80"
    static_shared: int | None = None  # B a block, from that program; None: from the PTX
    repeat: int = 1
    cluster: Dim3 | None = None  # blocks of a cluster along each axis; None: as the kernel's .reqnctapercluster says

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads_per_block(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]


@dataclass(frozen=True)
class Loop:
    """Launches `first` to `end` - 1 of a workload run as a group, `repeat` rounds of it.

    After every round the buffers called `swap` change places: each name stands for the buffer of the next, the last
    for that of the first.
    """

    first: int
    end: int
    repeat: int
    swap: tuple[str, ...] = ()


@dataclass(frozen=True)
class Copy:
    """A host copy before ("in") or after ("out") the launches."""

    bytes: int
    direction: str  # "in" or "out"
    pinned: bool = True
    name: str = ""


@dataclass(frozen=True)
class Workload:
    """Launches that share buffers, run in order. Their module is PTX or CUDA, a task list, or a machine-code trace."""

    name: str
    path: str  # where it was read from, for messages
    ptx_path: str  # a .ptx or .cu file; with `ptx_text` only its name in messages
    launches: tuple[Launch, ...]
    buffers: tuple[Buffer, ...] = ()
    copies: tuple[Copy, ...] = ()
    loops: tuple[Loop, ...] = ()  # by first launch; they do not overlap
    places: tuple[str, ...] = ()  # of each launch in the file, "launch[0]" or "loop[0].launch[1]"; (): "launch[N]"
    symbols: tuple[Buffer, ...] = ()  # content of module variables, by name
    textures: tuple[Texture, ...] = ()  # used as arguments by their names, or bound to the module's .texref variables
    tasklist_path: str = ""
    machine_path: str = ""  # a trace of machine code, or a list of them (ppt_gpu.sass.kernelslist)
    line: dict[str, int] = field(default_factory=dict)  # dotted key -> line, for messages
    ptx_text: str = ""  # the module itself, where a front end made it
    compiler_options: tuple[str, ...] = ()  # for a .cu file
    notes: tuple[str, ...] = ()  # how a front end made it, for the report
    graph: bool = False  # the launches are those of one CUDA graph, each after the one before; else of a stream
    warnings: tuple[str, ...] = ()  # what was read but looks like a mistake, such as a buffer that no launch uses
