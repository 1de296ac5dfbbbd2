"""Applications: a Python file with a generator function `app(rank, ...)`, or a task graph in JSON; their parameters."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from ppt_gpu.cluster.engine.world import Program
from ppt_gpu.common.errors import PptError, did_you_mean, nearest
from ppt_gpu.common.paths import data_dir

FUNCTION = "app"


@dataclass(frozen=True)
class Application:
    """An application with its parameters. `directory`: where the files that it names are looked for."""

    name: str
    program: Program
    parameters: Mapping[str, Any]
    description: str
    directory: Path


def shipped_applications() -> list[str]:
    """The names of the applications that come with the program."""
    return sorted(path.stem for path in (data_dir("tasklists") / "apps").glob("*.py") if path.stem != "__init__")


def load_application(source: str | Path, parameters: Sequence[str] = ()) -> Application:
    """The application of a name or a file, with "name=value" for its parameters.

    Raises PptError for a missing file, one that does not run, and parameters that it does not have.
    """
    path = application_path(source)
    if path.suffix == ".json":
        from ppt_gpu.cluster.task_graph import read_task_graph

        if parameters:
            raise PptError(f"a task graph has no parameters: {', '.join(parameters)}", path=path)
        graph = read_task_graph(path)
        return Application(path.stem, graph.program, {}, graph.description, path.parent)
    function = _function(path)
    values = _parameters(function, parameters, path)
    text = function.__globals__.get("__doc__") or inspect.getdoc(function) or ""
    return Application(path.stem, partial(function, **values), values, text.split("\n\n")[0], path.parent)


def application_path(source: str | Path) -> Path:
    """The file of an application. PptError where there is none."""
    path = Path(source)
    if path.suffix in (".py", ".json"):
        if not path.is_file():
            others = [other.name for other in path.parent.glob(f"*{path.suffix}")] if path.parent.is_dir() else []
            close = nearest(path.name, others)
            raise PptError("no such file", path=path, hint=f"did you mean '{close}'?" if close else None)
        return path
    names = shipped_applications()
    if str(source) not in names:
        hint = did_you_mean(str(source), names) or "an application is a shipped one's name, or a .py or .json file"
        raise PptError(f"no application '{source}'", hint=hint)
    return data_dir("tasklists") / "apps" / f"{source}.py"


def _function(path: Path) -> Any:
    module = ModuleType(f"ppt_gpu_application_{path.stem}")
    sys.modules[module.__name__] = module
    try:
        # Compiled here, not imported: no __pycache__ beside the user's file, and errors name it as the user did.
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    except SyntaxError as error:
        raise PptError(str(error.msg), path=path, line=error.lineno, column=error.offset) from None
    except PptError:
        raise
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = lines[-1] if lines else None
        raise PptError(f"{type(error).__name__}: {error}", path=path, line=line) from None
    function = getattr(module, FUNCTION, None)
    if not inspect.isgeneratorfunction(function):
        raise PptError(
            f"no generator function '{FUNCTION}'", path=path, hint="def app(rank): ... yield what it waits for ..."
        )
    return function


def _parameters(function: Any, given: Sequence[str], path: Path) -> dict[str, Any]:
    first, *known = inspect.signature(function).parameters.values()
    del first  # the rank
    values = {parameter.name: parameter.default for parameter in known}
    missing = [name for name, value in values.items() if value is inspect.Parameter.empty]
    if missing:
        raise PptError(f"parameters without a default: {', '.join(missing)}", path=path)
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise PptError(f"'{text}': expected NAME=VALUE", hint=_list(values))
        if name not in values:
            raise PptError(f"the application has no parameter '{name}'", path=path, hint=did_you_mean(name, values))
        values[name] = _value(name, value, values[name])
    return values


def _list(values: Mapping[str, Any]) -> str | None:
    return "parameters: " + ", ".join(f"{name}={value}" for name, value in values.items()) if values else None


def _value(name: str, text: str, default: Any) -> Any:
    """The text as what the default is."""
    kind = type(default)
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        return kind(text) if kind in (int, float, str) else text
    except (ValueError, KeyError):
        words = {bool: "true or false", int: "a whole number", float: "a number"}
        raise PptError(f"parameter '{name}': '{text}' is not {words[kind]}") from None
