"""Reading a machine: its file, the host, network and libraries that it names, and command-line overrides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ppt_gpu.common.errors import PptError
from ppt_gpu.spec.cluster import GpuSlots, MachineSpec, NcclFit, NicSpec, NvlinkSpec, PcieSpec
from ppt_gpu.spec.cluster_parts import PARTS, check_part, titled
from ppt_gpu.spec.cluster_rules import check_machine
from ppt_gpu.spec.cluster_schema import MACHINE
from ppt_gpu.spec.files import find, read_with_base, shipped
from ppt_gpu.spec.gpu import Source
from ppt_gpu.spec.toml_reader import Checked, Document, check, parse_override, read_toml


def list_machines() -> list[tuple[str, str]]:
    """Name and title of every shipped machine, by name. Raises PptError for a file that is not TOML."""
    return [(name, str(read_toml(path).data.get("title", name))) for name, path in shipped("machines").items()]


def load_machine_spec(name: str | Path, overrides: Sequence[str] = ()) -> MachineSpec:
    """The machine `name`: a shipped one ("dgx_h100"), or a path to a .toml file.

    `overrides` are texts such as "nic.count=4" or "network.bandwidth=50 GB/s", laid over the files in their order.
    Raises PptError for an unknown name and files that cannot be read, InputErrors with every error of the values.
    """
    path = find("machines", str(name), titles=lambda: {title: stem for stem, title in list_machines()})
    own, of_parts, errors = _sorted_overrides(overrides)
    document = read_with_base(path, "machines")
    for override in own:
        document = document.merged(override)
    checked = check(document, MACHINE)
    checked.errors += errors
    slots = _slots(checked)
    check_machine(checked)
    sources = dict(checked.sources)
    made = {}
    for key, part in PARTS.items():
        found = _part(checked, key, of_parts[key])
        if found:
            stem, values, more = found
            sources |= {f"{key}.{at}": replace(source, path=f"{key}.{at}") for at, source in more.items()}
            if not checked.errors:
                made[key] = part.make(stem, values)
    values = checked.finish()
    return _machine(path.stem, values, slots, made, sources)


def _sorted_overrides(texts: Sequence[str]) -> tuple[list[Document], dict[str, list[Document]], list[PptError]]:
    """Overrides of the machine's own file and of the files that it names, and those that cannot be read."""
    own: list[Document] = []
    parts: dict[str, list[Document]] = {key: [] for key in PARTS}
    errors: list[PptError] = []
    for text in texts:
        try:
            document = parse_override(text)
        except PptError as error:
            errors.append(error)
            continue
        key = next(iter(document.data))
        if key in parts and isinstance(document.data[key], dict):
            places = {at[1:]: place for at, place in document.places.items() if len(at) > 1}
            parts[key].append(Document("", document.data[key], partial(dict, places)))
        else:
            own.append(document)
    return own, parts, errors


def _near(checked: Checked, *at: str | int) -> Path:
    """The folder that a path in a value is relative to: that of its file, of the command line the current one."""
    place = checked.place(at)
    return Path(place.file).parent if place.line else Path()


def _part(
    checked: Checked, key: str, overrides: Sequence[Document]
) -> tuple[str, dict[str, Any], dict[str, Source]] | None:
    """Name, values and sources of the file that the machine's `key` names; its errors join the machine's."""
    name = checked.get(key)
    if name is None:
        return None
    try:
        path = find(PARTS[key].folder, name, near=_near(checked, key))
        found = check_part(key, path, overrides)
    except PptError as error:
        if error.path:
            checked.errors.append(error)
        else:
            checked.problem((key,), f"{key}: {error.message}", error.hint)
        return None
    checked.errors += found.errors
    return path.stem, found.values, found.sources


def _slots(checked: Checked) -> tuple[GpuSlots, ...]:
    """The GPUs of a node; errors for those that no file describes."""
    slots = []
    for number, values in enumerate(checked.get("gpus") or ()):
        model, count = values["model"], values["count"]
        if model is None or count is None:
            continue
        try:
            path = find("gpus", model, near=_near(checked, "gpus", number, "model"))
            capability = str(read_with_base(path, "gpus").data.get("compute_capability", ""))
        except PptError as error:
            checked.problem(("gpus", number, "model"), f"gpus[{number}].model: {error.message}", error.hint)
            continue
        name = str(path) if model.endswith(".toml") or "/" in model else path.stem
        slots.append(GpuSlots(name, count, _generation(capability)))
    return tuple(slots)


def _generation(capability: str) -> str:
    """NCCL's groups of compute capabilities."""
    major = int(capability.split(".")[0]) if capability[:1].isdigit() else 0
    return "blackwell" if major >= 10 else "hopper" if major == 9 else "ampere" if major == 8 else "volta"


def _machine(
    name: str, values: dict[str, Any], slots: tuple[GpuSlots, ...], parts: dict[str, Any], sources: dict[str, Source]
) -> MachineSpec:
    nvlink = values["nvlink"]
    edges = []
    for text in nvlink["edges"]:
        ends, _, links = text.partition("*")
        first, _, second = ends.partition("-")
        edges.append((int(first), int(second), int(links or 1)))
    found = titled(name, values) | {"notes": values["notes"], "gpus": slots} | parts
    return MachineSpec(
        **found
        | {
            "nic": NicSpec(**values["nic"]),
            "nvlink": NvlinkSpec(**nvlink | {"edges": tuple(edges)}),
            "pcie": PcieSpec(**values["pcie"]),
            "collectives": NcclFit(**values["collectives"]),
            "sources": sources,
        }
    )
