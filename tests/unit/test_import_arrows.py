"""One order of packages: each imports only what stands before it, also inside functions and for types only."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from structure import Package, read_package

import ppt_gpu


def the_package() -> Package:
    """Read by the tests, not when they are collected, which every process does with all of them."""
    return read_package(Path(ppt_gpu.__file__).parent)


#: packages, sub-packages, and the front doors at the top, which are files
_ORDER = """
    common
    spec
    ptx  ptx.parsing  ptx.linking
    tasklist
    workload
    emulator.forms  emulator.llvm  emulator.memory  emulator.analysis  emulator.host  emulator.launch  emulator.trace
    emulator.jit  emulator.jit.arith  emulator.jit.memory  emulator.jit.matrix  emulator.jit.compiler
    emulator.races  emulator.run  emulator.cache  emulator
    machine.analysis  machine.scheduling  machine.selection  machine
    translation
    sass
    sm.accesses  sm.program  sm.l2_sharing  sm.loop  sm.chip  sm.collectors  sm.lowering  sm.reference  sm
    bounds
    models.base  models.affine  models.caches  models.classics  models.gatsim  models.gpumech  models.hong_kim
    models.gpuperf  models.mcore  models.ppt  models
    multicore.base  multicore.core_models  multicore.representation  multicore.dark_silicon  multicore.port  multicore
    scale.history  scale.occupancy  scale.blocks  scale.cache  scale  scale.levels
    cluster.topology  cluster.model  cluster.collectives  cluster.engine  cluster
    report.result  report.timeline  report.text  report.html  report  report.figures
    frontends
    inputs  checks  pipeline  functional  task_lists  cluster_kernels  comparison  representations  programs
    explore
    validate.tables  validate.cluster  validate.coverage  validate.gpgpusim  validate.isa  validate.models
    validate.mwp  validate.papers  validate.silicon  validate
    calibrate
    commands.options  commands
    cli  __main__
"""
ORDER = _ORDER.split()
PLACES = {name: place for place, name in enumerate(ORDER)}


def package_of(module: str) -> str:
    """The package that a module is in; a module at the top stands for itself."""
    parts = module.split(".")[1:]
    return ".".join(parts if the_package().modules[module].is_face or len(parts) == 1 else parts[:-1])


def test_every_package_has_a_place() -> None:
    assert {package_of(module) for module in the_package().modules} == {*ORDER, ""}


@cache
def against_the_order() -> dict[str, list[str]]:
    """By package. A face may hand on what is in its own package, wherever that stands."""
    found: dict[str, list[str]] = {}
    home = {module: package_of(module) for module in the_package().modules}
    for each in the_package().imports:
        inside = the_package().modules[each.module].is_face and each.imported.startswith(f"{each.module}.")
        if not inside and PLACES.get(home[each.imported], len(ORDER)) > PLACES.get(home[each.module], len(ORDER)):
            found.setdefault(home[each.module], []).append(f"{each.module} imports {each.imported}")
    return found


@pytest.mark.parametrize("package", ORDER)
def test_imports_point_to_what_stands_before(package: str) -> None:
    assert against_the_order().get(package, []) == []


def test_no_relative_imports() -> None:
    for path in the_package().paths.values():
        assert not re.search(r"^\s*from \.", path.read_text(encoding="utf-8"), re.M), f"{path}: relative import"


def test_no_name_of_a_lazy_face_is_that_of_a_module_in_it() -> None:
    """An import of the module would put it in the place of what the face hands on."""
    for name, module in the_package().modules.items():
        handed_on = {alias.asname or alias.name for node, _ in module.imports for alias in node.names}
        inside = {each.removeprefix(f"{name}.") for each in the_package().modules if each.startswith(f"{name}.")}
        assert not module.is_lazy or not handed_on & inside, name


def test_all_that_a_lazy_face_hands_on_is_there() -> None:
    for name in (name for name, module in the_package().modules.items() if module.is_lazy):
        face = import_module(name)
        for each in face.__all__:
            assert getattr(face, each) is not None
        with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
            face.nothing  # noqa: B018
