"""Links a kernel with the functions that it can reach into one instruction list, and lays out their stack frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ppt_gpu.ptx.linking.call_graph import body_symbols, reachable, reaches
from ppt_gpu.ptx.linking.linked import ALLOCATED, CALLEE, FRAME_ALIGN, Call, Function, LinkedKernel
from ppt_gpu.ptx.linking.liveness import live_across
from ppt_gpu.ptx.module import (
    TYPE_BYTES,
    Guard,
    Instruction,
    Kernel,
    Mem,
    Module,
    Neg,
    Operand,
    Pair,
    Param,
    Part,
    Reg,
    Register,
    Sym,
    Target,
    Variable,
    Vec,
)


def link(kernel: Kernel, module: Module) -> LinkedKernel:
    """`kernel` with every function of `module` that it can reach behind it. A linked kernel is returned as it is."""
    if isinstance(kernel, LinkedKernel):
        return kernel
    functions, callees = reachable(kernel, module)
    functions = _sized(kernel, functions, callees)
    parts = [_Part(kernel, 0, 0, "")]
    for function in functions.values():
        last = parts[-1]
        parts.append(_Part(function, last.end, last.registers_end, f"{function.name}:"))
    graph = {p.body.name: {c for (b, _), names in callees.items() if b == p.body.name for c in names} for p in parts}
    reach = reaches(graph)
    allocates = any(i.base in ("alloca", "stacksave", "stackrestore") for p in parts for i in p.body.instructions)
    frames = {p.body.name: _Frame(p, module, allocates, callees, reach, functions) for p in parts}
    # where a function's frame begins is a multiple of what any variable of a function asks for
    align = max([FRAME_ALIGN, *(frame.align for name, frame in frames.items() if name != kernel.name)])
    for frame in frames.values():
        frame.bytes = -(-frame.bytes // align) * align
    calls = {}
    for part in parts:
        frame = frames[part.body.name]
        for (body, index), names in callees.items():
            if body == part.body.name:
                indirect = not isinstance(part.body.instructions[index].operands[1], Sym)
                saved = frame.saved.get(index, ())
                calls[part.first + index] = Call(names, indirect, frame.bytes, saved)
    return LinkedKernel(
        name=kernel.name,
        params=kernel.params,
        registers=tuple(r for p in parts for r in p.moved_registers()),
        variables=tuple(v for p in parts for v in p.moved_variables()),
        instructions=tuple(i for p in parts for i in p.moved_instructions()),
        labels={p.prefix + name: p.first + at for p in parts for name, at in p.body.labels.items()},
        directives=kernel.directives,
        is_entry=kernel.is_entry,
        returns=kernel.returns,
        line=kernel.line,
        end_line=kernel.end_line,
        branch_tables={
            p.prefix + name: tuple(p.first + at for at in table)
            for p in parts
            for name, table in p.body.branch_tables.items()
        },
        rolled=frozenset(p.first + at for p in parts for at in p.body.rolled),
        pointer_bytes=kernel.pointer_bytes,
        functions={p.body.name: p.function(frames[p.body.name].bytes) for p in parts[1:]},
        calls=calls,
        offsets={name: at for frame in frames.values() for name, at in frame.offsets.items()},
        sizes={name: size for frame in frames.values() for name, size in frame.sizes.items()},
        frame_bytes=frames[kernel.name].bytes,
        stack_bytes=_stack(kernel.name, graph, reach, frames, allocates),
        allocates=allocates,
        own_end=parts[0].end,
    )


def _sized(
    kernel: Kernel, functions: dict[str, Kernel], callees: Mapping[tuple[str, int], tuple[str, ...]]
) -> dict[str, Kernel]:
    """The functions, their last parameter as long as the longest argument where it is an array without a size."""
    sizes: dict[str, int] = {}
    for (caller, index), names in callees.items():
        body = kernel if caller == kernel.name else functions[caller]
        arguments = getattr(body.instructions[index].operands[2], "items", ())
        last = arguments[-1] if arguments else None
        size = next((v.bytes for v in body.variables if isinstance(last, Sym) and v.name == last.name), 0)
        for name in names:
            sizes[name] = max(sizes.get(name, 0), size)
    return {
        name: replace(f, params=(*f.params[:-1], replace(f.params[-1], bytes=sizes.get(name, 0))))
        if f.params and f.params[-1].unsized
        else f
        for name, f in functions.items()
    }


def _stack(
    kernel: str,
    graph: Mapping[str, set[str]],
    reach: Mapping[str, set[str]],
    frames: Mapping[str, _Frame],
    allocates: bool,
) -> int:
    """Bytes of the deepest chain of calls, -1 where there is none."""
    if allocates or any(name in reach[name] for name in graph):
        return -1
    deepest: dict[str, int] = {}
    for name in sorted(graph, key=lambda name: len(reach[name])):  # callees reach less than their callers
        deepest[name] = max((frames[c].bytes + deepest[c] for c in graph[name]), default=0)
    return deepest[kernel]


class _Part:
    """A body on its way into the linked kernel."""

    def __init__(self, body: Kernel, first: int, first_register: int, prefix: str) -> None:
        self.body, self.first, self.first_register, self.prefix = body, first, first_register, prefix
        code = body.instructions
        #: control may not run on into the next function
        ends = code[-1:] and code[-1].guard is None and code[-1].base in ("ret", "exit", "trap", "bra", "brx")
        self.closed = bool(ends) or not body.has_body
        self.end = first + len(code) + (not self.closed)
        self.registers_end = first_register + len(body.registers)
        self.own = {v.name for v in body.variables} | {p.name for p in (*body.params, *body.returns)}
        self._operands: dict[Operand, Operand] = {}

    def function(self, frame_bytes: int) -> Function:
        body = self.body
        return Function(
            body.name,
            self.first if body.has_body else -1,
            self.end,
            (self.first_register, self.registers_end),
            self._moved_params(body.params),
            self._moved_params(body.returns),
            frame_bytes,
            body.line,
        )

    def _moved_params(self, params: tuple[Param, ...]) -> tuple[Param, ...]:
        shift = self.first_register
        return tuple(
            replace(p, name=self.prefix + p.name, register=p.register + shift if p.register >= 0 else -1)
            for p in params
        )

    def moved_registers(self) -> Iterable[Register]:
        if not self.prefix:
            return self.body.registers
        return (replace(r, name=self.prefix + r.name) for r in self.body.registers)

    def moved_variables(self) -> Iterable[Variable]:
        return (replace(v, name=self.prefix + v.name) for v in self.body.variables)

    def moved_instructions(self) -> Iterable[Instruction]:
        yield from self.body.instructions if not self.prefix else map(self._instruction, self.body.instructions)
        if not self.closed:
            yield Instruction(self.end - 1, "ret", (), None, (), (), self.body.end_line, 1)

    def _instruction(self, i: Instruction) -> Instruction:
        shift = self.first_register
        return Instruction(
            i.index + self.first,
            i.opcode,
            tuple(map(self._operand, i.operands)),
            None if i.guard is None else Guard(i.guard.reg + shift, i.guard.negated),
            tuple(r + shift for r in i.reads),
            tuple(r + shift for r in i.writes),
            i.line,
            i.column,
            i.source_line,
        )

    def _operand(self, operand: Operand) -> Operand:
        moved = self._operands.get(operand)
        if moved is None:
            moved = self._operands[operand] = self._move(operand)
        return moved

    def _move(self, operand: Operand) -> Operand:
        if isinstance(operand, Reg):
            return Reg(operand.id + self.first_register)
        if isinstance(operand, Sym):
            return replace(operand, name=self.prefix + operand.name) if operand.name in self.own else operand
        if isinstance(operand, Mem):
            base: Any = None if operand.base is None else self._operand(operand.base)
            return Mem(base, operand.offset, tuple(map(self._operand, operand.indices)))
        if isinstance(operand, Vec):
            return Vec(tuple(map(self._operand, operand.items)))
        if isinstance(operand, Pair):
            return Pair(self._operand(operand.first), self._operand(operand.second))
        if isinstance(operand, Neg):
            return Neg(Reg(operand.reg.id + self.first_register))
        if isinstance(operand, Part):
            return Part(Reg(operand.reg.id + self.first_register), operand.selector)
        if isinstance(operand, Target):
            return Target(self.prefix + operand.name, operand.index + self.first if operand.index >= 0 else -1)
        return operand


class _Frame:
    """The stack frame of one body: results, parameters, variables, then what recursive calls and alloca must keep."""

    def __init__(
        self,
        part: _Part,
        module: Module,
        allocates: bool,
        callees: Mapping[tuple[str, int], tuple[str, ...]],
        reach: Mapping[str, set[str]],
        functions: Mapping[str, Kernel],
    ) -> None:
        self.offsets: dict[str, int] = {}
        self.sizes: dict[str, int] = {}
        self.saved: dict[int, tuple[tuple[int, int], ...]] = {}
        self._cursor = 0
        self.align = 1
        body, prefix = part.body, part.prefix
        if prefix:
            for param in (*body.returns, *body.params):
                if param.register < 0:
                    self._place(prefix + param.name, param.bytes, param.align)
        else:
            named = set(body_symbols(body)) if any(v.space == "local" for v in module.variables.values()) else set()
            for v in module.variables.values():
                if v.space == "local" and v.name in named:
                    self._place(v.name, v.bytes, v.align)
        for v in body.variables:
            if v.space in ("local", "param"):
                self._place(prefix + v.name, v.bytes, v.align)
        if allocates:
            self._place(prefix + ALLOCATED, 8, 8)
        for (name, index), names in callees.items():
            if (
                name == body.name
                and len(names) > 1
                and any(p.register >= 0 for n in names for p in functions[n].returns)
            ):
                self._place(f"{prefix}{CALLEE}{part.first + index}", 4, 4)
        self._save(part, callees, reach)
        least = FRAME_ALIGN if prefix and body.has_body else 0
        self.bytes = max(-(-self._cursor // FRAME_ALIGN) * FRAME_ALIGN, least)

    def _place(self, name: str, size: int, align: int) -> None:
        self.align = max(self.align, align)
        at = -(-self._cursor // max(align, 1)) * max(align, 1)
        self.offsets[name] = at
        self.sizes[name] = size
        self._cursor = at + size

    def _save(
        self, part: _Part, callees: Mapping[tuple[str, int], tuple[str, ...]], reach: Mapping[str, set[str]]
    ) -> None:
        """Room for the registers that live across calls that can come back to this function."""
        body = part.body
        back = [
            index
            for (name, index), names in callees.items()
            if name == body.name and any(c == name or name in reach.get(c, ()) for c in names)
        ]
        if not back:
            return
        start = self._cursor = -(-self._cursor // 8) * 8
        end = start
        for index, registers in live_across(body, back).items():
            cursor, places = start, []
            for register in sorted(registers, key=lambda r: -TYPE_BYTES[body.registers[r].type]):
                places.append((part.first_register + register, cursor))
                cursor += TYPE_BYTES[body.registers[register].type]
            self.saved[index] = tuple(places)
            end = max(end, cursor)
        self._cursor = end
