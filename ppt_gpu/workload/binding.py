"""Binds a workload to the PTX module that it runs: kernels named, arguments and symbols checked."""

from __future__ import annotations

from dataclasses import replace

from ppt_gpu.common.errors import InputErrors, PptError, did_you_mean
from ppt_gpu.ptx.linking.mangling import matching, short_name
from ppt_gpu.ptx.module import TYPE_BYTES, Module
from ppt_gpu.workload.arguments import argument_errors
from ppt_gpu.workload.literals import typed
from ppt_gpu.workload.scalars import check_scalar
from ppt_gpu.workload.workload import Buffer, Workload


def bind_workload(workload: Workload, module: Module) -> Workload:
    """`workload` with every launch's kernel named, checked against `module`.

    Raises InputErrors with everything that does not fit: unknown kernels and symbols, missing, surplus or mistyped
    arguments, blocks that the kernel's directives forbid.
    """
    errors: list[PptError] = []
    launches = []
    for number, launch in enumerate(workload.launches):
        keys = [f"{place(workload, number)}.{{}}", "{}"]
        try:
            name = chosen_kernel(workload, module, launch.kernel)
        except PptError as wrong:
            errors.append(_at(workload, wrong, [k.format("kernel") for k in keys] + ["ptx"]))
            continue
        launch = replace(launch, kernel=name, arguments=typed(launch.arguments, module.kernels[name].params))
        launches.append(launch)
        errors += [_at(workload, e, [k.format("arguments") for k in keys]) for e in _round_errors(workload, number)]
        for key, error in argument_errors(launch, module.kernels[name]):
            errors.append(_at(workload, error, [k.format(part) for part in (key, "arguments") for k in keys]))
    errors += [e for symbol in workload.symbols if (e := _symbol_error(workload, module, symbol)) is not None]
    if errors:
        raise InputErrors(errors)
    return replace(workload, launches=tuple(launches))


def _round_errors(workload: Workload, number: int) -> list[PptError]:
    """Scalars that change from round to round, where there are no rounds, or which leave their type's range."""
    rounds = next((loop.repeat for loop in workload.loops if loop.first <= number < loop.end), 0)
    errors = []
    for argument in (one for whole in workload.launches[number].arguments for one in (whole, *whole.fields)):
        if argument.step and not rounds:
            errors.append(PptError("round: this launch is in no loop", hint="[[loop]] and [[loop.launch]] make one"))
        elif argument.step:
            try:
                check_scalar(argument.type, int(argument.value) + argument.step * (rounds - 1))
            except PptError as error:
                errors.append(PptError(f"in the last of {rounds} rounds: {error.message}", hint=error.hint))
    return errors


def place(workload: Workload, number: int) -> str:
    """Where launch `number` stands in the workload's file."""
    return workload.places[number] if number < len(workload.places) else f"launch[{number}]"


def chosen_kernel(workload: Workload, module: Module, name: str) -> str:
    """The kernel of `module` that `name` means, as in PTX or as in C++; "": the only one.

    Raises PptError when it is not named, unknown, or one of several of that name.
    """
    found = matching(name, module.kernels) if name else list(module.kernels)
    if len(found) == 1:
        return found[0]
    sources = {kernel: short_name(kernel) for kernel in module.kernels}
    unique = len(set(sources.values())) == len(sources)
    shown = {kernel: source if unique else kernel for kernel, source in sources.items()}
    names = ", ".join(shown.values()) or "none"
    if not name:
        message, hint = f"{workload.ptx_path} has {len(module.kernels)} kernels: name one", f"kernels: {names}"
    elif found:
        message = f"{workload.ptx_path} has {len(found)} kernels called '{name}': name one"
        hint = f"kernels: {', '.join(shown[kernel] for kernel in found)}"
    else:
        message = f"{workload.ptx_path} has no kernel '{name}'"
        hint = did_you_mean(name, shown.values()) or f"kernels: {names}"
    raise PptError(message, hint=hint)


def _symbol_error(workload: Workload, module: Module, symbol: Buffer) -> PptError | None:
    variable = module.variables.get(symbol.name)
    known = [v.name for v in module.variables.values() if v.space in ("global", "const")]
    if variable is None or variable.name not in known:
        hint = did_you_mean(symbol.name, known) or "the module has no __device__ or __constant__ variables"
        error = PptError(f"{workload.ptx_path} has no variable '{symbol.name}'", hint=hint)
    elif symbol.count * TYPE_BYTES[symbol.type] > variable.bytes:
        size = symbol.count * TYPE_BYTES[symbol.type]
        error = PptError(f"{size} bytes do not fit the variable '{symbol.name}'", hint=f"it has {variable.bytes}")
    else:
        return None
    return _at(workload, error, [f"symbols.{symbol.name}"])


def _at(workload: Workload, error: PptError, keys: list[str]) -> PptError:
    """`error` with the workload's file, and the line of the first of `keys` that it has."""
    line = next((workload.line[key] for key in keys if key in workload.line), None)
    path = workload.path if workload.line else None
    return PptError(error.message, path=path, line=line, hint=error.hint)
