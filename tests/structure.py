"""Figures of how a package is built, from its text alone: sizes, imports, circles.

`python tests/structure.py` prints those of ppt_gpu.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import networkx

#: limits of DESIGN: lines of a file, lines of a function, its parameters
FILE_LINES, FUNCTION_LINES, PARAMETERS = 500, 80, 12


@dataclass(frozen=True)
class Import:
    """That a module imports another; `late` inside a function, which runs only when the function does."""

    module: str
    imported: str
    late: bool


@dataclass(frozen=True)
class Function:
    """`lines` are without those of functions inside it that are counted on their own."""

    name: str
    lines: int
    parameters: int


@dataclass(frozen=True)
class Module:
    """A module's imports, with whether each stands inside a function, its functions and its annotations."""

    name: str
    is_face: bool
    lines: int
    imports: list[tuple[ast.Import | ast.ImportFrom, bool]]
    functions: list[Function]
    anys: int
    #: imports by name, of the package that the module belongs to
    by_name: int
    #: of a face: names and where they come from, where a table of strings says so
    table: list[tuple[str, str]]
    #: names of modules, and attributes that are read of them
    attributes: set[tuple[str, str]]
    #: of a face: whether its names are imported when they are first used
    is_lazy: bool


def read_module(name: str, path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    by_name = len(re.findall(rf'(?:import_module|resolve_name)\(f?["\']{name.split(".")[0]}\b', text))
    is_face = path.name == "__init__.py"
    found = Module(name, is_face, text.count("\n"), [], [], 0, by_name, [], set(), is_face and "= lazy_face(" in text)
    tree = ast.parse(text)
    anys = _visit(tree, found, 0)[1]
    table = _strings_of_tables(tree) if found.is_face else []
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
    return replace(found, anys=anys, table=table, attributes={(node.value.id, node.attr) for node in nodes})


class Package:
    """The modules of a package, and which imports which. To read a large one takes seconds: `read_package`."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.paths = {_dotted(path, folder.parent): path for path in sorted(folder.rglob("*.py"))}
        self.modules = {name: read_module(name, path) for name, path in self.paths.items()}
        self._handed_on = {name: self._names_of_face(module) for name, module in self.modules.items() if module.is_face}
        self.imports = {
            Import(name, target, late)
            for name, module in self.modules.items()
            for node, late in module.imports
            for target in (*self._targets(module, node), *self._read_of_faces(module, node))
            if target in self.modules and (target != name or not module.is_face)
        }

    def figures(self) -> dict[str, int]:
        """What tests limit, by name."""
        functions = [function for module in self.modules.values() for function in module.functions]
        files = Counter(self.paths[name].parent for name, module in self.modules.items() if not module.is_face)
        lines = [module.lines for module in self.modules.values()]
        circles = self.circles()
        return {
            "files": len(lines),
            "lines": sum(lines),
            "files of the largest folder": max(files.values()),
            f"files over {FILE_LINES} lines": sum(size > FILE_LINES for size in lines),
            "import circles": len(circles),
            "files in import circles": sum(map(len, circles)),
            "late imports": self.late_imports(),
            "lines of the longest function": max(function.lines for function in functions),
            f"functions over {FUNCTION_LINES} lines": sum(function.lines > FUNCTION_LINES for function in functions),
            f"functions over {PARAMETERS} parameters": sum(function.parameters > PARAMETERS for function in functions),
            "annotations with Any": sum(module.anys for module in self.modules.values()),
        }

    def circles(self) -> list[list[str]]:
        """Groups of modules that import one another or themselves, directly or not, at whatever time."""
        graph = networkx.DiGraph((edge.module, edge.imported) for edge in self.imports)
        groups = networkx.strongly_connected_components(graph)
        found = [sorted(group) for group in groups if len(group) > 1 or graph.has_edge(*group, *group)]
        return sorted(found, key=lambda group: (-len(group), group))

    def late_imports(self) -> int:
        """Statements inside functions that import modules of this package, and imports of these by name."""
        return sum(module.by_name for module in self.modules.values()) + sum(
            late and any(target.split(".")[0] == self.name for target in self._targets(module, node))
            for module in self.modules.values()
            for node, late in module.imports
        )

    def _targets(self, module: Module, node: ast.Import | ast.ImportFrom) -> list[str]:
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names]
        return [self._defining(_absolute(module, node), alias.name) for alias in node.names]

    def _read_of_faces(self, module: Module, node: ast.Import | ast.ImportFrom) -> list[str]:
        """Where those attributes are defined that the module reads of the faces that it imports."""
        if isinstance(node, ast.Import):
            return []
        faces = {alias.asname or alias.name: f"{_absolute(module, node)}.{alias.name}" for alias in node.names}
        return [
            self._defining(faces[name], attribute)
            for name, attribute in module.attributes
            if faces.get(name) in self._handed_on
        ]

    def _defining(self, module: str, name: str) -> str:
        """The module that defines what is imported from `module`: faces only hand on."""
        while f"{module}.{name}" not in self.modules:
            following = self._handed_on.get(module, {}).get(name)
            if following is None:
                return module
            module = following
        return f"{module}.{name}"

    def _names_of_face(self, face: Module) -> dict[str, str]:
        """Name -> module that it comes from, by the imports of a face or by its table of strings where it is lazy."""
        found = {}
        for node, _ in face.imports:
            if isinstance(node, ast.ImportFrom) and (module := _absolute(face, node)) != face.name:
                found |= {alias.asname or alias.name: module for alias in node.names}
        for name, text in face.table:
            found.update((name, module) for module in (text, f"{face.name}.{text}") if module in self.paths)
        return found


@cache
def read_package(folder: Path) -> Package:
    """As `Package`, once in a process: for what does not change meanwhile."""
    return Package(folder)


def _dotted(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    """The module that a `from` import names."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    kept = parts[: len(parts) - node.level + module.is_face]
    return ".".join([*kept, node.module] if node.module else kept)


def _visit(node: ast.AST, found: Module, depth: int) -> tuple[int, int]:
    """Note imports and functions of all statements below `node`. Returns the lines of functions and the annotations
    with Any that stand there."""
    inner = anys = 0
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            found.imports.append((child, depth > 0))
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            below, inside = _visit(child, found, depth + 1)
            size = (child.end_lineno or child.lineno) - child.lineno + 1
            given = child.args.posonlyargs + child.args.args + child.args.kwonlyargs
            found.functions.append(Function(f"{found.name}.{child.name}", size - below, len(given)))
            others = [argument for argument in (child.args.vararg, child.args.kwarg) if argument]
            annotated = [argument.annotation for argument in given + others] + [child.returns]
            inner, anys = inner + size, anys + inside + sum(map(_names_any, annotated))
        elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            anys += isinstance(child, ast.AnnAssign) and _names_any(child.annotation)
            below, inside = _visit(child, found, depth)
            inner, anys = inner + below, anys + inside
    return inner, anys


def _names_any(annotation: ast.expr | None) -> bool:
    nodes = ast.walk(annotation) if annotation is not None else ()
    return any(isinstance(node, ast.Name) and node.id == "Any" for node in nodes)


def _strings_of_tables(tree: ast.AST) -> list[tuple[str, str]]:
    """(key, value) of tables whose keys and values are strings."""
    return [
        (key.value, value.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)
    ]


if __name__ == "__main__":
    package = Package(Path(__file__).resolve().parents[1] / "ppt_gpu")
    for name, figure in package.figures().items():
        print(f"{figure:8,}  {name}")
    for circle in package.circles() if "--circles" in sys.argv else ():
        print(" ".join(circle))
