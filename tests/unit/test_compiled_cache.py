"""Compiled functions on disk: never used for anything but what they were made from, and used whenever that is equal."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.caching import CacheImpl

import ppt_gpu
from ppt_gpu.common import compiled_cache
from ppt_gpu.common.compiled import Deferred, called, entry
from ppt_gpu.common.compiled_cache import KeptCode, Unknown, digest_of

PACKAGE = Path(ppt_gpu.__file__).parent

#: a compiled function of each kind of thing that it can be made from
SOURCES = {
    "key_constants.py": """
import numpy as np
from enum import IntEnum
from typing import NamedTuple
LIMIT = 7
SCALE = 2.0
WEIGHTS = np.array([1, 2, 3])
class Kind(IntEnum):
    LOAD = 1
    STORE = 2
class Pair(NamedTuple):
    a: int
    b: int
PAIR = Pair(4, 5)
def width():
    return 8
""",
    "key_helpers.py": """
from numba import types
from ppt_gpu.common.compiled import called, intrinsic, merged
FACTOR = 5
@intrinsic
def raised(typing_context, value):
    from key_constants import width
    def generate(context, builder, signature, arguments):
        return builder.add(arguments[0], context.get_constant(types.int64, width()))
    return types.int64(types.int64), generate
@merged
def inner(x):
    return raised(x) * FACTOR
@called
def helper(x):
    return inner(x) + 1
""",
    "key_loop.py": """
import numpy as np
import key_constants as c
from key_constants import PAIR, WEIGHTS, Kind
from key_helpers import helper
from ppt_gpu.common.compiled import called, entry, merged
OFFSET = 3
def make(SHIFT):
    other = called(lambda x: x + SHIFT)
    def loop(x, step=2):
        total = np.int64(0)
        for number in range(x):
            total += helper(number) + other(number) + c.LIMIT * step + OFFSET + (number in (1, 2))
            total += WEIGHTS[number % 3] + PAIR.b + Kind.LOAD
        return total * c.SCALE
    return entry(loop)
