"""Instructions that are described as values (`emulator.forms.described`), as LLVM IR."""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.emulator.forms.computes import Unsupported
from ppt_gpu.emulator.forms.described import Described, described
from ppt_gpu.emulator.forms.floating import is_operation, signature
from ppt_gpu.emulator.forms.value import Value, given
from ppt_gpu.emulator.jit.arith.float import VALUE, element_of, float_operation
from ppt_gpu.emulator.jit.emit import EMITTERS, Emitter, bits_const
from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import ELEMENT, Helper, Text, const, vec
from ppt_gpu.ptx.module import Instruction, Operand, Reg

_RESIZES = ("zext", "sext", "trunc")
_COMPARISONS = ("eq", "ne", "ult", "ule", "ugt", "uge", "slt", "sle", "sgt", "sge")
_INSTRUCTIONS = ("add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr")
_COUNTS = ("ctlz", "cttz")
_NUMBERS = ("float", "double")


class Writer:
    """Writes values as code; a value that occurs several times is written once."""

    def __init__(self, text: Text, inputs: Sequence[tuple[str, str]]) -> None:
        """inputs: name and element of each."""
        self.text = text
        self.names: dict[tuple[Value | int, str], str] = {}
        for place, (name, element) in enumerate(inputs):
            self.names[place, element] = name

    def __call__(self, value: Value, element: str = "") -> str:
        """The value's bits, or its number as float or double."""
        element = element or f"i{value.width}"
        if value.op == "const":
            return const(element, value.number) if element[0] == "i" else bits_const(element, value.number)
        key: tuple[Value | int, str] = (value.number if value.op == "input" else value, element)
        if key not in self.names:
            self._write(value, key[0])
            if key not in self.names:  # it has the value as another element
                other = next(e for e in (f"i{value.width}", *_NUMBERS) if (key[0], e) in self.names)
                self.names[key] = self.text.cast(self.names[key[0], other], other, element)
        return self.names[key]

    def _write(self, value: Value, key: Value | int) -> None:
        """Write an operation that is not written yet as any element."""
        if value.op == "input" or any((key, e) in self.names for e in (f"i{value.width}", *_NUMBERS)):
            return
        if is_operation(value.op):
            source, target = (element_of(kind) for kind in signature(value.op))
            operands = [self(arg, source) for arg in value.args]
            self.names[key, target] = float_operation(self.text, value.op, operands)
        else:
            self.names[key, f"i{value.width}"] = self._integers(value)

    def _integers(self, value: Value) -> str:
        t, op, element = self.text, value.op, f"i{value.width}"
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
            return apart(t, (a * b).bits(value.width, value.width), [(arg, of) for arg in args])
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
    write = Writer(e, inputs)
    step = e.steps.get(i.index)
    start = e.read(i.operands[step.operand], found.results[0][1]) if step is not None else ""
    for operand, kind, value in found.results:
        bits = f"i{value.width}"
        element = VALUE[kind] if kind in ("f32", "f64") else bits
        result = e.cast(apart(e, value, inputs), bits, element) if found.apart else write(value, element)
        if operand is None:
            e.write(Reg(_carry_register(e)), "pred", result)
        elif kind in ("f16", "bf16"):
            e.write(operand, "b16", result)
        else:
            e.write(operand, kind, result)
        if step is not None and result != start:
            e.groups.derive(result, start, step.distance)


def _read(e: Emitter, operand: Operand | None, kind: str) -> tuple[str, str]:
    """(name, element) of an operand: a number of f32 or f64, else bits."""
    if operand is None:
        return e.register(_carry_register(e), "i1"), "i1"
    kind = "b16" if kind in ("f16", "bf16") else kind
    return e.read(operand, kind), ELEMENT[kind]


def _carry_register(e: Emitter) -> int:
    for number in (*e.instruction.reads, *e.instruction.writes):
        if e.kernel.registers[number].name == "%cc":
            return number
    raise Unsupported("a carry without its register")


def apart(t: Text, value: Value, inputs: Sequence[tuple[str, str]]) -> str:
    """The bits of a value that a helper function computes from inputs: long ones are better optimised there, and
    compiled once. Bits, as to LLVM all NaNs are one number."""
    kind, kinds = vec(f"i{value.width}"), [vec(of) for _, of in inputs]
    names = [f"%a{k}" for k in range(len(inputs))]
    f = Helper("")
    result = Writer(f, [(name, of) for name, (_, of) in zip(names, inputs, strict=True)])(value)
    parameters = tuple(f"{kind} {name}" for kind, name in zip(kinds, names, strict=True))
    key = ("value", kind, parameters, result, tuple(f.lines), tuple(f.declarations.items()))
    return t.helper(key, kind, *((kind, name) for kind, (name, _) in zip(kinds, inputs, strict=True)))


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
