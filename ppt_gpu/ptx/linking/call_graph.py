"""Which functions a kernel can reach: direct calls, target lists, and functions whose address somebody takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ppt_gpu.ptx.module import Instruction, Kernel, Mem, Module, Operand, Pair, Param, Sym, Target, Vec


def symbols_of(operand: Operand) -> Iterator[str]:
    """The names of variables and functions in an operand."""
    if isinstance(operand, Sym):
        yield operand.name
    elif isinstance(operand, Mem):
        if operand.base is not None:
            yield from symbols_of(operand.base)
    elif isinstance(operand, Vec):
        for item in operand.items:
            yield from symbols_of(item)
    elif isinstance(operand, Pair):
        yield from symbols_of(operand.first)
        yield from symbols_of(operand.second)


def body_symbols(body: Kernel) -> Iterator[str]:
    """The names of variables and functions in a body's operands."""
    for instruction in body.instructions:
        for operand in instruction.operands:
            yield from symbols_of(operand)


def reachable(kernel: Kernel, module: Module) -> tuple[dict[str, Kernel], dict[tuple[str, int], tuple[str, ...]]]:
    """(functions that `kernel` can reach, in file order; callees of each call by (body, instruction))."""
    found: dict[str, Kernel] = {}
    bodies = {kernel.name: kernel}
    named = {name for v in module.variables.values() for _, name, _ in v.init_symbols}
    addressed = {module.functions[name].name for name in named if name in module.functions}
    while True:
        for body in bodies.values():
            addressed.update(_addressed(body, module))
        calls = {
            (name, i.index): tuple(_callees(body, i, module, addressed))
            for name, body in bodies.items()
            for i in body.instructions
            if i.base == "call"
        }
        names = {callee for callees in calls.values() for callee in callees}
        if names <= found.keys():
            return {name: f for name, f in module.functions.items() if name in found}, calls
        found.update({name: module.functions[name] for name in names})
        bodies.update(found)


def _addressed(body: Kernel, module: Module) -> Iterable[str]:
    """Functions whose address the body takes."""
    for instruction in body.instructions:
        operands = instruction.operands
        if instruction.base == "call":
            operands = operands[2:3]
        for operand in operands:
            yield from (module.functions[name].name for name in symbols_of(operand) if name in module.functions)


def _callees(body: Kernel, call: Instruction, module: Module, addressed: set[str]) -> list[str]:
    callee = call.operands[1]
    if isinstance(callee, Sym):
        return [module.functions[callee.name].name] if callee.name in module.functions else []  # not its alias
    target = call.operands[3]
    assert isinstance(target, Target)
    listed = body.call_tables.get(target.name)
    if listed is None and target.name not in body.prototypes:  # a table of functions in memory
        listed = tuple(name for _, name, _ in module.variables[target.name].init_symbols)
    if listed is not None:
        return list(dict.fromkeys(module.functions[name].name for name in listed if name in module.functions))
    wanted = body.prototypes[target.name]
    shape = _shape(wanted.returns), _shape(wanted.params)
    return [
        name
        for name, function in module.functions.items()
        if name in addressed and (_shape(function.returns), _shape(function.params)) == shape
    ]


def _shape(params: tuple[Param, ...]) -> tuple[int, ...]:
    return tuple(p.bytes for p in params)


def reaches(calls: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The functions that each one can come to, by one call or several. `calls`: those that it calls itself."""
    result = {}
    for start, direct in calls.items():
        seen: set[str] = set()
        stack = list(direct)
        while stack:
            name = stack.pop()
            if name not in seen:
                seen.add(name)
                stack += calls.get(name, ())
        result[start] = seen
    return result
