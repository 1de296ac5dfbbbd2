"""Where the accesses of the interpreter go: addresses resolved lane by lane, checked, recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.launch.layout import local_address
from ppt_gpu.emulator.memory.memory import CLUSTER_SHIFT, DeviceMemory, in_window
from ppt_gpu.ptx.instructions import is_traced
from ppt_gpu.ptx.module import Instruction, Mem, Operand, Reg, Sym
from ppt_gpu.ptx.operations import space_of
from ppt_gpu.spec.gpu import MEMORY_SPACES
from reference.interpreter.block import LANES, Bits, Block
from reference.interpreter.warp import Warp


class Place(NamedTuple):
    """Where one lane reads or writes: `at` is a position in `raw`, the bytes of an object or of the device memory."""

    space: str  # resolved: "global", "shared", "local", "param" or "constant"
    address: int  # in that space
    raw: NDArray[np.uint8]
    at: int
    traced: int  # the address as the trace records it
    group: int  # lanes of the same group make one access: the space, and for shared memory the block


@dataclass(frozen=True)
class Access:
    """What the lanes of one instruction read or write."""

    places: list[Place | None]  # [32] None for inactive lanes
    size: int  # B a lane

    def load(self, lane: int) -> bytes:
        """The lane's bytes."""
        place = self._place(lane)
        return place.raw[place.at : place.at + self.size].tobytes()

    def store(self, lane: int, data: bytes) -> None:
        """Replace the lane's bytes."""
        place = self._place(lane)
        place.raw[place.at : place.at + self.size] = np.frombuffer(data, np.uint8)

    def _place(self, lane: int) -> Place:
        place = self.places[lane]
        assert place is not None
        return place

    def lanes(self) -> list[int]:
        """The lanes that take part, the lowest first."""
        return [lane for lane, place in enumerate(self.places) if place is not None]

    def space(self, lane: int) -> str:
        """The state space of the lane's address."""
        return self._place(lane).space

    def only_in(self, spaces: tuple[str, ...]) -> None:
        """PptError unless every lane lies in one of `spaces`."""
        for place in self.places:
            if place is not None and place.space not in spaces:
                raise PptError(f"the instruction does not work in {place.space} memory")


def access_of(warp: Warp, ins: Instruction, operand: Operand, size: int, space: str = "") -> Access:
    """The resolved addresses of a memory operand. PptError when one is misaligned or belongs to nobody.

    space: that of the operand, where the instruction names several.
    """
    cluster = not space and "shared::cluster" in ins.modifiers
    space = space or space_of(ins.modifiers)
    if space == "param" and _is_framed(warp, operand):
        space = "frame"  # a parameter or result of a function: in its threads' stacks, never recorded
    address = address_lanes(warp, operand)
    places: list[Place | None] = [None] * LANES
    for lane in np.flatnonzero(warp.active).tolist():
        place = _place(warp, space, int(address[lane]), lane, size, cluster)
        _check(warp, place, lane, size)
        places[lane] = place
    return Access(places, size)


def _is_framed(warp: Warp, operand: Operand) -> bool:
    return isinstance(operand, Mem) and isinstance(operand.base, Sym) and operand.base.name in warp.kernel.offsets


def record(warp: Warp, ins: Instruction, access: Access) -> None:
    """Note the access in the trace: the lanes of the same group as the lowest active one."""
    first = next((place for place in access.places if place is not None), None)
    space = space_of(ins.modifiers)
    if not is_traced(ins):
        return
    group = np.array([p is not None and first is not None and p.group == first.group for p in access.places])
    traced = np.array([p.traced if p is not None else 0 for p in access.places], np.uint64)
    if first is None or first.space == "param":
        group[:] = False
    found = first.space if first is not None and first.space != "param" else "global"
    warp.recorder.access(found if group.any() or space == "generic" else _own(space), traced, group)


def record_places(warp: Warp, places: list[Place | None]) -> None:
    """Note an access to global memory."""
    traced = np.array([place.traced if place is not None else 0 for place in places], np.uint64)
    warp.recorder.access("global", traced, np.array([place is not None for place in places]))


def _own(space: str) -> str:
    return space if space in MEMORY_SPACES else "global"


def address_lanes(warp: Warp, operand: Operand) -> Bits:
    """Addresses in the instruction's own space; 32-bit registers are zero-extended."""
    assert isinstance(operand, Mem), operand
    if operand.base is None:
        return np.full(LANES, operand.offset & 0xFFFF_FFFF_FFFF_FFFF, np.uint64)
    width = warp.register_width(operand.base) if isinstance(operand.base, Reg) else 64
    offset = np.uint64(operand.offset & 0xFFFF_FFFF_FFFF_FFFF)
    return warp.read(operand.base, width) + offset


def _place(warp: Warp, space: str, address: int, lane: int, size: int, cluster: bool) -> Place:
    if space == "generic":
        space, cluster = in_window(address)[0] or "global", True
    launched = warp.launched
    if space in ("global", "constant"):
        memory = launched.memory
        return Place(space, address, memory.data, address - memory.base, address, 0)
    address &= 0xFFFF_FFFF  # offsets of 32 bits
    if space == "shared":
        return _shared(warp, address, cluster)
    if space == "frame":
        return Place(space, address, warp.local(lane), address, address, 3)
    if space == "param":
        return Place(space, address, np.frombuffer(launched.params, np.uint8), address, address, 2)
    block = warp.block
    thread = min(int(warp.threads[lane]), len(block.local) - 1)
    grid_warp = block.linear * -(-len(block.local) // LANES) + warp.number
    traced = local_address(grid_warp, launched.layout.local_bytes, address, lane, size) % (1 << 64)
    return Place(space, address, block.local[thread], address, traced, 1)


def _shared(warp: Warp, address: int, cluster: bool) -> Place:
    """A byte of the own block, or of the block of the cluster whose rank + 1 stands above the offset."""
    tag = address >> CLUSTER_SHIFT if cluster else 0
    if tag == 0:
        return Place("shared", address, warp.block.shared, address, address, 16)
    offset = address & ((1 << CLUSTER_SHIFT) - 1)
    if tag > len(warp.block.cluster):
        raise PptError(f"address {address:#x} is in no block of the cluster, which has {len(warp.block.cluster)}")
    block: Block = warp.block.cluster[tag - 1]
    traced = offset if block is warp.block else address
    return Place("shared", offset, block.shared, offset, traced, 16 + tag)


def _check(warp: Warp, place: Place, lane: int, size: int) -> None:
    wrong = _wrong(warp.launched.memory, place, size)
    if wrong:
        raise PptError(f"thread {int(warp.threads[lane])} of block {warp.block.linear}: {wrong}")


def _wrong(memory: DeviceMemory, place: Place, size: int) -> str:
    """Why no `size` bytes can be accessed there, "" where they can."""
    if place.address % size:
        return f"address {place.address:#x} is not aligned to the {size} bytes accessed"
    if place.space in ("global", "constant"):
        if not memory.holds(place.address, size):
            return f"{size} bytes at {place.address:#x}, {memory.nearest_buffer(place.address)}"
    elif place.at + size > len(place.raw):
        return f"{size} bytes at {place.address:#x} are outside the {len(place.raw)} {place.space} bytes"
    return ""
