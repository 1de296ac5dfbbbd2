"""What a PTX instruction does: operands read and written, machine operation, memory space, bytes a lane moves.

Everything about an opcode is looked up once and cached; the table itself is `ppt_gpu.ptx.table`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ppt_gpu.common.errors import PptError, did_you_mean, nearest
from ppt_gpu.ptx.module import TYPE_BYTES, Imm, Instruction, Kernel, Mem, Operand, Reg, Sym
from ppt_gpu.ptx.operations import operation_of, space_of, types_of
from ppt_gpu.ptx.table import FIRST, NO_DESTINATION, NONE, SCALAR_TYPES, TABLE, UPDATE, WITH_DESTINATION

_TYPE_LIKE = re.compile(r"[busf]\d{1,4}$")
_CARRY_IN = frozenset(("addc", "subc", "madc"))
#: base opcodes whose accesses a functional run records
_RECORDED = "ld ldu st atom red ldmatrix stmatrix wmma cp multimem tex tld4 suld sust sured"
_TRACED = frozenset(_RECORDED.split())
#: mbarrier instructions that warps arrive with, or wait
_MEETING = frozenset(["init", "arrive", "arrive_drop", "expect_tx", "complete_tx", "test_wait", "try_wait"])
_VECTOR = {"v2": 2, "v4": 4, "v8": 8}


@dataclass(frozen=True, slots=True)
class Form:
    """What is known of one whole opcode ("ld.global.v2.f32")."""

    opcode: str
    base: str
    modifiers: tuple[str, ...]
    least: int  # operands
    most: int
    destination: str  # table.FIRST, UPDATE or NONE
    operation: str
    label: int  # position of the operand that is a label: 0 for bra, 1 for brx, 3 for call, else -1
    carry_in: bool  # reads the carry flag
    carry_out: bool  # writes the carry flag
    space: str | None  # memory space, None when the instruction does not access memory
    access: str | None  # "load", "store", "atomic"
    plain: bool  # takes operands, none of them a label, and leaves the carry flag alone


def _destination(opcode: str, usual: str) -> str:
    if opcode.startswith(WITH_DESTINATION):
        return FIRST
    return NONE if opcode.startswith(NO_DESTINATION) else usual


def _memory(operation: str) -> tuple[str | None, str | None]:
    access, _, space = operation.partition(".")
    if access in ("load", "store", "atomic"):
        space = space.partition(".")[0]
        return access, ("global" if space == "texture" else space)
    return None, None


@lru_cache(maxsize=65536)
def form(opcode: str) -> Form:
    """The form of a whole opcode. Raises PptError (without a place) for an unknown opcode or data type."""
    base, *rest = opcode.split(".")
    modifiers = tuple(rest)
    row = TABLE.get(base)
    if row is None:
        instead = f"--assume {base}=CLASS times it as sfu, tensor, ... without executing it"
        raise PptError(f"unknown instruction '{base}'", hint=did_you_mean(base, TABLE) or instead)
    for modifier in modifiers:
        if _TYPE_LIKE.match(modifier) and modifier not in SCALAR_TYPES:
            close = nearest(modifier, SCALAR_TYPES)
            hint = f"did you mean '{opcode.replace(modifier, close)}'?" if close else None
            raise PptError(f"unknown type '.{modifier}' in '{opcode}'", hint=hint)
    try:
        operation = operation_of(base, modifiers, row)
    except ValueError as reason:
        raise PptError(f"cannot tell what '{opcode}' does: {reason}", hint="write the opcode in full") from None
    access, space = _memory(operation)
    label = {"bra": 0, "brx": 1, "call": 3}.get(base, -1)
    carry_in, carry_out = base in _CARRY_IN, "cc" in modifiers
    return Form(
        opcode=opcode,
        base=base,
        modifiers=modifiers,
        least=row.least,
        most=row.most,
        destination=_destination(opcode, row.destination),
        operation=operation,
        label=label,
        carry_in=carry_in,
        carry_out=carry_out,
        space=space,
        access=access,
        plain=row.most > 0 and label < 0 and not carry_in and not carry_out,
    )


def operation(instruction: Instruction) -> str:
    """The machine operation that the instruction is when nothing expands it: "fp32.fma", "load.global"."""
    return form(instruction.opcode).operation


def loads_launch_parameter(kernel: Kernel, instruction: Instruction) -> bool:
    """Does it load a parameter of the launch, which is in the constant bank? Those of functions are in registers."""
    if operation(instruction) != "load.param":
        return False
    address = instruction.operands[1]
    base = address.base if isinstance(address, Mem) else address
    return not isinstance(base, Sym) or any(base.name == parameter.name for parameter in kernel.params)


def memory_space(instruction: Instruction) -> str | None:
    """ "global", "shared", "local", "constant", "param" or "generic"; None when no memory is accessed."""
    return form(instruction.opcode).space


def access_kind(instruction: Instruction) -> str | None:
    """ "load", "store" or "atomic"; None when no memory is accessed."""
    return form(instruction.opcode).access


def adds_floats(instruction: Instruction) -> bool:
    """Is it an atomic addition of floating-point numbers?"""
    last = instruction.modifiers[-1] if instruction.modifiers else ""
    return access_kind(instruction) == "atomic" and "add" in instruction.modifiers and last.startswith(("f", "bf"))


def is_memory(instruction: Instruction) -> bool:
    return form(instruction.opcode).access is not None


def is_traced(instruction: Instruction) -> bool:
    """Does a functional run record an address for it (see `ppt_gpu.emulator.trace.trace.Trace.access_start`)?

    Of constants only where a register tells which. Also of mbarriers, and of barriers that not all threads of the block
    need come to (`ppt_gpu.emulator.memory.mbarrier_word`).
    """
    found = form(instruction.opcode)
    if found.base == "mbarrier":
        return bool(_MEETING & set(found.modifiers[:1]))
    if found.base in ("bar", "barrier"):
        return is_named_barrier(instruction)
    if found.base == "cp" and found.access is None:
        return "mbarrier" in found.modifiers
    if found.base == "cp" and found.space != "global":  # from one block's shared memory to another's
        return False
    if found.space == "constant":
        return any(isinstance(operand, Mem) and isinstance(operand.base, Reg) for operand in instruction.operands)
    return found.base in _TRACED and found.access is not None and found.space != "param"


def names_other_blocks(instruction: Instruction) -> bool:
    """Does it make, or take, addresses of the shared memory of other blocks of the cluster?"""
    return instruction.base == "mapa" or "shared::cluster" in instruction.opcode


def is_bulk(instruction: Instruction) -> bool:
    """A copy of any number of bytes by one lane (cp.async.bulk, cp.reduce.async.bulk) or a wait for such copies."""
    found = form(instruction.opcode)
    return found.base == "cp" and "bulk" in found.modifiers


def is_lane_copy(instruction: Instruction) -> bool:
    """A copy of each lane's bytes from global to shared memory beside the warp (cp.async, which is no bulk copy)."""
    found = form(instruction.opcode)
    return found.base == "cp" and found.access == "load" and not is_bulk(instruction)


