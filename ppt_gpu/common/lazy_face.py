"""Faces whose names are imported when they are first used, so that a package costs nothing until then."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any


def lazy_face(package: str, file: str) -> tuple[Callable[[str], Any], list[str]]:
    """`__getattr__` and `__all__` of a face: the names that it imports in its `if TYPE_CHECKING:`, in alphabetic order.

    A type checker reads the same statements, so that each name is told once. `package` and `file` are the face's own.
    """
    with open(file, encoding="utf-8") as stream:
        tree = ast.parse(stream.read(), file)
    blocks = [node.body for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for block in blocks for node in block if isinstance(node, ast.ImportFrom)]
    origins = {alias.asname or alias.name: (str(node.module), alias.name) for node in imports for alias in node.names}

    def look_up(name: str) -> Any:
        if name not in origins:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        module, original = origins[name]
        value = resolve_name(f"{module}:{original}")
        setattr(sys.modules[package], name, value)  # from now on without this function
        return value

    return look_up, sorted(origins)
