"""From what a user names (a sample, a .toml, .ptx or .tl file, and options) to a Workload; and `check`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ppt_gpu.errors import PptError, did_you_mean
from ppt_gpu.exec.workload import Dim3, Launch, Workload

SUFFIXES = (".toml", ".ptx", ".tl")


def open_workload(
    source: str | Path,
    *,
    kernel: str | None = None,
    grid: str | Sequence[int] | None = None,
    block: str | Sequence[int] | None = None,
    args: Sequence[str] = (),
    dynamic_shared: int = 0,
    registers: int | None = None,
) -> Workload:
    """The workload that `source` names: a shipped sample ("sgemm"), or a .toml, .ptx or .tl file.

    A .ptx needs `grid`, `block` ("64,64" or (64, 64)) and `args` (forms of ppt_gpu.exec.argument_text); a .tl takes
    `grid`; the others take none of these. Raises PptError or InputErrors with everything that is wrong.
    """
    path = Path(source)
    options = {
        "--kernel": kernel,
        "--grid": grid,
        "--block": block,
        "--arg": args,
        "--dynamic-shared": dynamic_shared,
        "--registers": registers,
    }
    given = [name for name, value in options.items() if value]
    if path.suffix == ".ptx":
        return _from_ptx(path, kernel, grid, block, args, dynamic_shared, registers)
    if path.suffix == ".tl":
        surplus = [name for name in given if name != "--grid"]
        if surplus:
            raise PptError(f"{', '.join(surplus)}: a task list brings its own", path=path)
        return _from_tasklist(path, grid)
    if given:
        raise PptError(f"{', '.join(given)}: only for .ptx and .tl files; a workload file says these itself", path=path)
    if path.suffix not in ("", ".toml") and not path.is_file():
        hint = did_you_mean(path.suffix, SUFFIXES) or "a workload is a sample's name, or a .toml, .ptx or .tl file"
        raise PptError(f"no such file, and '{path.suffix}' is no workload", path=path, hint=hint)
    from ppt_gpu.exec.workload_reader import load_workload

    return load_workload(source)


def _from_ptx(
    path: Path,
    kernel: str | None,
    grid: str | Sequence[int] | None,
    block: str | Sequence[int] | None,
    args: Sequence[str],
    dynamic_shared: int,
    registers: int | None,
) -> Workload:
    missing = [name for name, value in (("--grid", grid), ("--block", block)) if value is None]
    if missing:
        raise PptError(
            f"a .ptx file needs {' and '.join(missing)}", path=path, hint="such as --grid 64,64 --block 16,16"
        )
    blocks, threads = extents("--grid", grid or ()), extents("--block", block or ())
    _must_exist(path)
    from ppt_gpu.exec.arguments import workload_from_arguments

    return workload_from_arguments(path, kernel or "", blocks, threads, args, dynamic_shared, registers)


def _from_tasklist(path: Path, grid: str | Sequence[int] | None) -> Workload:
    blocks = extents("--grid", grid or ())
    _must_exist(path)
    from ppt_gpu.exec.arguments import dim3
    from ppt_gpu.tasklist.model import grid_axes
    from ppt_gpu.tasklist.text import read_tasklist

    tasklist = read_tasklist(path)
    axes = grid_axes(tasklist.body)
    if blocks and len(blocks) < axes:
        message = f"--grid has {len(blocks)} extents, but the list has block steps along {axes} axes"
        raise PptError(message, path=path, hint=f"such as --grid {','.join(['64'] * axes)}")
    if not blocks and not tasklist.grid:
        raise PptError("this task list states no grid: give --grid", path=path, hint="such as --grid 1024")
    block: Dim3 = (tasklist.block_size, 1, 1)
    launch = Launch(path.stem, dim3(blocks or tasklist.grid), block, ())
    return Workload(path.stem, str(path), "", (launch,), tasklist_path=str(path))


def _must_exist(path: Path) -> None:
    if path.is_file():
        return
    others = [other.name for other in path.parent.glob(f"*{path.suffix}")] if path.parent.is_dir() else []
    close = did_you_mean(path.name, others)
    raise PptError("no such file", path=path, hint=close if close and close.startswith("did") else None)


def extents(option: str, value: str | Sequence[int]) -> tuple[int, ...]:
    """ "64,64" or (64, 64) as one to three positive integers; () when not given. PptError that names `option`."""
    if not isinstance(value, str):
        return tuple(value)
    try:
        found = tuple(int(part) for part in value.lower().replace("x", ",").split(","))
    except ValueError:
        found = ()
    if not 1 <= len(found) <= 3 or min(found) < 1:
        raise PptError(f"{option} {value}: expected one to three positive integers", hint=f"such as {option} 64,64")
    return found


def check(path: str | Path) -> list[str]:
    """Read a .ptx, .tl or .toml (workload, else GPU) file strictly. Returns what was found, one line each.

    Raises PptError or InputErrors with everything that is wrong with it.
    """
    path = Path(path)
    readers: dict[str, Callable[[Path], list[str]]] = {".ptx": _check_ptx, ".tl": _check_tasklist, ".toml": _check_toml}
    if path.suffix not in readers:
        raise PptError(f"cannot check a '{path.suffix}' file", path=path, hint="expected .ptx, .tl or .toml")
    _must_exist(path)
    return readers[path.suffix](path)


def _check_ptx(path: Path) -> list[str]:
    from ppt_gpu.ptx.liveness import estimate_registers
    from ppt_gpu.ptx.parser import load_module

    module = load_module(path)
    version = ".".join(str(part) for part in module.version)
    lines = [f"{path}: PTX {version} for {module.target}, {len(module.kernels)} kernels"]
    for kernel in module.kernels.values():
        lines.append(
            f"  {kernel.name}: {len(kernel.instructions)} instructions, {len(kernel.params)} parameters, "
            f"about {estimate_registers(kernel)} registers"
        )
    return lines


def _check_tasklist(path: Path) -> list[str]:
    from ppt_gpu.tasklist.flat import flatten
    from ppt_gpu.tasklist.text import read_tasklist

    tasklist = read_tasklist(path)
    flat = flatten(tasklist)
    return [f"{path}: task list '{tasklist.name}', {len(flat.path)} tasks a warp when its loops are unrolled"]


def _check_toml(path: Path) -> list[str]:
    from ppt_gpu.spec.toml_reader import read_toml

    if {"ptx", "tasklist"} & read_toml(path).data.keys():
        from ppt_gpu.exec.workload_reader import bind_workload, load_workload

        workload = load_workload(path)
        if workload.ptx_path:
            from ppt_gpu.ptx.parser import load_module

            workload = bind_workload(workload, load_module(workload.ptx_path))
        return [f"{path}: workload '{workload.name}', {len(workload.launches)} launches", *workload.warnings]
    from ppt_gpu.spec import load_gpu

    gpu = load_gpu(str(path))
    return [f"{path}: GPU '{gpu.name}', {gpu.sm.count} SMs, {len(gpu.sources)} numbers"]
