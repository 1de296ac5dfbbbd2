"""From what a user names (a sample, a .toml, .ptx, .cu or .tl file, and options) to a Workload."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ppt_gpu import frontends, sass
from ppt_gpu import tasklist as tasklists
from ppt_gpu.common.errors import PptError, did_you_mean, nearest
from ppt_gpu.frontends.prepare import read_module
from ppt_gpu.workload.arguments import dim3, workload_from_arguments
from ppt_gpu.workload.reader import load_workload
from ppt_gpu.workload.workload import Dim3, Launch, Workload

if TYPE_CHECKING:
    from ppt_gpu.ptx.module import Module

CUDA = (".cu", ".cuh")
SUFFIXES = (".toml", ".ptx", ".tl", *CUDA)
#: endings of machine-code traces and of lists of them
MACHINE = (".traceg", ".traceg.xz", ".traceg.gz", ".g")
#: endings of machine code that nothing runs: disassembly and cubins
CODE = (".sass", ".cubin")
#: what may stand for a number of registers
REGISTER_SOURCES = ("ptxas", "estimate")
#: the usual ending of trace files
TRACE = ".trace"


def open_workload(
    source: str | Path,
    *,
    kernel: str | None = None,
    grid: str | Sequence[int] | None = None,
    block: str | Sequence[int] | None = None,
    args: Sequence[str] = (),
    dynamic_shared: int = 0,
    registers: int | str | None = None,
    compiler_options: Sequence[str] = (),
    cluster: str | Sequence[int] | None = None,
    seed: int = 0,
) -> Workload:
    """The workload that `source` names: a shipped sample ("sgemm"), or a .toml, .ptx, .cu or .tl file, or a
    trace of machine code (.traceg) or a list of such traces (kernelslist.g).

    A .ptx or .cu needs `grid`, `block` ("64,64" or (64, 64)), may have `cluster`, and `args` (forms of
    ppt_gpu.workload.argument_text); a .tl takes `grid`; the others take none of these. `registers` is a number, "ptxas"
    or "estimate"; a word is for any source but a task list. `compiler_options` are for a .cu, named here or in a
    workload file. `seed` is added to the seeds of all random contents: other data of the same kind.
    Raises PptError or InputErrors with everything that is wrong; OSError where the system cannot look for the file.
    """
    path = Path(source)
    if "\n" in str(source):
        raise PptError("a text is not the name of a workload", hint="predict() and launch() take PTX text")
    number, word = registers_option(registers)
    options = {
        "--kernel": kernel,
        "--grid": grid,
        "--block": block,
        "--cluster": cluster,
        "--arg": args,
        "--dynamic-shared": dynamic_shared,
        "--registers": registers if path.suffix == ".tl" else number,
        "--nvcc-option": compiler_options if path.suffix in (".ptx", ".tl") else (),
    }
    given = [name for name, value in options.items() if value]
    if path.suffix in (".ptx", *CUDA):
        if path.suffix == ".ptx" and compiler_options:
            raise PptError("--nvcc-option: a .ptx file is compiled already", path=path)
        workload = _from_kernel(path, kernel, grid, block, args, dynamic_shared, number)
        if cluster:
            (launch,) = workload.launches
            shape = dim3(extents("--cluster", cluster))
            workload = replace(workload, launches=(replace(launch, cluster=shape),))
        return _with_options(workload, word, compiler_options, source, seed)
    if path.name.endswith(CODE):
        hint = "translate it to a task list, predict a trace of it (.traceg), or predict its PTX"
        raise PptError("machine code is not run: it has no prediction of its own", path=path, hint=hint)
    if path.name.endswith(MACHINE):
        if given or word:
            raise PptError(f"{', '.join(given) or '--registers'}: a trace brings its own", path=path)
        must_exist(path)
        return sass.open_run(path)
    if path.suffix == ".tl":
        surplus = [name for name in given if name != "--grid"]
        if surplus:
            raise PptError(f"{', '.join(surplus)}: a task list brings its own", path=path)
        return _from_tasklist(path, grid)
    if path.suffix not in ("", ".toml") and not path.is_file():
        kinds = "a workload is a sample's name, or a .toml, .ptx, .cu, .tl, .traceg or .g file"
        hint = did_you_mean(path.suffix, (*SUFFIXES, ".traceg")) or kinds
        raise PptError(f"no such file, and '{path.suffix}' is no workload", path=path, hint=hint)
    if given:
        message = f"{', '.join(given)}: only for .ptx, .cu and .tl files; a workload file says these itself"
        raise PptError(message, path=path)
    return _with_options(load_workload(source), word, compiler_options, source, seed)


def open_module(source: str | Path, capability: tuple[int, int]) -> Module:
    """The PTX module of a .ptx or .cu file, or of a workload; no launch is needed. A .cu is compiled for `capability`.

    Raises PptError or InputErrors.
    """
    path = Path(source)
    if path.suffix in (".ptx", *CUDA):
        must_exist(path)
        workload = Workload(path.stem, str(path), str(path), ())
    else:
        workload = open_workload(source)
        if workload.tasklist_path:
            raise PptError("a task list has no PTX", path=workload.tasklist_path)
    return read_module(workload, capability).module


def named_files(workload: Workload) -> list[Path]:
    """The files that a workload names: of its kernels, of what fills its buffers, traces. PptError for a bad list."""
    names = [workload.ptx_path if not workload.ptx_text else "", workload.tasklist_path, workload.machine_path]
    folder = Path(workload.path).parent
    fills = [b.init.partition(":")[2] for b in (*workload.buffers, *workload.symbols) if b.init.startswith("npy:")]
    if workload.machine_path:
        names += [str(launch.header.path) for launch in sass.read_run(workload.machine_path).launches]
    return [Path(name) for name in names if name] + [folder / name for name in fills]


def files_of(workload: Workload) -> list[Path]:
    """All files of the user's that a workload is made of: its own, those that it names, and what CUDA files include."""
    found = named_files(workload)
    if not workload.ptx_text:
        found.append(Path(workload.path))
    if Path(workload.ptx_path).suffix in CUDA:
        with suppress(OSError):  # who compiles it says so
            found += frontends.included(Path(workload.ptx_path), workload.compiler_options) or ()
        found += [Path(text.rpartition("=")[2]) for text in workload.compiler_options]
    return found


