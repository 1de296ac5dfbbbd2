"""Instructions that are described as values (`emulator.forms.described`), as LLVM IR."""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.emulator.forms.described import Described, described
from ppt_gpu.emulator.forms.opcode import WIDTH
from ppt_gpu.emulator.forms.value import Value, given
from ppt_gpu.emulator.jit.arith.float import read_bits, write_bits
from ppt_gpu.emulator.jit.arith.float_values import VALUE
from ppt_gpu.emulator.jit.emit import EMITTERS, Emitter, Unsupported
from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import Helper, Text, const, vec
from ppt_gpu.ptx.module import Instruction, Operand, Reg

_RESIZES = ("zext", "sext", "trunc")
_COMPARISONS = ("eq", "ne", "ult", "ule", "ugt", "uge", "slt", "sle", "sgt", "sge")
_INSTRUCTIONS = ("add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr")
_COUNTS = ("ctlz", "cttz")


class Writer:
    """Writes values as code; a value that occurs several times is written once."""

    def __init__(self, text: Text, inputs: Sequence[str]) -> None:
        self.text = text
        self.inputs = inputs
        self.names: dict[Value, str] = {}

    def __call__(self, value: Value) -> str:
        if value not in self.names:
            self.names[value] = self._write(value)
        return self.names[value]

    def _write(self, value: Value) -> str:
        t, op, element = self.text, value.op, f"i{value.width}"
        if op == "const":
            return const(element, value.number)
        if op == "input":
            return self.inputs[value.number]
        args = [self(arg) for arg in value.args]
        of = f"i{value.args[0].width}"
        if op in _INSTRUCTIONS:
            return t.binary(op, element, *args)
        if op in _COMPARISONS:
            return t.binary(f"icmp {op}", of, *args)
        if op in _RESIZES:
            return t.convert(op, of, args[0], element)
        if op == "select":
            return t.select(args[0], element, *args[1:])
        if op in _COUNTS:
            return t.call(vec(of), f"llvm.{op}.v32{of}", (vec(of), args[0]), ("i1", "false"))
        if op in ("udiv", "sdiv"):
            return t.helper(("quotient", element, op == "sdiv"), vec(element), *((vec(element), arg) for arg in args))
        if op in ("umulh", "smulh"):
            a, b = (given(k, value.width).resize(2 * value.width, op == "smulh") for k in (0, 1))
            return _apart(t, (a * b).bits(value.width, value.width), [of, of], args)
        return t.intrinsic(op, element, *args)


def emit_instruction(e: Emitter, i: Instruction) -> None:
    """Any instruction. Unsupported, or another of NOT_EXECUTED, where nothing says what it does."""
    found = described(i)
    if found is not None:
        _emit(e, i, found)
    elif i.base in EMITTERS:
        EMITTERS[i.base](e, i)
    else:
        raise Unsupported(f"'{i.base}'")


def _emit(e: Emitter, i: Instruction, found: Described) -> None:
    inputs = [_read(e, operand, kind) for operand, kind in found.sources]
    write, widths = Writer(e, inputs), [f"i{WIDTH.get(kind, 1)}" for _, kind in found.sources]
    step = e.steps.get(i.index)
    start = e.read(i.operands[step.operand], found.results[0][1]) if step is not None else ""
    for operand, kind, value in found.results:
        result = _apart(e, value, widths, inputs) if found.apart else write(value)
        if operand is None:
            e.write(Reg(_carry_register(e)), "pred", result)
        elif kind in VALUE:
            write_bits(e, operand, kind, result)
        else:
            e.write(operand, kind, result)
        if step is not None and result != start:
            e.groups.derive(result, start, step.distance)


def _read(e: Emitter, operand: Operand | None, kind: str) -> str:
    if operand is None:
        return e.register(_carry_register(e), "i1")
    return read_bits(e, operand, kind) if kind in VALUE else e.read(operand, kind)


def _carry_register(e: Emitter) -> int:
    for number in (*e.instruction.reads, *e.instruction.writes):
        if e.kernel.registers[number].name == "%cc":
            return number
    raise Unsupported("a carry without its register")


def _apart(t: Text, value: Value, elements: Sequence[str], inputs: Sequence[str]) -> str:
    """A value that a helper function computes from inputs: long ones are better optimised there, and compiled once."""
    kinds = [vec(element) for element in elements]
    names = [f"%a{k}" for k in range(len(inputs))]
    f = Helper("")
    result = Writer(f, names)(value)
    parameters = tuple(f"{kind} {name}" for kind, name in zip(kinds, names, strict=True))
    kind = vec(f"i{value.width}")
    key = ("value", kind, parameters, result, tuple(f.lines), tuple(f.declarations.items()))
    return t.helper(key, kind, *zip(kinds, inputs, strict=True))


@writes("value")
def write_value(
    kind: str, parameters: tuple[str, ...], result: str, lines: tuple[str, ...], declared: tuple[tuple[str, str], ...]
) -> Helper:
    """A helper function of one value whose code is written already."""
    f = Helper(kind, *parameters)
    f.declarations.update(declared)
    f.label("entry")
    f.lines += lines
    f.do(f"ret {kind} {result}")
    return f
