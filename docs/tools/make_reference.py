"""Writes docs/reference/*.md from the code: `python docs/tools/make_reference.py`. A test holds them to it.

Commands come from the parser of the command line, metrics from their registry, keys of hardware files from the schema
that checks them and the comments beside the fields, Python from signatures and docstrings.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import ppt_gpu
from ppt_gpu.cli import _parser
from ppt_gpu.common import units
from ppt_gpu.frontends.call import CallOptions
from ppt_gpu.report.result import metrics
from ppt_gpu.report.result.result import LaunchResult, Metric, Result
from ppt_gpu.sm.program import result as sm_result
from ppt_gpu.spec import gpu, gpu_schema
from ppt_gpu.spec.toml_schema import REQUIRED, Field, Flag, Keyed, ListOf, Number, OneOf, Quantity, Table, Text

#: keys that are no fields of what is made from the file
BESIDE = {
    "base": "another GPU, by name or by file, whose values count where this file has none",
    "isa": "another ISA than that of `compute_capability`: a name in hardware/isa, or a file",
}
ROOT = Path(__file__).parents[2]
TARGET = ROOT / "docs" / "reference"
NOTE = "<!-- made by docs/tools/make_reference.py: change the code, then run it -->\n"


def cell(text: str) -> str:
    """Text in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


# Commands


def commands() -> str:
    """Every command with its arguments."""
    parser = _parser()
    (action,) = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    out = [
        "# Commands",
        NOTE,
        "`ppt-gpu COMMAND`, `python -m ppt_gpu COMMAND` or, in a checkout, `python run_sim.py COMMAND`.",
    ]
    out += [
        "`--json` gives one JSON document on standard output. Exit codes: 0, 2 after one clear error, 130 if stopped.\n"
    ]
    for name, command in action.choices.items():
        out += [f"## {name}\n", (command.description or "").strip() + "\n", "| argument | meaning |", "|---|---|"]
        out += [
            f"| {_words(each)} | {_help(command, each)} |"
            for each in command._actions
            if each.dest not in ("help", "json")
        ]
        out.append("")
    return "\n".join(out)