def registers_option(value: int | str | None) -> tuple[int | None, str]:
    """(number or None, "ptxas" or "estimate" or "") of what --registers may say."""
    if value is None or isinstance(value, int):
        return value, ""
    if value.isdecimal() and int(value):
        return int(value), ""
    if value not in REGISTER_SOURCES:
        raise PptError(f"--registers {value}: expected a positive number, ptxas or estimate")
    return None, value


def _with_options(
    workload: Workload, registers_from: str, compiler_options: Sequence[str], source: str | Path, seed: int
) -> Workload:
    """`workload` with what the command line says for any source; registers asked from a program replace numbers."""
    if seed:
        buffers = (replace(one, seed=one.seed + seed) if one.init == "random" else one for one in workload.buffers)
        workload = replace(workload, buffers=tuple(buffers))
    if registers_from:
        launches = (replace(launch, registers=None, registers_from=registers_from) for launch in workload.launches)
        workload = replace(workload, launches=tuple(launches))
    if compiler_options and Path(workload.ptx_path).suffix not in CUDA:
        raise PptError("--nvcc-option: this workload has no .cu file", path=source)
    return replace(workload, compiler_options=(*workload.compiler_options, *compiler_options))


def _from_kernel(
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
        must_exist(path)
        raise PptError(
            f"a {path.suffix} file needs {' and '.join(missing)}", path=path, hint="such as --grid 64,64 --block 16,16"
        )
    blocks, threads = extents("--grid", grid or ()), extents("--block", block or ())
    must_exist(path)
    return workload_from_arguments(path, kernel or "", blocks, threads, args, dynamic_shared, registers)


def _from_tasklist(path: Path, grid: str | Sequence[int] | None) -> Workload:
    blocks = extents("--grid", grid or ())
    must_exist(path)
    tasklist = tasklists.read_tasklist(path)
    axes = tasklists.grid_axes(tasklist.body)
    if blocks and len(blocks) < axes:
        message = f"--grid has {len(blocks)} extents, but the list has block steps along {axes} axes"
        raise PptError(message, path=path, hint=f"such as --grid {','.join(['64'] * axes)}")
    if not blocks and not tasklist.grid:
        raise PptError("this task list states no grid: give --grid", path=path, hint="such as --grid 1024")
    block: Dim3 = (tasklist.block_size, 1, 1)
    launch = Launch(path.stem, dim3(blocks or tasklist.grid), block, ())
    return Workload(path.stem, str(path), "", (launch,), tasklist_path=str(path))


def must_exist(path: Path) -> None:
    """PptError, with the nearest name, when there is no such file."""
    if path.is_file():
        return
    if path.is_dir():
        raise PptError("is a folder", path=path)
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    close = nearest(path.name, [o.name for o in beside if o.suffix == path.suffix and o.is_file()])
    raise PptError("no such file", path=path, hint=f"did you mean '{close}'?" if close else None)


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
