"""The state of one warp in the interpreter: registers as 64-bit lanes, operands in, results out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.memory.memory import function_address, has_function
from ppt_gpu.ptx.linking.linked import LinkedKernel, is_framed
from ppt_gpu.ptx.module import TYPE_BYTES, Imm, Instruction, Neg, Operand, Pair, Reg, Sink, Special, Sym
from ppt_gpu.ptx.operations import types_of
from reference.interpreter.block import LANES, Bits, Block, Launched, Mask
from reference.interpreter.special import special_register
from reference.interpreter.trace import Recorder


@dataclass(eq=False)
class Warp:
    """One warp. `active` are the lanes that execute the current instruction, its guard applied."""

    block: Block
    number: int  # in the block
    live: Mask  # lanes that have not exited
    recorder: Recorder
    registers: NDArray[np.uint64] = field(init=False)  # [registers, 32]
    upper: dict[int, list[int]] = field(default_factory=dict)  # upper halves of 128-bit registers
    active: Mask = field(init=False)
    joined: Mask = field(init=False)  # lanes of the current path, before the guard
    frame: int = 0  # offset of the running function's stack frame in local memory
    executed: int = 0  # warp instructions so far, the current one included
    gives_way: bool = False  # some of its lanes wait for an mbarrier: the turn ends

    def __post_init__(self) -> None:
        self.registers = np.zeros((len(self.kernel.registers), LANES), np.uint64)
        self.active = self.live.copy()
        self.joined = self.live.copy()

    @property
    def launched(self) -> Launched:
        return self.block.launched

    @property
    def kernel(self) -> LinkedKernel:
        return self.block.launched.kernel

    @property
    def threads(self) -> NDArray[np.int64]:
        """Linear thread ids in the block."""
        return self.number * LANES + np.arange(LANES)

    def local(self, lane: int) -> NDArray[np.uint8]:
        """The local memory of a lane's thread; lanes beyond the block see that of the last one."""
        return self.block.local[min(int(self.threads[lane]), len(self.block.local) - 1)]

    def note(self, instruction: Instruction, flag: int) -> None:
        """Remember `flag` for an instruction, for a warning."""
        notes = self.launched.notes
        notes[instruction.index] = notes.get(instruction.index, 0) | flag

    def read(self, operand: Operand, width: int) -> Bits:
        """The operand's lowest `width` bits, zero-extended."""
        mask = np.uint64((1 << width) - 1)
        if isinstance(operand, Reg):
            return self.registers[operand.id] & mask
        if isinstance(operand, Imm):
            return np.full(LANES, immediate_bits(operand, width), np.uint64)
        if isinstance(operand, Neg):
            return (self.registers[operand.reg.id] ^ np.uint64(1)) & mask
        if isinstance(operand, Special):
            return special_register(operand.name, self.block, self.number, self.executed) & mask
        if isinstance(operand, Sym):
            return np.full(LANES, self.address_of(operand) & int(mask), np.uint64)
        raise PptError(f"an operand of the kind {type(operand).__name__} cannot be read here")

    def read_wide(self, operand: Operand) -> list[int]:
        """A 128-bit operand: the value of each lane."""
        if isinstance(operand, Imm):
            return [immediate_bits(operand, 128)] * LANES
        assert isinstance(operand, Reg), operand
        high = self.upper.get(operand.id, [0] * LANES)
        return [h << 64 | int(low) for h, low in zip(high, self.registers[operand.id], strict=True)]

    def write_wide(self, operand: Operand, values: list[int]) -> None:
        """Put 128-bit `values` into a destination register in the active lanes."""
        if isinstance(operand, Sink):
            return
        assert isinstance(operand, Reg), operand
        high = self.upper.setdefault(operand.id, [0] * LANES)
        for lane in np.flatnonzero(self.active).tolist():
            self.registers[operand.id, lane] = values[lane] & (1 << 64) - 1
            high[lane] = values[lane] >> 64

    def read_typed(self, operand: Operand, type_name: str) -> Bits:
        """The operand as type `type_name`: decimal constants are converted to a float type."""
        if isinstance(operand, Imm) and type_name in ("f16", "bf16", "f32", "f64"):
            from reference.interpreter.float_rounding import exactly, round_to

            if operand.bits is None or operand.width != width_of(type_name):
                return round_to(exactly(np.full(LANES, float(operand.value))), type_name)
        return self.read(operand, width_of(type_name))

    def write(self, operand: Operand, bits: Bits) -> None:
        """Put `bits` into a destination register in the active lanes."""
        self.write_where(operand, bits, self.active)

    def write_where(self, operand: Operand, bits: Bits, lanes: Mask) -> None:
        """Put `bits` into a destination register in `lanes`."""
        if isinstance(operand, Pair):
            operand = operand.first
        if isinstance(operand, Sink):
            return
        assert isinstance(operand, Reg), operand
        mask = np.uint64((1 << self.register_width(operand)) - 1)
        self.registers[operand.id][lanes] = (bits & mask)[lanes]

    def register_width(self, reg: Reg) -> int:
        """Bits of the register."""
        return width_of(self.kernel.registers[reg.id].type)

    def address_of(self, symbol: Sym) -> int:
        """The address of a symbol in its own state space. PptError for one without an address here."""
        layout = self.launched.layout
        if symbol.name in layout.local:
            return layout.local[symbol.name] + symbol.offset + (self.frame if is_framed(symbol.name) else 0)
        if symbol.name in layout.shared:
            return layout.shared[symbol.name] + symbol.offset
        for param in self.kernel.params:
            if param.name == symbol.name:
                return param.offset + symbol.offset
        launched = self.launched
        if symbol.name in launched.memory.index or not has_function(launched.module, symbol.name):
            return launched.memory.address_of(symbol.name) + symbol.offset
        return function_address(launched.module, symbol.name) + symbol.offset


def immediate_bits(operand: Imm, width: int) -> int:
    """The lowest `width` bits of a literal. PptError for a decimal float, which has no bits without a type."""
    if operand.bits is not None:
        return operand.bits & ((1 << width) - 1)
    if isinstance(operand.value, float):
        raise PptError(f"the constant {operand.value} needs a floating-point instruction")
    return operand.value & ((1 << width) - 1)


def width_of(type_name: str) -> int:
    """Bits of a PTX type; predicates have one."""
    return 1 if type_name == "pred" else 8 * TYPE_BYTES[type_name]


def signed(bits: Bits, width: int) -> NDArray[np.int64]:
    """Two's-complement values of the lowest `width` bits."""
    shift = np.uint64(64 - width)
    return (bits << shift).view(np.int64) >> np.int64(64 - width)


def type_of(ins: Instruction) -> str:
    """The (last) data type of the instruction."""
    types = types_of(ins.modifiers)
    if not types:
        raise unsupported(ins, "an instruction without a type")
    return types[-1]


def is_signed(type_name: str) -> bool:
    """Whether values of the type have a sign in integer arithmetic."""
    return type_name[0] == "s"


def as_int(value: int, width: int, is_signed: bool) -> int:
    """A register's bits as a Python integer."""
    value &= (1 << width) - 1
    return value - (1 << width) if is_signed and value >> (width - 1) else value


def truncate(values: NDArray, width: int) -> Bits:
    """The lowest `width` bits of integers of any sign."""
    return values.astype(np.int64).view(np.uint64) & np.uint64((1 << width) - 1)


def unsupported(instruction: Instruction, why: str = "the interpreter does not know it") -> PptError:
    """The error for an instruction that cannot be executed."""
    return PptError(f"cannot execute '{instruction.opcode}': {why}")


Execute = Callable[[Warp, Instruction], None]
