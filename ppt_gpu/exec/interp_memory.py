"""Loads, stores and atomics of the interpreter: addresses resolved, checked, recorded, then the data moved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.errors import PptError
from ppt_gpu.exec import interp_float as fp
from ppt_gpu.exec.interp_arith import Execute, is_signed, type_of
from ppt_gpu.exec.interp_convert import in_window
from ppt_gpu.exec.interp_integer import as_int
from ppt_gpu.exec.interp_warp import LANES, Bits, Warp, signed, unsupported, width_of
from ppt_gpu.exec.layout import local_address
from ppt_gpu.exec.memory import LOCAL_WINDOW, SHARED_WINDOW
from ppt_gpu.ptx.instructions import vector_length
from ppt_gpu.ptx.module import Instruction, Mem, Operand, Reg, Vec
from ppt_gpu.ptx.operations import space_of
from ppt_gpu.spec.gpu import MEMORY_SPACES


@dataclass(frozen=True)
class Access:
    """Where each lane of an instruction reads or writes. `place` holds positions in `raw`, a byte array a lane."""

    space: str  # resolved
    raw: list[NDArray[np.uint8]]  # [32] the bytes that the lane's address lies in
    place: list[int]  # [32]
    traced: Bits  # [32] addresses as the trace records them
    size: int  # B a lane

    def load(self, lane: int) -> bytes:
        """The lane's bytes."""
        at = self.place[lane]
        return self.raw[lane][at : at + self.size].tobytes()

    def store(self, lane: int, data: bytes) -> None:
        """Replace the lane's bytes."""
        at = self.place[lane]
        self.raw[lane][at : at + self.size] = np.frombuffer(data, np.uint8)


def access_of(warp: Warp, ins: Instruction, operand: Operand, size: int) -> Access:
    """The resolved addresses of a memory operand. PptError when one is misaligned or belongs to nobody."""
    assert isinstance(operand, Mem), operand
    address = _addresses(warp, operand)
    space, address = _resolve(warp, space_of(ins.modifiers), address)
    access = _place(warp, space, address, size)
    for lane in np.flatnonzero(warp.active).tolist():
        _check(warp, access, lane, int(address[lane]))
    return access


def _addresses(warp: Warp, operand: Mem) -> Bits:
    """Addresses in the instruction's own space; 32-bit registers are zero-extended."""
    if operand.base is None:
        return np.full(LANES, operand.offset & 0xFFFF_FFFF_FFFF_FFFF, np.uint64)
    width = warp.register_width(operand.base) if isinstance(operand.base, Reg) else 64
    offset = np.uint64(operand.offset & 0xFFFF_FFFF_FFFF_FFFF)
    return warp.read(operand.base, width) + offset


def _resolve(warp: Warp, space: str, address: Bits) -> tuple[str, Bits]:
    if space != "generic":
        return space, address
    shared, local = in_window(address, "shared"), in_window(address, "local")
    names = {"shared": shared, "local": local, "global": ~shared & ~local}
    found = [name for name, lanes in names.items() if (lanes & warp.active).any()]
    if len(found) > 1:
        raise PptError(f"lanes of one generic access lie in different state spaces: {' and '.join(found)}")
    window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
    return (found[0], address - np.uint64(window.get(found[0], 0))) if found else ("global", address)


