"""What pip installs is whole: the wheel holds every file, and works from a folder that is no checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILT_FROM = ("setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE")
DATA = ("hardware", "tasklists", "validation")
#: what a checkout has beside the data, for those who make the data
NOT_SHIPPED = (
    "hardware/tools/",
    "hardware/README.md",
    "hardware/SOURCES.md",
    "tasklists/README.md",
)
IMPORT_ALL = """
import importlib, pkgutil, ppt_gpu
for module in pkgutil.walk_packages(ppt_gpu.__path__, "ppt_gpu."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(ppt_gpu.__file__)
"""


def sources() -> Iterator[str]:
    """Files of the package and of its data, relative to the checkout."""
    for folder in ("ppt_gpu", *DATA):
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            page = folder == "ppt_gpu" and path.name == "README.md"  # for who reads the code
            if path.is_file() and not page and path.suffix not in (".pyc", ".nbi", ".nbc"):
                yield name


def without_checkout() -> dict[str, str]:
    """For processes that must not find this package, or what an installation left beside it, in the checkout."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: building leaves files beside the sources."""
    copy, built = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("built")
    for name in (*BUILT_FROM, *sources()):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy / name)
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(built), str(copy)], check=True, capture_output=True)
    (found,) = built.glob("ppt_gpu-*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment with the wheel. Libraries are those that the tests run with."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    found = scripts / Path(sys.executable).name
    pip = [sys.executable, "-m", "pip", "--python", str(found), "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True, env=without_checkout())
    (packages,) = folder.rglob("site-packages")
    (packages / "libraries.pth").write_text(sysconfig.get_paths()["purelib"])
    for compiled in (ROOT / "ppt_gpu").rglob("*.nb[ic]"):  # found again wherever its sources stand: saves a minute
        target = packages / compiled.relative_to(ROOT)
        target.parent.mkdir(exist_ok=True)
        shutil.copy(compiled, target)
    return found


def test_the_wheel_holds_every_file(wheel: Path) -> None:
    expected = {
        name if name.startswith("ppt_gpu/") else f"ppt_gpu/{name}"
        for name in sources()
        if not name.startswith(NOT_SHIPPED)
    }
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == expected


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command of the new environment, which does not see the checkout."""
    environment = without_checkout() | {"PPT_GPU_CACHE": str(folder / "cache")}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_every_module_can_be_imported(python: Path, tmp_path: Path) -> None:
    done = run(tmp_path, str(python), "-c", IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(python.parents[1])


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["predict", "saxpy", "--gpu", "k40"], "saxpy on k40: "),
        (["gpus"], "h100"),
        (["explain", "kernel.time"], "Run time"),
    ],
)
def test_it_works_from_another_folder(python: Path, tmp_path: Path, command: list[str], expected: str) -> None:
    done = run(tmp_path, str(python.parent / "ppt-gpu"), *command)
    assert (done.returncode, done.stderr) == (0, "")
    assert expected in done.stdout
