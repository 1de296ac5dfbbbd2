"""Device memory of a functional run: one flat arena at a fixed virtual address, so every run sees the same addresses.

Address map (64-bit virtual addresses)::

    0 ...                     shared and local addresses inside their own state space (offsets, from 0)
    SHARED_WINDOW + offset    the same shared byte as a generic address
    (rank + 1) << 24 | offset the shared byte of block `rank` of the cluster (mapa); rank + 1 = 0: of the own block
    LOCAL_WINDOW + offset     the same local byte of the executing thread as a generic address
    PARAM_WINDOW + offset     a byte of the kernel's parameters as a generic address (cvta.param)
    FUNCTION_BASE + 16 n      the address of the module's n-th function, which only calls can use
    GLOBAL_BASE ...           `.const` variables, `.global` variables, then buffers: const and global addresses
                              are generic addresses already

Each object starts on a 512-byte boundary, as cudaMalloc gives, and is followed by at least 512 bytes that belong
to nobody, so that running off an object's end never hits the next one unnoticed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ppt_gpu.common.errors import BudgetError, PptError, did_you_mean
from ppt_gpu.common.units import format_bytes
from ppt_gpu.ptx.module import Module, Variable
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.fill import buffer_bytes, check_init, fill
from ppt_gpu.workload.texture import Texture, TextureTable
from ppt_gpu.workload.workload import Buffer, Range

SHARED_WINDOW = 0x0100_0000_0000
LOCAL_WINDOW = 0x0200_0000_0000
PARAM_WINDOW = 0x0300_0000_0000
CLUSTER_SHIFT = 24  # bits of a shared address below the rank of a block of the cluster
WINDOW_BYTES = 0x1_0000_0000  # size of each window
WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAM_WINDOW}
GLOBAL_BASE = 0x7000_0000_0000
NARROW_BASE = 0x0100_0000  # instead, in modules whose addresses have 32 bits
FUNCTION_BASE = 0x0400_0000_0000
FUNCTION_STEP = 16
HEAP = "heap of malloc"  # the object that kernels allocate from, where the module declares malloc
#: the object with the barrier of cooperative groups' grid_group, where the module reads %envreg, which point to it
GRID_WORKSPACE = "workspace of grid_group"
GRID_WORKSPACE_BYTES = 256
ALIGNMENT = 512  # B
HOST_LINE = 64  # B, of the caches of CPUs
NULL_BYTES = 1 << 24  # nothing lies below: such an address is a null pointer plus something
_OPAQUE = ("texref", "samplerref", "surfref")  # types of handles, which have no memory
GUARD = 512  # B that belong to nobody after every object


def in_window(address: int) -> tuple[str, int]:
    """The space whose window a generic address lies in, "" for none, and where it lies there."""
    for space, start in WINDOWS.items():
        if start <= address < start + WINDOW_BYTES:
            return space, address - start
    return "", address


@dataclass(frozen=True)
class DeviceMemory:
    """The arena. Byte `address` lives in `data[address - base]`; objects are sorted by address.

    The compiled code and the interpreter write into `data`, so the content outlives a launch.
    """

    base: int
    data: NDArray[np.uint8]  # [bytes of the arena]
    names: tuple[str, ...]  # [R] object names: module variables, then buffers
    starts: NDArray[np.int64]  # [R] virtual address of the first byte, ascending
    ends: NDArray[np.int64]  # [R] virtual address after the last byte
    types: tuple[str, ...]  # [R] PTX element types
    spaces: tuple[str, ...]  # [R] "global" or "const"
    copied: tuple[bool, ...]  # [R] the host copied it just before the launch
    warnings: tuple[str, ...] = ()
    textures: TextureTable = field(default_factory=TextureTable)
    index: Mapping[str, int] = field(default_factory=dict)  # name -> position in the arrays above
    #: buffers that were never written: zeros that take no room on the host until somebody touches their pages
    blank: frozenset[str] = frozenset()

    @classmethod
    def build(
        cls,
        module: Module,
        buffers: Sequence[Buffer] = (),
        symbols: Sequence[Buffer] = (),
        *,
        directory: str | Path = ".",
        budget: Budget | None = None,
        textures: Sequence[Texture] = (),
        unread: bool = False,
    ) -> DeviceMemory:
        """Place the module's variables and `buffers`, and fill them.

        unread: it makes no difference what buffers hold; only those are filled whose content comes from files.

        `symbols` gives content to module variables by name (`Buffer.type` and `count` describe that content);
        `directory` is where relative npy: files are looked for. Raises PptError for an unknown symbol, content that
        does not fit, a name used twice or a bad .npy file, and BudgetError when `budget.memory` is exceeded.
        """
        placed = [_Object.of_variable(v) for v in _by_space(module)] + [_Object.of_buffer(b) for b in buffers]
        if any(name in module.functions and not module.functions[name].has_body for name in ("malloc", "free")):
            placed.append(_Object(HEAP, "b8", "global", (budget or Budget()).heap // 16 * 16, ALIGNMENT, False))
        if any("%envreg" in line for line in module.lines):
            placed.append(_Object(GRID_WORKSPACE, "b8", "global", GRID_WORKSPACE_BYTES, ALIGNMENT, False))
        _unique(placed)
        limit = (budget or Budget()).memory
        base = GLOBAL_BASE if module.address_size == 64 else NARROW_BASE
        size = _place(placed, base)
        if module.address_size == 32:
            limit = min(limit, (1 << 32) - NARROW_BASE)
        if size > limit:
            raise BudgetError(
                f"the buffers need {format_bytes(size)} of device memory, the budget is {format_bytes(limit)}",
                hint="make the buffers smaller, or raise the memory budget: --max-memory SIZE, or Budget(memory=BYTES)",
            )
        warnings: list[str] = []
        memory = cls(
            base=base,
            data=_zeros(size),
            names=tuple(o.name for o in placed),
            starts=np.array([o.start for o in placed], np.int64),
            ends=np.array([o.start + o.bytes for o in placed], np.int64),
            types=tuple(o.type for o in placed),
            spaces=tuple(o.space for o in placed),
            copied=tuple(o.copied for o in placed),
            index={o.name: i for i, o in enumerate(placed)},
            blank=frozenset(b.name for b in buffers if b.init == "zeros" or (unread and not _of_file(b))),
        )
        for variable in _by_space(module):
            memory._initialise(variable, module, warnings)
        for buffer in buffers:
            if buffer.name in memory.blank:
                check_init(buffer)
            else:
                fill(memory.bytes_of(buffer.name), buffer, Path(directory))
        for symbol in symbols:
            memory._set_symbol(symbol, module, Path(directory))
        object.__setattr__(memory, "warnings", tuple(warnings))
        opaque = [v.name for v in module.variables.values() if v.type in _OPAQUE]
        object.__setattr__(memory, "textures", TextureTable(textures, memory._extent, opaque))
        return memory

    def address_of(self, name: str) -> int:
        """The virtual address of buffer or variable `name`, the handle of a texture. PptError if there is none."""
        if name in self.textures.handles:
            return self.textures.handles[name]
        return int(self.starts[self._position(name)])

    def size_of(self, name: str) -> int:
        """The size of `name` in bytes, 0 for a texture. PptError if there is none."""
        if name in self.textures.handles:
            return 0
        i = self._position(name)
        return int(self.ends[i] - self.starts[i])

    def bytes_of(self, name: str) -> NDArray[np.uint8]:
        """A writable view of the bytes of `name`."""
        i = self._position(name)
        return self.data[int(self.starts[i]) - self.base : int(self.ends[i]) - self.base]

    def view(self, name: str, dtype: DTypeLike) -> NDArray:
        """A writable view of `name` as `dtype` elements. PptError if there is none or its size is no multiple."""
        raw = self.bytes_of(name)
        if len(raw) % np.dtype(dtype).itemsize:
            raise PptError(f"'{name}' has {len(raw)} bytes, not a whole number of {np.dtype(dtype)} elements")
        return raw.view(dtype)

    def copy(self) -> DeviceMemory:
        """The same content in an arena of its own; blank buffers stay so."""
        data = _zeros(len(self.data))
        for name, start, end in zip(self.names, self.starts - self.base, self.ends - self.base, strict=True):
            if name not in self.blank:
                data[start:end] = self.data[start:end]
        return replace(self, data=data)

    @property
    def const_end(self) -> int:
        """The first address behind the `.const` variables, which lie first."""
        ends = [int(end) for end, space in zip(self.ends, self.spaces, strict=True) if space == "const"]
        return max(ends, default=self.base)

    def ranges(self) -> tuple[Range, ...]:
        """The objects in the global space, by address."""
        return tuple(
            Range(name, int(start), int(end - start), copied)
            for name, start, end, space, copied in zip(
                self.names, self.starts, self.ends, self.spaces, self.copied, strict=True
            )
            if space == "global"
        )

    def find(self, address: int) -> int:
        """The position of the object that holds `address`, or -1."""
        starts, ends = self._extents
        i = bisect_right(starts, address) - 1
        return i if i >= 0 and address < ends[i] else -1

    def holds(self, address: int, size: int) -> bool:
        """Whether the `size` bytes from `address` on are in one object."""
        i = self.find(address)
        return i >= 0 and address + size <= self._extents[1][i]

    @cached_property
    def _extents(self) -> tuple[list[int], list[int]]:
        """`starts` and `ends`, for single addresses: NumPy takes several times as long for one."""
        return self.starts.tolist(), self.ends.tolist()

    def nearest_buffer(self, address: int) -> str:
        """Where `address` is relative to the nearest object, for an error message."""
        if address < NULL_BYTES:
            return "in no memory: a null pointer" + (f" plus {address} bytes" if address else "")
        if not self.names:
            return "in no memory: there are no buffers"
        inside = self.find(address)
        if inside >= 0:
            return f"byte {address - int(self.starts[inside])} of {self._describe(inside)}"
        before = {start - address: i for i, start in enumerate(self.starts.tolist()) if start > address}
        after = {address - end: i for i, end in enumerate(self.ends.tolist()) if end <= address}
        if before and (not after or min(before) < min(after)):
            return f"{min(before)} bytes before {self._describe(before[min(before)])}"
        return f"{min(after)} bytes after the end of {self._describe(after[min(after)])}"

    def _describe(self, i: int) -> str:
        start, end = int(self.starts[i]), int(self.ends[i])
        return f"'{self.names[i]}' ({self.types[i]}, {end - start} bytes at {start:#x})"

    def _extent(self, name: str) -> tuple[int, int]:
        """Address and bytes of a buffer."""
        return self.address_of(name), self.size_of(name)

    def _position(self, name: str) -> int:
        if name not in self.index:
            raise PptError(f"no buffer or variable '{name}'", hint=did_you_mean(name, self.names))
        return self.index[name]

    def _initialise(self, variable: Variable, module: Module, warnings: list[str]) -> None:
        raw = self.bytes_of(variable.name)
        if variable.init:
            content = np.frombuffer(variable.init, np.uint8)[: len(raw)]
            raw[: len(content)] = content
        for offset, symbol, addend in variable.init_symbols:
            if symbol in self.index:
                address = self.address_of(symbol) + addend
                raw[offset : offset + 8] = np.frombuffer(address.to_bytes(8, "little"), np.uint8)
            elif has_function(module, symbol):
                address = function_address(module, symbol) + addend
                raw[offset : offset + 8] = np.frombuffer(address.to_bytes(8, "little"), np.uint8)
            else:
                warnings.append(f"'{variable.name}' holds the address of '{symbol}', which is not in memory: 0")

    def _set_symbol(self, symbol: Buffer, module: Module, directory: Path) -> None:
        if symbol.name not in module.variables or symbol.name not in self.index:
            known = [v.name for v in _by_space(module)]
            raise PptError(f"the module has no variable '{symbol.name}'", hint=did_you_mean(symbol.name, known))
        raw, size = self.bytes_of(symbol.name), buffer_bytes(symbol)
        if size > len(raw):
            raise PptError(f"the content of '{symbol.name}' has {size} bytes, the variable only {len(raw)}")
        fill(raw[:size], symbol, directory)


def function_address(module: Module, name: str) -> int:
    """What a pointer to a function or kernel of the module holds. ValueError if there is none."""
    own = module.functions[name].name if name in module.functions else name  # an alias is the function itself
    return FUNCTION_BASE + FUNCTION_STEP * (1 + [*module.functions, *module.kernels].index(own))


def has_function(module: Module, name: str) -> bool:
    """Whether the module has a function or kernel of this name."""
    return name in module.functions or name in module.kernels


@dataclass
class _Object:
    name: str
    type: str
    space: str
    bytes: int
    align: int
    copied: bool
    start: int = 0

    @staticmethod
    def of_variable(v: Variable) -> _Object:
        return _Object(v.name, v.type, v.space, v.bytes, v.align, False)

    @staticmethod
    def of_buffer(b: Buffer) -> _Object:
        return _Object(b.name, b.type, "global", buffer_bytes(b), ALIGNMENT, b.copied)


def _of_file(buffer: Buffer) -> bool:
    """What is wrong in a file shows when it is read."""
    return buffer.init.startswith("npy:")


def _by_space(module: Module) -> list[Variable]:
    """The module's variables that live in device memory, constants first."""
    variables = list(module.variables.values())
    return [v for space in ("const", "global") for v in variables if v.space == space and v.type not in _OPAQUE]


def _unique(objects: Sequence[_Object]) -> None:
    seen: set[str] = set()
    for o in objects:
        if o.name in seen:
            raise PptError(f"two buffers or variables are called '{o.name}'", hint="rename the buffer")
        seen.add(o.name)


def _zeros(size: int) -> NDArray[np.uint8]:
    """Zeros that begin at a line of the host's caches, as buffers do in memory: rows of warps then lie in few lines."""
    room = np.zeros(size + HOST_LINE, np.uint8)
    begin = -room.ctypes.data % HOST_LINE
    return room[begin : begin + size]


def _place(objects: Sequence[_Object], base: int) -> int:
    """Give every object its address, in order. Returns the size of the arena in bytes."""
    cursor = base + GUARD
    for o in objects:
        align = max(ALIGNMENT, o.align)
        o.start = -(-cursor // align) * align
        cursor = o.start + o.bytes + GUARD
    return cursor - base
