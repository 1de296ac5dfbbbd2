"""What is kept on disk depends on the sources of all that made it: none is missing in the digests that name it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from structure import read_package

import ppt_gpu
from ppt_gpu.emulator.trace import identity
from ppt_gpu.emulator.trace.identity import COMMON, PREDICTING, SIMULATING, TRACING, sources_digest
from ppt_gpu.frontends import compiled_text
from ppt_gpu.machine import code_cache as kept

PACKAGE = Path(ppt_gpu.__file__).parent
FILES = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}

#: what makes each kind of entry, and the parts whose digest names it. What is kept in the group of a trace (timings,
#: lowered blocks, lines, runs) has the digest of what makes traces in its group.
KINDS = {
    "traces": (("emulator/cache/traces.py", "emulator/run/run.py"), TRACING),
    "machine code": (("machine/code.py",), kept.SOURCES),
    "timings, programs, lines and runs": (("scale/simulated_sm.py", "scale/l2_history.py"), (*SIMULATING, *TRACING)),
    "times": (("pipeline.py", "inputs.py"), (*PREDICTING, *TRACING)),
    "results of studies": (("explore/case.py",), (*PREDICTING, *TRACING, "explore")),
    "what compilers made": (
        ("frontends/cuda_source.py", "frontends/ptxas.py", "frontends/disassemble.py"),
        compiled_text.SOURCES,
    ),
}


@cache
def imported(file: str) -> frozenset[str]:
    """The files of the package that a file imports, also inside functions, and the faces on the way to them.

    Of a lazy face only what is read of it is imported, and by whom that is read."""
    package = read_package(PACKAGE)
    name = next(name for name, path in package.paths.items() if path == FILES[file])
    if package.modules[name].is_lazy:
        targets = {"ppt_gpu.common.lazy_face"}
    else:
        targets = {each.imported for each in package.imports if each.module == name}
    above = {".".join(parts[:count]) for parts in (t.split(".") for t in targets) for count in range(2, len(parts))}
    return frozenset(package.paths[each].relative_to(PACKAGE).as_posix() for each in targets | above)


def reached(files: Sequence[str]) -> set[str]:
    """These files and all that they import, and so on."""
    found, todo = set[str](), list(files)
    while todo:
        file = todo.pop()
        if file not in found:
            found.add(file)
            todo += imported(file)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_makes_an_entry_is_in_its_name(kind: str) -> None:
    makers, parts = KINDS[kind]
    covered = {file for file in FILES if file.split("/")[0] in (*COMMON, *parts)}
    assert reached(makers) <= covered


def test_the_files_that_all_may_import_import_no_others() -> None:
    common = {file for file in FILES if file.split("/")[0] in COMMON}
    assert reached(sorted(common)) <= common


def test_a_change_of_any_source_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any in the folders and in the folders in them, also one that is renamed or new; of no others."""
    files = dict.fromkeys(("common/units.py", "ptx/a.py", "ptx/b.py", "ptx/inner/c.py", "sm/d.py", "ptx/README.md"), "")

    def digests(change: dict[str, str | None]) -> str:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        for name, text in (files | change).items():
            if text is not None:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text)
        monkeypatch.setattr(identity, "PACKAGE", folder)
        identity._part_digest.cache_clear()
        return sources_digest("ptx")

    try:
        unchanged = digests({})
        for change in ({"sm/d.py": "x"}, {"ptx/README.md": "x"}, {"ptx/__pycache__/a.py": "x"}):
            assert digests(dict(change)) == unchanged
        changed = [
            digests(dict(change))
            for change in (
                {"ptx/b.py": "x"},
                {"ptx/inner/c.py": "x"},
                {"common/units.py": "x"},
                {"ptx/e.py": ""},
                {"ptx/b.py": None},
                {"ptx/b.py": None, "ptx/f.py": ""},
            )
        ]
        assert len({unchanged, *changed}) == 7
        with pytest.raises(FileNotFoundError):
            sources_digest("no such folder")
    finally:
        identity._part_digest.cache_clear()
