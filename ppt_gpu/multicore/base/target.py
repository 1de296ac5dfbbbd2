"""What a program is ported to: a CPU core or a GPU, by its shipped name or its file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ppt_gpu.common.errors import PptError, nearest
from ppt_gpu.multicore.base.core import SCore
from ppt_gpu.multicore.base.core_file import list_cores, load_core
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.files import find, loose
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.spec.load import list_gpus
from ppt_gpu.spec.toml_reader import read_toml


def load_target(name: str, overrides: Sequence[str] = ()) -> SCore | Gpu:
    """The core or GPU `name`, with `overrides` such as "core.clock=3 GHz". Raises PptError for an unknown name."""
    if name.endswith(".toml") or "/" in name:
        return load_core(name, overrides) if is_core(find("cores", name)) else load_gpu(name, overrides)
    cores = list_cores()
    gpus = {each.name: each.title for each in list_gpus()}
    if loose(name) in {loose(each) for each in cores}:
        return load_core(name, overrides)
    if loose(name) in {loose(each) for each in (*gpus, *gpus.values())}:
        return load_gpu(name, overrides)
    close = nearest(loose(name), [*cores, *gpus])
    hint = f"did you mean '{close}'?" if close else f"CPU cores: {', '.join(cores)}; GPUs: {', '.join(gpus)}"
    raise PptError(f"unknown core or GPU '{name}'", hint=hint)


def is_core(path: Path, seen: tuple[Path, ...] = ()) -> bool:
    """Whether the file describes a core: it has a [core], or its base has. A broken chain of bases is none."""
    data = read_toml(path).data
    base = data.get("base")
    if "core" in data or not isinstance(base, str):
        return isinstance(data.get("core"), dict)
    if not base.endswith(".toml"):
        return loose(base) in {loose(each) for each in list_cores()}
    below = path.parent / base
    return below.is_file() and below not in seen and is_core(below, (*seen, below))
