"""A parsed PTX module: immutable, every name with its line and column.

Registers get dense ids inside a kernel; symbols keep their names. Types are PTX type names without the dot ("f32").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_Bytes = bytes  # some classes below have a field called bytes

TYPE_BYTES: dict[str, int] = {
    "pred": 1, "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2,
    "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "tf32": 4,
    "b64": 8, "u64": 8, "s64": 8, "f64": 8, "f32x2": 8, "b128": 16,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reg:
    """A register operand. `id` indexes `Kernel.registers`."""

    id: int


@dataclass(frozen=True, slots=True)
class Imm:
    """A literal. Integers are Python ints; floats keep their exact bits: `value` float, `bits` from 0f/0d forms."""

    value: int | float
    bits: int | None = None  # raw bits of a 0fXXXXXXXX / 0dXXXXXXXXXXXXXXXX literal
    width: int = 0  # 32 or 64 for such a literal


@dataclass(frozen=True, slots=True)
class Special:
    """A special register: "tid.x", "laneid", "clock64" (no leading %)."""

    name: str


@dataclass(frozen=True, slots=True)
class Sym:
    """The address of a variable, parameter or function, plus a byte offset."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Mem:
    """An address operand [base + offset]. `base` None is an absolute address."""

    base: Reg | Sym | None
    offset: int = 0
    indices: tuple[Operand, ...] = ()  # texture / surface coordinates


@dataclass(frozen=True, slots=True)
class Vec:
    """{a, b, c, d}: a vector of operands."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """a|b: a destination and its predicate."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Sink:
    """_: a destination that is thrown away."""


@dataclass(frozen=True, slots=True)
class Neg:
    """!p: a negated predicate operand."""

    reg: Reg


@dataclass(frozen=True, slots=True)
class Target:
    """A branch target or label list name; `index` is the instruction that the label marks (-1: not yet resolved)."""

    name: str
    index: int = -1


@dataclass(frozen=True, slots=True)
class Part:
    """%r1.b0, %r1.h1: the bytes of a register that a video instruction selects."""

    reg: Reg
    selector: str


@dataclass(frozen=True, slots=True)
class Minus:
    """-%r1, -%r1.h0: a negated operand of vmad."""

    operand: Reg | Part


Operand = Reg | Imm | Special | Sym | Mem | Vec | Pair | Sink | Neg | Target | Part | Minus


def items_of(operand: Operand) -> tuple[Operand, ...]:
    """The elements of a vector operand, or the operand alone."""
    return operand.items if isinstance(operand, Vec) else (operand,)


@dataclass(frozen=True, slots=True)
class Register:
    name: str  # "%r1", made unique by scope ("%r1@2") where inner scopes reuse names
    type: str
    line: int


@dataclass(frozen=True, slots=True)
class Guard:
    reg: int
    negated: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """One PTX instruction. `opcode` is whole ("ld.global.v2.f32"); `base` its first part ("ld").

    Operands stand in text order, except that a call always has (Vec of results, Sym or Reg callee, Vec of arguments)
    and, when indirect, the Target naming its prototype or target list. Instructions with .cc or a carry in also
    write or read the register "%cc".
    """

    index: int
    opcode: str
    operands: tuple[Operand, ...]
    guard: Guard | None
    reads: tuple[int, ...]  # register ids read, guard included
    writes: tuple[int, ...]  # register ids written
    line: int
    column: int
    source_line: int = 0  # from .loc, 0 if none

    @property
    def base(self) -> str:
        return self.opcode.partition(".")[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        return tuple(self.opcode.split("."))[1:]


@dataclass(frozen=True, slots=True)
class Param:
    """A kernel parameter. `pointer_space` from .ptr, else "". `bytes` > scalar size for by-value structs."""

    name: str
    type: str
    bytes: int
    align: int
    offset: int
    pointer_space: str = ""  # "generic" for a .ptr without a space
    line: int = 0
    register: int = -1  # register id of a .reg parameter of a .func
    unsized: bool = False  # `.b8 name[]`: as long as what a call passes; `ppt_gpu.ptx.linking.link` gives it its bytes

    @property
    def is_struct(self) -> bool:
        """Whether it has several elements: a struct passed by value. A single byte may be an empty one."""
        return self.bytes > TYPE_BYTES.get(self.type, 0)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable. `bytes` 0 with `extern` means sized at launch (dynamic shared memory).

    Inside a body, space "param" is an argument or result of a call made there.
    """

    name: str
    space: str  # "global", "const", "shared", "local", "tex", "param"
    type: str
    bytes: int
    align: int
    init: _Bytes | None = None
    init_symbols: tuple[tuple[int, str, int], ...] = ()  # (byte offset, symbol, addend): addresses in initialisers
    extern: bool = False
    line: int = 0


@dataclass(frozen=True, slots=True)
class Prototype:
    """What an indirect call returns and takes."""

    returns: tuple[Param, ...]
    params: tuple[Param, ...]


@dataclass(frozen=True)
class Kernel:
    """One .entry (or .func). Instructions are in text order; labels name instruction indices."""

    name: str
    params: tuple[Param, ...]
    registers: tuple[Register, ...]
    variables: tuple[Variable, ...]  # declared inside the body (shared, local)
    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]
    directives: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # "maxntid": (256, 1, 1), "reqntid", ...
    is_entry: bool = True
    returns: tuple[Param, ...] = ()
    line: int = 0
    end_line: int = 0
    branch_tables: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # .branchtargets: instruction indices
    call_tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # .calltargets: function names
    prototypes: Mapping[str, Prototype] = field(default_factory=dict)  # .callprototype
    has_body: bool = True  # False: only declared here (.extern, vprintf)
    #: of machine code (ppt_gpu.machine): operations of instructions that others do, or that do others' work
    joined: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    pointer_bytes: int = 8  # 4 in a module with addresses of 32 bits
    rolled: frozenset[int] = frozenset()  # where loops begin that must not be unrolled (.pragma "nounroll")

    @property
    def entries(self) -> tuple[int, ...]:
        """The instructions at which control comes in from outside."""
        return (0,)


@dataclass(frozen=True)
class Module:
    path: str
    version: tuple[int, int]
    target: str  # "sm_70"
    address_size: int
    kernels: Mapping[str, Kernel]  # entries, in file order
    functions: Mapping[str, Kernel]
    variables: Mapping[str, Variable]  # module scope
    lines: tuple[str, ...] = ()  # the text, for messages and hot-spot reports
    assumptions: Mapping[str, str] = field(default_factory=dict)  # opcode -> operation it is timed as, not executed
    title: str = ""  # what results call it, where its path is that of a copy which may or may not be there

    @property
    def named(self) -> str:
        """What results call it."""
        return self.title or self.path

    def instructions_before(self, kernel: str) -> int:
        """Of the kernels that stand before one."""
        names = list(self.kernels)
        return sum(len(self.kernels[name].instructions) for name in names[: names.index(kernel)])