def _words(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices is not None and action.metavar is None:
        metavar = "{" + ",".join(map(str, action.choices)) + "}"
    if not action.option_strings:
        shown = metavar if action.metavar else action.dest
        return f"`{shown if action.nargs not in ('?', '*') else f'[{shown}]'}`"
    value = "" if action.nargs == 0 else f" {metavar}"
    return cell(", ".join(f"`{option}{value}`" for option in action.option_strings))


def _help(command: argparse.ArgumentParser, action: argparse.Action) -> str:
    return cell(command._get_formatter()._expand_help(action)) if action.help else ""


# Metrics


def metrics_page() -> str:
    """The registry, and the reasons that a warp may have to wait."""
    out = [
        "# Metrics",
        NOTE,
        "`--json` and `Result.launches[i].metrics` have them; `ppt-gpu explain TAG` prints one.\n",
    ]
    out += ["| tag | unit | definition | source |", "|---|---|---|---|"]
    out += [
        f"| `{each.tag}` | {cell(each.unit)} | {cell(each.text)} | {cell(each.source)} |"
        for each in metrics._DEFINITIONS
    ]
    out += ["\n## Warp cycles by reason\n", "Each cycle of a resident warp has exactly one reason.\n"]
    out += ["| reason | the warp |", "|---|---|"]
    meanings = _comments(sm_result, "STALL_REASONS")
    out += [f"| `{reason}` | {cell(meanings[reason])} |" for reason in sm_result.STALL_REASONS]
    return "\n".join(out) + "\n"


def _comments(module: object, name: str) -> dict[str, str]:
    """Of a tuple of strings, one a line: string -> the comment behind it."""
    source = inspect.getsource(module)  # type: ignore[arg-type]
    body = source[source.index(f"{name} = (") :]
    return dict(re.findall(r'^    "(\w+)",  # (.*)$', body[: body.index("\n)")], re.M))


# Hardware files


def hardware() -> str:
    """The keys of a GPU file, table by table."""
    out = ["# Keys of a GPU file", NOTE]
    out += ["[../guides/gpu.md](../guides/gpu.md) shows how to write one. Every value may be bare or"]
    out += ['`{ value = ..., source = "..." }`. A key without a default must be there, in the file or in its `base`.\n']
    plain = {key: leaf for key, leaf in gpu_schema.GPU.fields.items() if not isinstance(leaf, Table | Keyed)}
    out += _keys("The file itself", plain, gpu.Gpu)
    classes = {field.name: field.type for field in dataclasses.fields(gpu.Gpu)}
    for name, leaf in gpu_schema.GPU.fields.items():
        if isinstance(leaf, Table):
            found = getattr(gpu, str(classes[name]))
            out += _keys(f"[{name}]", leaf.fields, found)
        elif isinstance(leaf, Keyed) and isinstance(leaf.item, Table):
            out += _keys(f"[{name}.NAME]", leaf.item.fields, gpu.Pipe if name == "pipes" else gpu.Op)
    return "\n".join(out)


def _keys(title: str, fields: Mapping[str, Field], described: type) -> Iterator[str]:
    meanings = field_comments(described) | BESIDE
    yield f"## {title}\n"
    yield "| key | value | default | meaning |"
    yield "|---|---|---|---|"
    for key, leaf in fields.items():
        default = "" if leaf.default in (REQUIRED, None) else f"`{_shown(leaf.default)}`"
        yield f"| `{key}` | {cell(expected(leaf))} | {default} | {cell(meanings.get(key, ''))} |"
    yield ""


def _shown(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else "[]" if value == () else str(value)
    return text or '""'


def field_comments(described: type) -> dict[str, str]:
    """Field -> the comment behind it in the source of a dataclass, or that in lines of `#:` before it; also of the
    dataclasses that it extends."""
    source = inspect.getsource(described)
    lines = source.splitlines()
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    extended = (base for base in described.__bases__ if dataclasses.is_dataclass(base))
    found = {name: comment for base in extended for name, comment in field_comments(base).items()}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            _, _, comment = lines[(node.end_lineno or node.lineno) - 1].partition("  # ")
            found[node.target.id] = comment or _before(lines[: node.lineno - 1])
    return found


def _before(lines: Sequence[str]) -> str:
    """The text of the lines of `#:` at the end of `lines`."""
    own: list[str] = []
    for line in reversed(lines):
        head, mark, text = line.partition("#: ")
        if head.strip() or not mark:
            break
        own.insert(0, text)
    return " ".join(own)


def expected(leaf: object) -> str:
    """What a value must be, in words."""
    if isinstance(leaf, OneOf):
        return leaf.expected
    if isinstance(leaf, Quantity):
        plain = f", or plain {leaf.dimension}" if leaf.plain else ""
        return f'`"{units.EXAMPLES[leaf.dimension]}"`{plain}' + (f"; {leaf.range_text()}" if leaf.range_text() else "")
    if isinstance(leaf, Number):
        return ("an integer" if leaf.integer else "a number") + (f", {leaf.range_text()}" if leaf.range_text() else "")
    if isinstance(leaf, Text):
        return " or ".join(f'`"{choice}"`' for choice in leaf.choices) or leaf.expected or "text"
    if isinstance(leaf, Flag):
        return "`true` or `false`"
    if isinstance(leaf, ListOf):
        return f"a list: {expected(leaf.item)}"
    return "a table"


# Python


def python() -> str:
    """The public names, their signatures and docstrings."""
    out = ["# Python", NOTE, "`import ppt_gpu`. Everything is typed (`py.typed`).\n"]
    for name in ppt_gpu.__all__:
        out += _python(f"ppt_gpu.{name}", getattr(ppt_gpu, name))
    out += [
        "## Options of a kernel call\n",
        (inspect.getdoc(CallOptions) or "") + "\n",
        "| option | type | |",
        "|---|---|---|",
    ]
    meanings = field_comments(CallOptions)
    out += [
        f"| `{key}` | `{cell(_type(each))}` | {cell(meanings[key])} |"
        for key, each in CallOptions.__annotations__.items()
    ]
    out.append("")
    out += _python("Result", Result) + _python("LaunchResult", LaunchResult) + _python("Metric", Metric)
    return "\n".join(out)


def _python(name: str, what: object) -> list[str]:
    out = [f"## {name}\n"]
    if dataclasses.is_dataclass(what) and isinstance(what, type):
        out += [(inspect.getdoc(what) or "") + "\n", "| field | type | |", "|---|---|---|"]
        meanings = field_comments(what)
        out += [
            f"| `{each.name}` | `{cell(str(each.type))}` | {cell(meanings[each.name])} |"
            for each in dataclasses.fields(what)
        ]
        methods = (key for key, each in vars(what).items() if not key.startswith("_") and callable(each))
        out += [
            f"\n`.{key}{_signature(getattr(what, key))}`: {cell(inspect.getdoc(getattr(what, key)) or '')}"
            for key in methods
        ]
        values = (key for key, each in vars(what).items() if isinstance(each, property))
        out += [f"\n`.{key}`: {cell(inspect.getdoc(getattr(what, key)) or '')}" for key in values]
    elif callable(what):
        out += ["```text", f"{name}{_signature(what)}", "```\n", inspect.getdoc(what) or ""]
    return [*out, ""]


def _type(annotation: object) -> str:
    return getattr(annotation, "__forward_arg__", str(annotation))


def _signature(what: object) -> str:
    parts, star = [], False
    for each in inspect.signature(what).parameters.values():  # type: ignore[arg-type]
        if each.name == "self":
            continue
        if each.kind is each.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        kind = "" if each.annotation is each.empty else f": {each.annotation}"
        default = "" if each.default is each.empty else f" = {each.default!r}"
        parts.append(f"{stars}{each.name}{kind}{default}")
    text = ", ".join(parts)
    return f"({text})" if len(text) < 90 else "(\n    " + ",\n    ".join(parts) + ",\n)"


PAGES = {"commands": commands, "metrics": metrics_page, "hardware": hardware, "python": python}


def main() -> None:
    TARGET.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (TARGET / f"{name}.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