def _place(warp: Warp, space: str, address: Bits, size: int) -> Access:
    block, launched = warp.block, warp.launched
    at = [int(a) for a in address]
    if space == "shared":
        return Access(space, [block.shared] * LANES, at, address, size)
    if space == "param":
        params = np.frombuffer(launched.params, np.uint8)
        return Access(space, [params] * LANES, at, address, size)
    if space == "local":
        threads = [min(int(t), len(block.local) - 1) for t in warp.threads]
        grid_warp = block.linear * -(-len(block.local) // LANES) + warp.number
        stride = launched.layout.local_bytes
        traced = [local_address(grid_warp, stride, a, lane, size) % (1 << 64) for lane, a in enumerate(at)]
        return Access(space, [block.local[t] for t in threads], at, np.array(traced, np.uint64), size)
    memory = launched.memory
    return Access(space, [memory.data] * LANES, [a - memory.base for a in at], address, size)


def _check(warp: Warp, access: Access, lane: int, address: int) -> None:
    thread = int(warp.threads[lane])
    who = f"thread {thread} of block {warp.block.linear}"
    if address % access.size:
        raise PptError(f"{who}: address {address:#x} is not aligned to the {access.size} bytes accessed")
    memory = warp.launched.memory
    if access.space in ("global", "constant"):
        inside = memory.find(address)
        if inside < 0 or address + access.size > int(memory.ends[inside]):
            raise PptError(f"{who}: {access.size} bytes at {address:#x}, {memory.nearest_buffer(address)}")
    elif access.place[lane] < 0 or access.place[lane] + access.size > len(access.raw[lane]):
        size = len(access.raw[lane])
        raise PptError(f"{who}: {access.size} bytes at {address:#x} are outside the {size} {access.space} bytes")


def load(warp: Warp, ins: Instruction) -> None:
    """ld, ldu: signed values fill a wider register with their sign, all others with zeros."""
    count, kind = vector_length(ins), type_of(ins)
    width = width_of(kind)
    access = access_of(warp, ins, ins.operands[1], count * width // 8)
    _record(warp, access)
    destination = ins.operands[0]
    items = destination.items if isinstance(destination, Vec) else (destination,)
    rows = np.zeros((count, LANES), np.uint64)
    for lane in np.flatnonzero(warp.active).tolist():
        data = access.load(lane)
        for i in range(count):
            rows[i, lane] = int.from_bytes(data[i * width // 8 : (i + 1) * width // 8], "little")
    for item, row in zip(items, rows, strict=True):
        warp.write(item, signed(row, width).view(np.uint64) if is_signed(kind) else row)


def store(warp: Warp, ins: Instruction) -> None:
    """st: where lanes write the same bytes the highest lane wins."""
    count, kind = vector_length(ins), type_of(ins)
    width = width_of(kind)
    access = access_of(warp, ins, ins.operands[0], count * width // 8)
    if access.space in ("param", "constant"):
        raise PptError(f"the {access.space} space cannot be written")
    _record(warp, access)
    source = ins.operands[1]
    items = source.items if isinstance(source, Vec) else (source,)
    rows = [warp.read_typed(item, kind) for item in items]
    for lane in np.flatnonzero(warp.active).tolist():
        access.store(lane, b"".join(int(row[lane]).to_bytes(width // 8, "little") for row in rows))


def _record(warp: Warp, access: Access) -> None:
    if access.space in MEMORY_SPACES and access.space != "constant":
        warp.recorder.access(access.space, access.traced, warp.active)


def _exchange(old: int, operands: list[int], bits: int) -> int:
    return operands[0]


def _compare_and_swap(old: int, operands: list[int], bits: int) -> int:
    return operands[1] if old == operands[0] else old


def _increment(old: int, operands: list[int], bits: int) -> int:
    return 0 if old >= operands[0] else old + 1


def _decrement(old: int, operands: list[int], bits: int) -> int:
    return operands[0] if old == 0 or old > operands[0] else old - 1


_BITWISE: dict[str, Callable[[int, list[int], int], int]] = {
    "exch": _exchange,
    "cas": _compare_and_swap,
    "inc": _increment,
    "dec": _decrement,
    "and": lambda old, operands, bits: old & operands[0],
    "or": lambda old, operands, bits: old | operands[0],
    "xor": lambda old, operands, bits: old ^ operands[0],
}


def atomic(warp: Warp, ins: Instruction) -> None:
    """atom, red: the lanes one after another, lowest first."""
    kind = type_of(ins)
    width = width_of(kind)
    returns = ins.base == "atom"
    operation = next((m for m in ins.modifiers if m in _BITWISE or m in ("add", "min", "max")), "")
    if not operation or vector_length(ins) > 1:
        raise unsupported(ins)
    access = access_of(warp, ins, ins.operands[int(returns)], width // 8)
    _record(warp, access)
    sources = [warp.read_typed(operand, kind) for operand in ins.operands[int(returns) + 1 :]]
    before = np.zeros(LANES, np.uint64)
    for lane in np.flatnonzero(warp.active).tolist():
        old = int.from_bytes(access.load(lane), "little")
        before[lane] = old
        new = _updated(operation, kind, old, [int(bits[lane]) for bits in sources])
        access.store(lane, (new & ((1 << width) - 1)).to_bytes(width // 8, "little"))
    if returns:
        warp.write(ins.operands[0], before)


def _updated(operation: str, kind: str, old: int, operands: list[int]) -> int:
    if operation in _BITWISE:
        return _BITWISE[operation](old, operands, width_of(kind))
    if kind in fp.PACKED:
        half = width_of(fp.PACKED[kind])
        mask = (1 << half) - 1
        parts = [_updated(operation, fp.PACKED[kind], old >> s & mask, [operands[0] >> s & mask]) for s in (0, half)]
        return parts[1] << half | parts[0]
    if kind in fp.FLOATS:
        return _updated_float(operation, kind, old, operands[0])
    width = width_of(kind)
    a, b = (as_int(value, width, is_signed(kind)) for value in (old, operands[0]))
    return a + b if operation == "add" else min(a, b) if operation == "min" else max(a, b)


def _updated_float(operation: str, kind: str, old: int, operand: int) -> int:
    a, b = np.array([old], np.uint64), np.array([operand], np.uint64)
    if operation == "add":
        return int(fp.round_to(fp.add(fp.widen(a, kind), fp.widen(b, kind), "rn"), kind)[0])
    return int(fp.extremum([a, b], kind, operation == "max", ())[0])


MEMORY: dict[str, Execute] = {
    **dict.fromkeys(("ld", "ldu"), load),
    **dict.fromkeys(("atom", "red"), atomic),
    "st": store,
}