def copied(instruction: Instruction) -> Operand | None:
    """What a mov gives to its register as it is; None where it takes a value apart, and for all else."""
    whole = instruction.base == "mov" and isinstance(instruction.operands[0], Reg)
    return instruction.operands[1] if whole else None


def is_branch(instruction: Instruction) -> bool:
    """bra and brx: control goes to a label. Calls and exits are not."""
    return form(instruction.opcode).base in ("bra", "brx")


def is_exit(instruction: Instruction) -> bool:
    """ret, exit and trap: the thread leaves the function."""
    return form(instruction.opcode).base in ("ret", "exit", "trap")


def is_call(instruction: Instruction) -> bool:
    return form(instruction.opcode).base == "call"


def is_barrier(instruction: Instruction) -> bool:
    """A barrier of the block (not one of the warp, nor of the cluster) at which the warp waits."""
    found = form(instruction.opcode)
    return found.operation == "barrier" and not {"warp", "arrive", "cluster"} & set(found.modifiers)


def is_named_barrier(instruction: Instruction) -> bool:
    """A barrier of the block that has a number, a count of threads, or that the warp only arrives at."""
    found = form(instruction.opcode)
    if found.base not in ("bar", "barrier") or {"warp", "cluster"} & set(found.modifiers):
        return False
    number, threads = barrier_operands(instruction)
    plain = number is None or (isinstance(number, Imm) and number.value == 0)
    return "arrive" in found.modifiers or threads is not None or not plain


def barrier_operands(instruction: Instruction) -> tuple[Operand | None, Operand | None]:
    """(number, threads) of a barrier of the block; None where it does not say."""
    operands = instruction.operands[1:-1] if "red" in instruction.modifiers else instruction.operands
    number, threads = (*operands, None, None)[:2]
    return number, threads


def vector_length(instruction: Instruction) -> int:
    """Elements a lane moves: 1, or 2, 4, 8 of .v2, .v4, .v8."""
    return next((_VECTOR[m] for m in form(instruction.opcode).modifiers if m in _VECTOR), 1)


def access_type(instruction: Instruction) -> str:
    """The data type of a memory access: "f32". "" when the opcode names none."""
    types = types_of(form(instruction.opcode).modifiers)
    return types[-1] if types else ""


def access_bytes(instruction: Instruction) -> int:
    """Bytes that one lane moves to or from memory; 0 when no memory is accessed or the instruction does not say."""
    found = form(instruction.opcode)
    if found.access is None:
        return 0
    if found.base == "cp":
        if is_bulk(instruction):
            return 0
        sizes = [operand.value for operand in instruction.operands[2:3] if isinstance(operand, Imm)]
        return int(sizes[0]) if sizes else 0
    if found.base in ("ldmatrix", "stmatrix"):
        return 16  # the row of a matrix
    if found.base == "wmma":
        return _fragment_bytes(instruction)
    return TYPE_BYTES.get(access_type(instruction), 0) * vector_length(instruction)


def _fragment_bytes(instruction: Instruction) -> int:
    """A warp's matrix fragment, spread evenly over 32 lanes: rows x columns x bytes / 32 (PTX ISA, wmma shapes)."""
    modifiers = form(instruction.opcode).modifiers
    shape = next((re.fullmatch(r"m(\d+)n(\d+)k(\d+)", m) for m in modifiers if m.startswith("m")), None)
    bits = {"u4": 4, "s4": 4, "b1": 1}.get(access_type(instruction), 8 * TYPE_BYTES.get(access_type(instruction), 0))
    if shape is None:
        return 0
    m, n, k = (int(size) for size in shape.groups())
    elements = {"a": m * k, "b": k * n}.get(modifiers[1], m * n)
    return max(1, elements * bits // 8 // 32)


__all__ = [
    "FIRST",
    "NONE",
    "UPDATE",
    "Form",
    "access_bytes",
    "access_kind",
    "access_type",
    "barrier_operands",
    "form",
    "is_barrier",
    "is_branch",
    "is_bulk",
    "is_call",
    "is_exit",
    "is_memory",
    "is_named_barrier",
    "is_traced",
    "memory_space",
    "names_other_blocks",
    "operation",
    "space_of",
    "vector_length",
]