looked_at = make(6)
""",
}


def of_sources(folder: Path, sources: Mapping[str, str]) -> tuple[str, float]:
    """The digest of the loop of these files, and what it computes. Their modules leave `sys.modules` again."""
    folder.mkdir()
    for name, text in sources.items():
        (folder / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        made = importlib.import_module("key_loop").looked_at.made()
        found = digest_of(made.py_func, made.targetoptions), made(4)
    for name in sources:
        del sys.modules[name.removesuffix(".py")]
    return found


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, float]:
    return of_sources(tmp_path_factory.mktemp("unchanged") / "files", SOURCES)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("key_loop.py", "OFFSET = 3", "OFFSET = 4"),
        ("key_loop.py", "make(6)", "make(7)"),
        ("key_loop.py", "step=2", "step=3"),
        ("key_loop.py", "(1, 2)", "(1, 9)"),
        ("key_loop.py", "OFFSET +", "OFFSET -"),
        ("key_loop.py", "x + SHIFT", "x * SHIFT"),
        ("key_constants.py", "LIMIT = 7", "LIMIT = 8"),
        ("key_constants.py", "SCALE = 2.0", "SCALE = 3.0"),
        ("key_constants.py", "[1, 2, 3]", "[1, 2, 4]"),
        ("key_constants.py", "Pair(4, 5)", "Pair(4, 6)"),
        ("key_constants.py", "LOAD = 1", "LOAD = 3"),
        ("key_constants.py", "return 8", "return 9"),
        ("key_helpers.py", "FACTOR = 5", "FACTOR = 6"),
        ("key_helpers.py", "inner(x) + 1", "inner(x) + 2"),
        ("key_helpers.py", "builder.add", "builder.sub"),
    ],
)
def test_whatever_changes_the_result_changes_the_digest(
    file: str, old: str, new: str, tmp_path: Path, unchanged: tuple[str, float]
) -> None:
    digest, result = of_sources(tmp_path / "files", SOURCES | {file: SOURCES[file].replace(old, new)})
    assert result != unchanged[1]  # else this would be no change
    assert digest != unchanged[0]


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("key_loop.py", "called(lambda", "merged(lambda"),
        ("key_constants.py", "SCALE = 2.0", "SCALE = 2"),
        ("key_constants.py", "LIMIT = 7", "LIMIT = True"),
        ("key_constants.py", "[1, 2, 3]", "[1, 2, 3], np.uint8"),
    ],
)
def test_types_and_ways_to_compile_change_the_digest(
    file: str, old: str, new: str, tmp_path: Path, unchanged: tuple[str, float]
) -> None:
    changed = SOURCES[file].replace(old, new)
    assert changed != SOURCES[file]
    assert of_sources(tmp_path / "files", SOURCES | {file: changed})[0] != unchanged[0]


def test_comments_and_places_do_not_change_the_digest(tmp_path: Path, unchanged: tuple[str, float]) -> None:
    """Nor does a constant that moves to another file."""
    changed = {name: "# more to read\n\n" + text for name, text in SOURCES.items()}
    changed["key_loop.py"] = changed["key_loop.py"].replace("OFFSET = 3", "from key_helpers import OFFSET")
    changed["key_helpers.py"] += "OFFSET = 3\n"
    assert of_sources(tmp_path / "another folder", changed) == unchanged


def test_digests_do_not_depend_on_the_process() -> None:
    """The order of a set of texts differs from process to process."""
    code = (
        "from ppt_gpu.common.compiled_cache import digest_of\n"
        "print(digest_of(lambda x: x in {'a', 'bb', 'ccc', 'dddd', 'eeeee'}))\n"
    )
    found = set()
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        found.add(run.stdout)
    assert len(found) == 1


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which functions that are made now are kept."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "numba"))
    return tmp_path / "numba"


def counts(function: Any) -> tuple[int, int]:
    """How often it was found on disk, and how often not."""
    stats = function.stats
    return sum(stats.cache_hits.values()), sum(stats.cache_misses.values())


def plus(number: int) -> Any:
    """A compiled function, made anew at each call."""

    def added(x: int) -> int:
        return x + number

    return entry(added)


def test_kept_and_found(cache: Path) -> None:
    for number, found in ((1, (0, 1)), (2, (0, 1)), (1, (1, 0)), (2, (1, 0))):
        function = plus(number)
        assert function(10) == 10 + number and counts(function) == found
    function(1.5)
    assert counts(function) == (1, 1)  # another set of types


def test_the_oldest_forms_go(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_cache, "MOST", 2)
    for number in range(5):
        assert plus(number)(1) == 1 + number
    assert len(list(cache.rglob("*.nbc"))) <= 3
    for number, found in ((4, (1, 0)), (0, (0, 1)), (4, (1, 0))):
        function = plus(number)
        assert function(1) == 1 + number and counts(function) == found


def test_files_that_another_process_took(cache: Path) -> None:
    """Two that write at the same time may choose the same file: it holds the code of one of them."""
    assert plus(1)(10) == 11
    assert plus(2)(10) == 12
    one, two = sorted(cache.rglob("*.nbc"))
    shutil.copy(one, two)
    function = plus(2)
    assert function(10) == 12 and counts(function) == (0, 1)
    function = plus(2)
    assert function(10) == 12 and counts(function) == (1, 0)


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("content", [b"", b"no pickle", bytes(1000)])
def test_damaged_files_cost_a_compilation(cache: Path, suffix: str, content: bytes) -> None:
    assert plus(3)(10) == 13
    for path in cache.rglob(f"*.{suffix}"):
        path.write_bytes(content)
    for found in ((0, 1), (1, 0)):
        function = plus(3)
        assert function(10) == 13 and counts(function) == found


def test_a_full_disk_costs_a_compilation(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(compiled_cache._Index, "_save_data", refused)
        assert plus(4)(10) == 14
    function = plus(4)
    assert function(10) == 14 and counts(function) == (0, 1)


def test_compiles_where_no_folder_is_writable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    function = plus(5)
    assert function(10) == 15
    assert not isinstance(function._cache, KeptCode)


def test_what_has_no_digest_is_not_kept(cache: Path) -> None:
    """A global that no digest can be made of; here it only has the name of an attribute that the code reads."""
    names: dict[str, Any] = {"shape": Lock()}
    exec("def loop(x):\n    return x.shape[0]", names)
    names["loop"].__code__ = names["loop"].__code__.replace(co_filename=__file__)
    with pytest.raises(Unknown, match="lock"):
        digest_of(names["loop"])
    function = entry(names["loop"])
    assert function(np.zeros(3)) == 3
    assert not list(cache.rglob("*.nbi"))


step = 1


@called
def stepped(x: int) -> int:
    return x + step


def test_what_was_replaced_in_this_process_is_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """numba has compiled `stepped` with a step of 1, and does not do so again."""
    assert entry(lambda x: stepped(x) * 2)(1) == 4
    monkeypatch.setattr(sys.modules[__name__], "step", 5)
    kept = len(list(cache.rglob("*.nbc")))
    changed = entry(lambda x: stepped(x) * 3)
    assert changed(1) == 6
    assert kept == 1 == len(list(cache.rglob("*.nbc")))
    with pytest.raises(Unknown, match="stepped"):
        digest_of(changed.py_func)
    monkeypatch.undo()
    assert digest_of(changed.py_func)


def test_what_was_called_under_a_profiler_is_kept(cache: Path) -> None:
    """numba changes flags of the code that it was made from, so that the profiler sees the call."""
    function = plus(6)
    digest = digest_of(function.py_func)
    before = sys.getprofile()
    sys.setprofile(lambda *_: None)
    try:
        assert function(1) == 7
    finally:
        sys.setprofile(before)
    assert digest_of(function.py_func) == digest
    assert function(1.5) == 7.5 and len(list(cache.rglob("*.nbc"))) == 2


def test_code_of_equal_names_in_two_kept_functions(tmp_path: Path) -> None:
    """Each process gives the inner functions the same names, and the last one finds both."""
    (tmp_path / "several.py").write_text(
        "import sys\n"
        "from ppt_gpu.common.compiled import called, entry\n"
        "def make(k):\n"
        "    def loop(x):\n"  # too much to be copied into the one that calls it
        "        total = x\n"
        "        for i in range(x):\n"
        "            for j in range(i):\n"
        "                total = (total * 31 + (i ^ j ^ k)) % 1000003 if total & 1 else total * k + j\n"
        "        return total\n"
        "    sm_loop, helper = entry(loop), called(loop)\n"
        "    def outer(x):\n"
        "        return sm_loop(x) * 2 + helper(x)\n"
        "    def wanted(x):\n"
        "        return loop(x) * 3\n"
        "    return entry(outer), wanted\n"
        "for k in map(int, sys.argv[1:]):\n"
        "    outer, wanted = make(k)\n"
        "    print(outer(9) == wanted(9), len(outer.stats.cache_hits))\n"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(*numbers: str) -> list[str]:
        command = [sys.executable, str(tmp_path / "several.py"), *numbers]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()

    assert run("3") == run("5") == ["True", "0"]
    assert run("3", "5") == ["True", "1"] * 2


def test_constants_of_another_file_of_the_package(tmp_path: Path) -> None:
    """A loop of the package that freezes constants of another file, which are changed so that neither the size nor the
    time of the file changes. The input names the constants too: the result is the same, unless the code is stale."""
    for folder in (PACKAGE, *(path for path in PACKAGE.rglob("*") if path.is_dir() and path.name != "__pycache__")):
        place = tmp_path / "ppt_gpu" / folder.relative_to(PACKAGE)
        place.mkdir(parents=True, exist_ok=True)
        for path in folder.glob("*.py"):
            shutil.copy(path, place)
    (tmp_path / "run.py").write_text(
        "import numpy as np\n"
        "from ppt_gpu.models.caches.hit_rates import _ONES, _touch\n"
        "from ppt_gpu.sm.program.program import KIND_ATOMIC, KIND_LOAD, KIND_STORE\n"
        "kinds = np.array([KIND_LOAD, KIND_LOAD, KIND_STORE, KIND_ATOMIC, KIND_LOAD, KIND_LOAD])\n"
        "found = np.zeros((3, 6), np.int64)\n"
        "ones = np.ones(6, bool)\n"
        "_touch(np.zeros(6, np.int64), np.full(6, 15), kinds, ones, ~ones, True, _ONES, np.zeros((1, 2), np.int64),\n"
        "       np.zeros(1, np.int64), ~ones, found)\n"
        "print(*found[0], len(_touch.stats.cache_hits), len(_touch.stats.cache_misses))\n"
    )
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "numba"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
        "PYTHONDONTWRITEBYTECODE": "1",  # its own files depend on times and sizes
    }

    def run() -> tuple[list[str], list[str]]:
        command = [sys.executable, str(tmp_path / "run.py")]
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
        return found[:6], found[6:]

    result = ["0", "4", "0", "0", "0", "4"]
    assert run() == (result, ["0", "1"])
    loop = tmp_path / "ppt_gpu" / "models" / "caches" / "hit_rates.py"
    loop.write_text("# A comment moves all lines.\n" + loop.read_text())
    assert run() == (result, ["1", "0"])
    program = tmp_path / "ppt_gpu" / "sm" / "program" / "program.py"
    text, times = program.read_text(), program.stat()
    changed = text.replace("KIND_LOAD, KIND_STORE, KIND_ATOMIC,", "KIND_ATOMIC, KIND_STORE, KIND_LOAD,", 1)
    assert changed != text
    program.write_text(changed)
    os.utime(program, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert run() == (result, ["0", "1"])


#: modules of the package that know numba or what compiles with it, and their trees
TREES = {
    path: ast.parse(text)
    for path in sorted(PACKAGE.rglob("*.py"))
    if "numba" in (text := path.read_text()) or "compiled" in text
}


def entries(path: Path, tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """The compiled functions of a module that Python calls, and those that its functions make."""
    if "ppt_gpu.common.compiled" not in {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}:
        return
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    module = importlib.import_module(name)
    for node in tree.body:
        calls = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
        if isinstance(node, ast.FunctionDef) and any(ast.unparse(each) == "entry" for each in node.decorator_list):
            yield f"{name}.{node.name}", getattr(module, node.name)
        elif isinstance(node, ast.FunctionDef) and any(ast.unparse(each) == "entry" for each in calls):
            if node.name != "compiled_address":  # of functions of which it returns the machine address
                yield f"{name}.{node.name}()", made_by(getattr(module, node.name))
        elif isinstance(node, ast.Assign) and any(ast.unparse(each) == "entry" for each in calls):
            yield f"{name}.{ast.unparse(node.targets[0])}", getattr(module, ast.unparse(node.targets[0]))


def made_by(factory: Any) -> Any:
    """What it makes of zeros."""
    parameters = inspect.signature(factory).parameters.values()
    return factory(*({"int": 0, "bool": False}[each.annotation] for each in parameters if each.default is each.empty))


def test_all_compiled_functions_of_the_package_have_a_digest() -> None:
    found = [one for path, tree in TREES.items() for one in entries(path, tree)]
    assert len(found) > 70
    for name, function in found:
        assert isinstance(function, Deferred), name
        made = function.made()
        assert isinstance(made._cache, KeptCode), name
        assert digest_of(made.py_func, made.targetoptions), name


def test_nothing_is_compiled_in_another_way() -> None:
    """Nor extended: what numba looks up in its tables would not be in a digest."""
    for path, tree in TREES.items():
        # the text of compilers.py is in the digest of what names its types
        if path.name in ("compiled.py", "compiled_cache.py", "compilers.py"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "numba":
                assert {each.name for each in node.names} <= {"types", "cgutils", "cuda", "dispatcher", "nvrtc"}, path
            elif isinstance(node, ast.Import) and path.name != "numba_kernel.py":  # which compiles for another target
                assert not any(each.name.partition(".")[0] == "numba" for each in node.names), path
